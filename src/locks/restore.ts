import { type Clock, monotonicMsOf, rfc3339 } from '../domain/clock.ts';
import type { Journal, JournalOp, JournalStart, StoredLease, StoredWait } from '../domain/journal.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Resource } from '../domain/resource.ts';
import type { SeatingCoordinator } from './coordinator.ts';
import { conflict } from './decision.ts';
import { writtenElsewhere } from './held-so-far.ts';
import type { LeaseDesk } from './lease-desk.ts';
import type { LeaseLedger } from './lease-ledger.ts';
import type { Lease } from './lease-record.ts';
import type { LeaseTable } from './lease-table.ts';
import type { LockAudit } from './lock-audit.ts';
import { sessionRefOf } from './secret-id.ts';
import type { Session } from './session.ts';
import type { Sessions } from './sessions.ts';
import { recordUpgradeOver } from './upgrade-ends.ts';

export interface RestoreDeps {
  readonly clock: Clock;
  readonly journal: Pick<Journal, 'commit'>;
  /** `null`: its holders do not outlive the process, so nothing comes back. */
  readonly coordinator: SeatingCoordinator<Lease> | null;
  readonly table: LeaseTable;
  readonly desk: LeaseDesk;
  readonly ledger: LeaseLedger;
  readonly audit: LockAudit;
  readonly sessions: Sessions;
  readonly nextOrder: () => number;
  /** False for a volume that is not configured any more. */
  readonly isVolume: (name: string) => boolean;
}

/**
 * Leases and sessions after a restart: back with a fresh time to live as grace, tokens unchanged (case R33). What cannot come back
 * is ended as `lost`, durably. Nothing comes back when the journal is not the one that the volumes know (`comeBack` false).
 */
export async function restoreLocks(deps: RestoreDeps, start: JournalStart, comeBack: boolean): Promise<void> {
  // Waits never come back.
  const waits = start.waits();
  const lost: (StoredLease | StoredWait)[] = [...waits];
  const carried: Promise<void>[] = [];
  const over: string[] = [];
  const { coordinator } = deps;
  if (comeBack && coordinator !== null) {
    const sessions = restoreSessions(deps, start);
    for (const { leaseId, sessionId, endedAt } of start.lostLeases()) sessions.get(sessionId)?.noteLost(leaseId, monotonicMsOf(endedAt, deps.clock));
    for (const { leaseId, sessionId } of waits) sessions.get(sessionId)?.noteLost(leaseId, deps.clock.monotonicMs());
    // The newest token first: should two claim one resource, the older of them is over.
    const leases = [...start.leases()].sort((a, b) => (a.token < b.token ? 1 : -1));
    for (const stored of leases) {
      const session = sessions.get(stored.sessionId);
      if (session === undefined || !stored.resources.every(({ volume }) => deps.isVolume(volume)) || contested(coordinator, stored)) {
        lost.push(stored);
        session?.noteLost(stored.leaseId, deps.clock.monotonicMs());
        continue;
      }
      const lease = restoreLease(deps, stored, session);
      coordinator.seat(lease, stored.token);
      if (stored.upgrading === true) carried.push(recordUpgradeOver(deps.ledger, lease, null, 'upgrade_lost'));
      // So that starts of this boot count on from here, whatever is done to the wall clock between them.
      if (stored.maxHoldMs !== null && writtenElsewhere(stored, deps.clock)) carried.push(deps.ledger.kept(lease, session, stored, null, null));
    }
    await Promise.all(carried);
    for (const session of sessions.values()) {
      // Made for a lease that did not come back.
      if (!session.terms.implied || session.leases.size > 0) continue;
      deps.sessions.remove(session);
      over.push(session.terms.sessionRef);
    }
  } else {
    lost.push(...start.leases());
    over.push(...start.sessions().map(({ sessionRef }) => sessionRef));
  }
  // Of several on one resource the journal keeps the last.
  const delays = lost.flatMap(delaysOf).sort((a, b) => a.delayMs - b.delayMs);
  if (coordinator !== null) {
    for (const { resourceKey, delayMs } of [...start.lockDelays(), ...delays]) {
      deps.ledger.heldBack(resourceKey);
      coordinator.holdBack(resourceFromKey(resourceKey), delayMs);
    }
  }
  await journalLost(deps, lost, over, delays);
}

interface LockDelay {
  readonly resourceKey: string;
  readonly delayMs: number;
}

/** What is held does not end cleanly when it is lost. */
function delaysOf(lease: StoredLease | StoredWait): readonly LockDelay[] {
  if (lease.token === null || lease.lockDelayMs === 0) return [];
  return lease.resources.map(({ key }) => ({ resourceKey: key, delayMs: lease.lockDelayMs }));
}

function restoreSessions(deps: RestoreDeps, start: JournalStart): Map<string, Session> {
  const sessions = new Map<string, Session>();
  for (const stored of start.sessions()) {
    const session = deps.sessions.add({ ...stored, sessionRef: sessionRefOf(stored.sessionId) });
    session.stored = true;
    session.returning = true;
    sessions.set(stored.sessionId, session);
    if (!stored.implied) deps.table.deadlines.set(session, session.deadlineMs);
  }
  return sessions;
}

function restoreLease(deps: RestoreDeps, stored: StoredLease, session: Session): Lease {
  const { leaseId, leaseRef, resources, mode, principal, clientId, priority, ttlMs, maxHoldMs, lockDelayMs, metadata } = stored;
  const createdMs = deps.clock.monotonicMs();
  const createdOrder = deps.nextOrder();
  const lease = deps.desk.make({
    leaseId,
    leaseRef,
    resources,
    mode,
    principal,
    clientId,
    priority,
    createdOrder,
    createdMs,
    createdAt: stored.grantedAt,
    ttlMs,
    maxWaitMs: null,
    maxHoldMs,
    lockDelayMs,
    metadata,
    session,
    caller: null,
  });
  for (const hold of stored.holds) lease.holds.add(hold);
  lease.upgradeLost = stored.upgrading === true;
  lease.upgradeKept = lease.upgradeLost;
  deps.desk.restore(lease, { mode, token: stored.token }, stored);
  return lease;
}

function contested(coordinator: SeatingCoordinator<Lease>, stored: StoredLease): boolean {
  return stored.resources.some(({ key }) => coordinator.look(key)?.holders.some((other) => conflict(other.mode, stored.mode)) === true);
}

async function journalLost(
  deps: RestoreDeps,
  lost: readonly (StoredLease | StoredWait)[],
  sessionRefs: readonly string[],
  delays: readonly LockDelay[],
): Promise<void> {
  const endedAt = rfc3339(deps.clock.wallMs());
  const ops: JournalOp[] = [
    ...lost.flatMap((lease) => [
      { op: 'lease_end' as const, leaseRef: lease.leaseRef, state: 'lost' as const, reason: 'lost', endedAt },
      ...lossRecords(deps.audit, lease),
    ]),
    ...sessionRefs.map((sessionRef): JournalOp => ({ op: 'session_end', sessionRef })),
    ...delays.map((delay): JournalOp => ({ op: 'lock_delay', ...delay })),
  ];
  for (let i = 0; i < ops.length; i += LIMITS.endsPerUnitMax) await deps.journal.commit(ops.slice(i, i + LIMITS.endsPerUnitMax));
}

/** One record a resource. Its volume may be gone from the configuration, so nobody is asked how it was fenced. */
function lossRecords(audit: LockAudit, { resources, principal, clientId, leaseRef, token }: StoredLease | StoredWait): JournalOp[] {
  return resources.map(({ key, volume, path }) => ({
    op: 'audit',
    markOf: key,
    record: {
      ...audit.draft({ action: 'lease_lose', resource: null, outcome: 'committed', caller: null, owner: { principal, clientId, leaseRef }, token }),
      volume,
      path,
    },
  }));
}

/** A held-back resource as far as its key tells: enough to keep others out. */
function resourceFromKey(key: string): Resource {
  const slash = key.indexOf('/');
  return { volume: key.slice(0, slash), path: key.slice(slash + 1), name: key, key };
}
