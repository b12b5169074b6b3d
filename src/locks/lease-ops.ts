import type { FencingToken } from '../domain/fencing-token.ts';
import type { JournalOp } from '../domain/journal.ts';
import type { Resource } from '../domain/resource.ts';
import type { Lease } from './lease-record.ts';
import type { Session } from './session.ts';

/** What the journal is told of leases and sessions. */

export function raise(lease: Lease, resource: Resource, token: FencingToken): JournalOp {
  const named = lease.terms.session !== null;
  return { op: 'raise_mark', resource, token, leaseRef: lease.leaseRef, principal: lease.terms.principal, named };
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
