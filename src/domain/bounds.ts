import { GatewayError, type ProblemMembers } from './errors.ts';

/** Both included. */
export interface Bounds {
  readonly min: number;
  readonly max: number;
}

/** `invalid_request` for a number that lies outside, by whichever way it came: whoever sent it learns its bounds. */
export function outOfBounds(field: string, { min, max }: Bounds, more: ProblemMembers = {}): GatewayError {
  const bounds = field.endsWith('_ms') ? { min_ms: min, max_ms: max } : { min, max };
  return new GatewayError('invalid_request', { detail: `${field} lies between ${min} and ${max}.`, members: { field, ...bounds, ...more } });
}
