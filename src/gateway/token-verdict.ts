import { GatewayError, type ProblemMembers } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import type { TokenFacts } from '../domain/lease.ts';
import { type Principal, seesEverything } from '../domain/principal.ts';

/** What a write presented, beside its number. `ownsLeaseId`: the sent `X-Lease-Id` is the secret id of the lease with this ref. */
export interface Presented {
  readonly token: FencingToken;
  readonly principal: Principal;
  /** `null` when no `X-Lease-Id` was sent. */
  readonly ownsLeaseId: ((leaseRef: string) => boolean) | null;
}

/**
 * The verdict on a token, first match wins (`http-api.md`, "Which verdict on a token"). Pure.
 * Carries I1 at admission; the commit section pins the lease again.
 * @returns `null` when the token may write.
 */
export function tokenVerdict(facts: TokenFacts, presented: Presented): GatewayError | null {
  const { token } = presented;
  if (facts.mark === null || token > facts.mark) {
    return refusal('token_not_issued', 'This token was never issued for this resource.', { presented_token: token.toString() });
  }
  if (facts.live?.mode === 'shared') {
    return refusal('lease_is_shared', 'The token belongs to a shared lease; only an exclusive one may write.', { presented_token: token.toString() });
  }
  if (token < facts.mark) return stale(facts, presented, facts.mark);
  const holder = facts.atMark;
  if (holder === null) return refusal('token_not_issued', 'No lease stands behind this token.', { presented_token: token.toString() });
  if (!mayUse(holder.leaseRef, holder.principal, presented)) {
    return refusal('not_lease_owner', 'The token belongs to a lease of somebody else.', {});
  }
  if (holder.ended !== null) return ended(holder.ended);
  return null;
}

/** The principal's own lease, or the matching secret; a sent `X-Lease-Id` must match in any case. */
function mayUse(leaseRef: string, owner: string | null, presented: Presented): boolean {
  if (presented.ownsLeaseId !== null) return presented.ownsLeaseId(leaseRef);
  return !presented.principal.authenticated || owner === presented.principal.name;
}

/** 412 `stale_token`: the mark itself is shown only without authentication, to its owner, or to an administrator. */
function stale(facts: TokenFacts, presented: Presented, mark: FencingToken): GatewayError {
  const shown = seesEverything(presented.principal) || facts.atMark?.principal === presented.principal.name;
  const about: ProblemMembers = shown ? { high_water_mark: mark.toString() } : { newer_token_exists: true };
  return refusal('stale_token', 'A newer token exists for this resource: the lease behind this one is over.', {
    presented_token: presented.token.toString(),
    ...about,
  });
}

/** 412 `lease_ended`, also when nobody took the lock since. */
function ended(end: { readonly reason: string; readonly endedAt: string | null }): GatewayError {
  return refusal('lease_ended', 'The lease of this token has ended.', { reason: end.reason, ended_at: end.endedAt });
}

function refusal(
  code: 'token_not_issued' | 'lease_is_shared' | 'not_lease_owner' | 'stale_token' | 'lease_ended',
  detail: string,
  members: ProblemMembers,
) {
  return new GatewayError(code, { detail, members });
}
