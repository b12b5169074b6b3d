/** Every verdict on a presented token comes from here, at admission and later: one order, one rule about what is shown, and the record has the mark that was met. */
import { type ErrorCode, GatewayError } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import type { TokenFacts } from '../domain/lease.ts';
import type { Resource } from '../domain/resource.ts';
import type { WriteDeps } from './deps.ts';
import type { Operation } from './operation.ts';
import { tokenVerdict } from './token-verdict.ts';

/** What the locks know of a token alone. The rest of their refusals is about contact, and stands. */
const ABOUT_THE_TOKEN: ReadonlySet<ErrorCode> = new Set(['stale_token', 'lease_ended', 'lease_is_shared']);

type JudgeDeps = Pick<WriteDeps, 'leases'>;

/** Notes token and mark for the record. `null` when the token may write. */
export function judgeToken(deps: JudgeDeps, operation: Operation, token: FencingToken, facts: TokenFacts): GatewayError | null {
  operation.presented = token;
  operation.mark = facts.mark;
  const { leaseId, caller } = operation.envelope;
  return tokenVerdict(facts, {
    token,
    principal: caller.principal,
    ownsLeaseId: leaseId === null ? null : (leaseRef) => deps.leases.isLeaseId(leaseId, leaseRef),
  });
}

/**
 * The locks refused to pin the lease of a presented token, at once and for this caller as for any other. The answer is what the facts
 * say now, in the order of admission; where they say nothing (they moved on), or cannot be read, the refusal of the locks stands.
 */
export async function judgedAgain(
  deps: JudgeDeps,
  operation: Operation,
  { resource, token }: { readonly resource: Resource; readonly token: FencingToken },
  refused: unknown,
): Promise<unknown> {
  if (!(refused instanceof GatewayError) || !ABOUT_THE_TOKEN.has(refused.code)) return refused;
  try {
    return judgeToken(deps, operation, token, await deps.leases.factsMet(resource, token)) ?? refused;
  } catch {
    // Without the journal the refusal is as good as before: it says no more than the locks knew.
    return refused;
  }
}
