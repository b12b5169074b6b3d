import { type Clock, rfc3339 } from '../domain/clock.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import type { JournalOp, StoredLease } from '../domain/journal.ts';
import type { Resource } from '../domain/resource.ts';
import { heldSoFar } from './held-so-far.ts';
import type { Lease } from './lease-record.ts';
import type { Session } from './session.ts';

/** What the journal is told of leases and sessions. */

export function raise(lease: Lease, resource: Resource, token: FencingToken): JournalOp {
  const named = lease.terms.session !== null;
  return { op: 'raise_mark', resource, token, leaseRef: lease.leaseRef, principal: lease.terms.principal, named };
}

/** As it would come back; from here on the journal says whether its upgrade waits. */
export function leasePut(
  lease: Lease,
  session: Session,
  { mode, token }: NonNullable<Lease['told']>,
  { clock, nodePath }: { readonly clock: Clock; readonly nodePath: string },
): JournalOp {
  const { terms } = lease;
  const stored: StoredLease = {
    leaseId: terms.leaseId,
    leaseRef: terms.leaseRef,
    sessionId: session.terms.sessionId,
    resources: terms.resources,
    mode,
    token,
    principal: terms.principal,
    clientId: terms.clientId,
    ttlMs: lease.ttlMs,
    priority: terms.priority,
    maxHoldMs: terms.maxHoldMs,
    lockDelayMs: terms.lockDelayMs,
    holds: [...lease.holds],
    metadata: terms.metadata,
    grantedAt: lease.grantedAt ?? rfc3339(clock.wallMs()),
    acquiredZnodePath: nodePath,
    held: heldSoFar(lease, clock),
    ...(lease.upgrading ? { upgrading: true } : {}),
  };
  lease.upgradeKept = lease.upgrading;
  return { op: 'lease_put', lease: stored };
}

/** Of a wait only what tells whose it was: nothing of it comes back. */
export function waitPut({ terms, ttlMs }: Lease, session: Session): JournalOp {
  const { leaseId, leaseRef, resources, mode, principal, clientId, priority, metadata } = terms;
  const { sessionId } = session.terms;
  const never = { token: null, grantedAt: null, acquiredZnodePath: null, waiting: true } as const;
  return { op: 'wait_put', wait: { leaseId, leaseRef, sessionId, resources, mode, principal, clientId, ttlMs, priority, metadata, ...never } };
}

export function leaseEnd(lease: Lease): JournalOp {
  const { decided, leaseRef } = lease;
  return { op: 'lease_end', leaseRef, state: decided?.end.state ?? 'lost', reason: decided?.end.reason ?? 'lost', endedAt: decided?.endedAt ?? '' };
}

/** The end of a session that a lease made, in the unit of the last lease in it. */
export function lastLeaseEnd({ terms: { session } }: Lease): JournalOp[] {
  if (session === null || !session.terms.implied || !session.stored || session.leases.size > 0) return [];
  session.endCarried = true;
  return [{ op: 'session_end', sessionRef: session.terms.sessionRef }];
}

export function sessionPut(session: Session): JournalOp {
  const { sessionId, sessionRef, principal, clientId, createdAt, implied } = session.terms;
  return { op: 'session_put', session: { sessionId, sessionRef, principal, clientId, ttlMs: session.ttlMs, createdAt, implied } };
}
