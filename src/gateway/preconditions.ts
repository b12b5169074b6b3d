import { type GatewayError, refuse } from '../domain/errors.ts';
import type { EtagCondition } from '../domain/write.ts';

/**
 * `If-Match` and `If-None-Match` of a write (RFC 9110 13.1.1, 13.1.2) against the tag of what is there now; `null`: nothing is there.
 * `If-Match` compares strongly: a weak tag never matches.
 * @returns the refusal, or `null` when the write may go on.
 */
export function preconditionVerdict(current: string | null, ifMatch: EtagCondition | null, ifNoneMatch: EtagCondition | null): GatewayError | null {
  if (ifMatch !== null && !matches(current, ifMatch, strongEqual)) {
    return refuse('precondition_failed', 'If-Match does not match what is there now.', { etag: current });
  }
  if (ifNoneMatch !== null && matches(current, ifNoneMatch, weakEqual)) {
    return refuse('precondition_failed', 'If-None-Match matches what is there now.', { etag: current });
  }
  return null;
}

function matches(current: string | null, condition: EtagCondition, equal: (a: string, b: string) => boolean): boolean {
  if (current === null) return false;
  return condition === '*' || condition.some((tag) => equal(tag, current));
}

function strongEqual(a: string, b: string): boolean {
  return a === b && !a.startsWith('W/');
}

function weakEqual(a: string, b: string): boolean {
  return a.replace(/^W\//, '') === b.replace(/^W\//, '');
}
