import { sameStrongly, sameWeakly } from '../domain/entity-tag.ts';
import { type GatewayError, refuse } from '../domain/errors.ts';
import { etagOf, type FileFacts } from '../domain/file-facts.ts';
import type { EtagCondition, WriteEnvelope } from '../domain/write.ts';

export type Conditions = Pick<WriteEnvelope, 'ifMatch' | 'ifNoneMatch' | 'ifUnmodifiedSinceS'>;

const NS_PER_SECOND = 1_000_000_000n;

/**
 * The conditions of a write in the order of RFC 9110, 13.2.2, against what is there now; `null`: nothing is there.
 * `If-Match` compares strongly; a date counts only without it, and fails for what does not exist.
 * @returns the refusal, or `null` when the write may go on.
 */
export function preconditionVerdict(target: FileFacts | null, conditions: Conditions): GatewayError | null {
  const { ifMatch, ifNoneMatch, ifUnmodifiedSinceS } = conditions;
  const current = target === null ? null : etagOf(target);
  const failed = (header: string, how: string): GatewayError =>
    refuse('precondition_failed', `${header} ${how} what is there now.`, { etag: current });
  if (ifMatch !== null) {
    if (!matches(current, ifMatch, sameStrongly)) return failed('If-Match', 'does not match');
  } else if (ifUnmodifiedSinceS !== null && (target === null || target.mtimeNs / NS_PER_SECOND > BigInt(ifUnmodifiedSinceS))) {
    return failed('If-Unmodified-Since', 'is older than');
  }
  if (ifNoneMatch !== null && matches(current, ifNoneMatch, sameWeakly)) return failed('If-None-Match', 'matches');
  return null;
}

function matches(current: string | null, condition: EtagCondition, equal: (a: string, b: string) => boolean): boolean {
  if (current === null) return false;
  return condition === '*' || condition.some((tag) => equal(tag, current));
}
