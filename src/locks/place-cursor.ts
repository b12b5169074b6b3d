import { refuse } from '../domain/errors.ts';

/** The cursor of a list is the place of its last entry. `null`: from the beginning. Throws `invalid_request`. */
export function placeAfter(cursor: string | null): number {
  if (cursor === null) return 0;
  if (!/^[0-9]{1,15}$/.test(cursor)) throw refuse('invalid_request', 'The cursor is not one of this list.', { field: 'cursor' });
  return Number(cursor);
}
