import { refuse } from '../domain/errors.ts';

/** Where a page of an audit query ended. Opaque to clients; it grants nothing, so it is not signed. */
export interface AuditCursor {
  readonly order: 'asc' | 'desc';
  /** The log as it was when the first page was read. */
  readonly snapshot: number;
  readonly after: number;
}

const FORM = /^1:(asc|desc):([0-9]{1,15}):([0-9]{1,15})$/;

export function encodeAuditCursor({ order, snapshot, after }: AuditCursor): string {
  return Buffer.from(`1:${order}:${snapshot}:${after}`).toString('base64url');
}

/** Throws `invalid_request` for anything that this gateway did not make for this order. */
export function decodeAuditCursor(text: string, order: 'asc' | 'desc'): AuditCursor {
  const match = FORM.exec(Buffer.from(text, 'base64url').toString('latin1'));
  if (match === null) throw refuse('invalid_request', 'The cursor is not one of this gateway.');
  if (match[1] !== order) throw refuse('invalid_request', 'The cursor belongs to a query in the other order.');
  return { order, snapshot: Number(match[2]), after: Number(match[3]) };
}
