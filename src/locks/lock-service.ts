import type { Clock } from '../domain/clock.ts';
import { asGatewayError, type ErrorCode, type GatewayError, refuse } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import type { EndedLease, Journal } from '../domain/journal.ts';
import type { LeaseMode } from '../domain/lease.ts';
import type { AcquireRequest, LeaseView, LockFilter, LockService, LockView, SessionView } from '../domain/lock-api.ts';
import type { Caller } from '../domain/principal.ts';
import type { Resource } from '../domain/resource.ts';
import { checkWait } from './acquire-terms.ts';
import type { Acquiring } from './acquiring.ts';
import type { Converting } from './converting.ts';
import { endKinds } from './end-kinds.ts';
import type { Holding } from './holding.ts';
import type { LeaseDesk } from './lease-desk.ts';
import type { LeaseIds } from './lease-ids.ts';
import type { Lease } from './lease-record.ts';
import type { LeaseTable } from './lease-table.ts';
import { endInDoubt, notOwner } from './lock-refusals.ts';
import type { LockViews } from './lock-views.ts';
import type { Refusals } from './refusals.ts';
import type { Renewing } from './renewing.ts';
import { leaseRefOf, sessionRefOf } from './secret-id.ts';
import type { SessionDesk } from './session-desk.ts';
import { notSessionOwner, owns, type Sessions, sessionEnded } from './sessions.ts';
import { waitForChange } from './wait-for-change.ts';

export interface LeaseServiceDeps {
  readonly clock: Clock;
  readonly journal: Pick<Journal, 'endedLease' | 'endedSession'>;
  readonly table: LeaseTable;
  readonly desk: LeaseDesk;
  readonly holding: Holding;
  readonly views: LockViews;
  readonly renewing: Renewing;
  readonly refusals: Refusals;
  readonly acquiring: Acquiring;
  readonly converting: Converting;
  readonly sessionDesk: SessionDesk;
  readonly sessions: Sessions;
  readonly leaseIds: LeaseIds;
}

/** One that a lease made is unknown once its last lease has ended. */
const SESSION_OVER: ReadonlySet<ErrorCode> = new Set(['session_ended', 'session_not_found']);

/** The lock service over one coordinator: who may do what to a lease, and what comes of it (R3, R4, R14). */
export class LeaseService implements LockService {
  readonly #deps: LeaseServiceDeps;

  constructor(deps: LeaseServiceDeps) {
    this.#deps = deps;
  }

  acquire(caller: Caller, request: AcquireRequest, signal: AbortSignal): Promise<{ readonly lease: LeaseView; readonly created: boolean }> {
    const labelled = this.#deps.sessions.labelled(caller, request.sessionId);
    const subject = () => ({ resource: request.resources[0] ?? null, leaseRef: null });
    return this.#deps.refusals.recorded(labelled, signal, subject, () =>
      this.#sessionToldOver(caller, request.sessionId, () => this.#deps.acquiring.acquire(labelled, request, signal)),
    );
  }

  undelivered(caller: Caller, leaseId: string, holdId: string): void {
    this.#deps.desk.now();
    const lease = this.#deps.table.byRef(leaseRefOf(leaseId));
    if (lease !== null) this.#deps.holding.undelivered(caller, lease, holdId);
  }

  async lease(caller: Caller, leaseId: string, waitMs: number, signal: AbortSignal): Promise<LeaseView> {
    checkWait(waitMs);
    this.#deps.desk.now();
    const lease = this.#deps.table.byRef(leaseRefOf(leaseId));
    if (lease === null) return this.#deps.views.forgotten(leaseId, await this.#forgotten(caller, leaseId));
    if (!owns(caller.principal, lease.terms.principal)) throw notOwner();
    this.#polled(lease);
    const untilMs = this.#deps.clock.monotonicMs() + waitMs;
    for (let restMs = waitMs; restMs > 0 && undecided(lease); restMs = untilMs - this.#deps.clock.monotonicMs()) {
      const outcome = await waitForChange(lease, this.#deps.clock, restMs, signal);
      if (outcome === 'aborted') throw signal.reason;
      this.#deps.desk.now();
      this.#polled(lease);
    }
    if (lease.phase === 'over') await this.#deps.desk.endTold(lease);
    return this.#deps.views.lease(lease, null);
  }

  async leaseWithToken(caller: Caller, resource: Resource, token: FencingToken): Promise<LeaseView> {
    this.#deps.desk.now();
    const lease = this.#deps.table.liveByToken(token) ?? this.#deps.table.endedByToken(token);
    if (lease === null || !lease.resources.some(({ key }) => key === resource.key))
      throw refuse('lease_not_found', 'There is no lease with this token on this resource.');
    if (!owns(caller.principal, lease.terms.principal)) throw notOwner();
    if (lease.phase === 'over') await this.#deps.desk.endTold(lease);
    return this.#deps.views.lease(lease, null);
  }

  renew(caller: Caller, leaseId: string, ttlMs: number | null = null): Promise<LeaseView> {
    return this.#onLease(caller, leaseId, async (lease) => {
      if (!lease.open) throw await this.#notHeld(lease);
      await this.#deps.renewing.renew(caller, lease, ttlMs);
      this.#deps.desk.now();
      if (!lease.open) throw await this.#notHeld(lease);
      return this.#deps.views.lease(lease, null);
    });
  }

  convert(caller: Caller, leaseId: string, mode: LeaseMode, signal: AbortSignal): Promise<LeaseView> {
    return this.#onLease(caller, leaseId, async (lease) => {
      if (!lease.open || lease.phase !== 'held') throw await this.#notHeld(lease);
      lease.renew(this.#deps.clock.monotonicMs());
      await this.#deps.converting.convert(caller, lease, mode, signal);
      if (!lease.open) throw await this.#notHeld(lease);
      return this.#deps.views.lease(lease, null);
    });
  }

  async release(caller: Caller, leaseId: string, options: { readonly holdId: string | null; readonly all: boolean }): Promise<void> {
    if (this.#deps.table.byRef(leaseRefOf(leaseId)) === null) {
      this.#deps.desk.now();
      await this.#forgotten(caller, leaseId);
      return;
    }
    await this.#onLease(caller, leaseId, async (lease) => {
      // Decided within the call: from here on no write under this lease is admitted.
      const goesOn = lease.open && !options.all ? this.#deps.holding.takeOff(caller, lease, options.holdId) : null;
      if (goesOn !== null) return goesOn;
      if (lease.open) this.#deps.desk.end(lease, lease.phase === 'held' ? endKinds.released(caller) : endKinds.cancelled(caller));
      try {
        await this.#deps.desk.endTold(lease);
      } catch (thrown) {
        // A grant in doubt says itself what is not known.
        throw thrown === lease.failure ? thrown : endInDoubt(thrown, { lease_id: leaseId });
      }
    });
  }

  createSession(caller: Caller, request: { readonly ttlMs: number | null; readonly clientId: string | null }): Promise<SessionView> {
    return this.#deps.refusals.recorded(caller, null, nobodys, () => this.#deps.sessionDesk.create(caller, request));
  }

  heartbeat(caller: Caller, sessionId: string): Promise<{ readonly expiresInMs: number; readonly lost: readonly string[] }> {
    return this.#deps.refusals.recordedSoon(caller, () =>
      this.#sessionToldOver(caller, sessionId, () => this.#deps.sessionDesk.heartbeat(caller, sessionId)),
    );
  }

  /** Idempotent, like the release of a lease: an answer that did not arrive may be asked for again. */
  endSession(caller: Caller, sessionId: string): Promise<void> {
    return this.#deps.refusals.recorded(caller, null, nobodys, async () => {
      try {
        await this.#sessionToldOver(caller, sessionId, () => this.#deps.sessionDesk.end(caller, sessionId));
      } catch (thrown) {
        if (asGatewayError(thrown).code !== 'session_ended') throw thrown;
      }
    });
  }

  /** Whose events a watch of this session tells. */
  sessionWatched(caller: Caller, sessionId: string): Promise<string> {
    return this.#sessionToldOver(caller, sessionId, async () => this.#deps.sessions.own(caller, sessionId).terms.sessionRef);
  }

  /** Known by its ref to an administrator, whoever's it is. */
  async endSessionByRef(caller: Caller, sessionRef: string): Promise<void> {
    try {
      await this.#deps.sessionDesk.endByRef(caller, sessionRef);
    } catch (thrown) {
      const unknown = asGatewayError(thrown).code === 'session_not_found';
      throw unknown && (await this.#deps.journal.endedSession(sessionRef)) !== null ? sessionEnded() : thrown;
    }
  }

  sessionPage(page: Parameters<LockService['sessionPage']>[0]): ReturnType<LockService['sessionPage']> {
    return this.#deps.sessionDesk.page(page);
  }

  async lock(resource: Resource): Promise<LockView> {
    this.#deps.desk.now();
    return this.#deps.views.lock(resource);
  }

  async locks(filter: LockFilter): Promise<{ readonly locks: readonly LockView[]; readonly nextCursor: string | null }> {
    this.#deps.desk.now();
    return this.#deps.views.locks(filter);
  }

  /** Polling keeps the place of a waiter; it does not renew what is held. */
  #polled(lease: Lease): void {
    if (lease.open && lease.phase === 'waiting') lease.renew(this.#deps.clock.monotonicMs());
  }

  async #onLease<T>(caller: Caller, leaseId: string, work: (lease: Lease) => Promise<T>): Promise<T> {
    this.#deps.desk.now();
    const lease = this.#deps.table.byRef(leaseRefOf(leaseId));
    // Somebody else's client is not who was refused.
    const clientId = lease !== null && owns(caller.principal, lease.terms.principal) ? lease.clientId : null;
    const subject = () => ({ resource: lease?.resources[0] ?? null, leaseRef: lease?.leaseRef ?? null, clientId });
    return this.#deps.refusals.recorded(caller, null, subject, async () => {
      if (lease === null) {
        const { state, reason, endedAt } = await this.#forgotten(caller, leaseId);
        throw refuse('lease_not_held', 'The lease is not held.', { state, reason, ended_at: endedAt });
      }
      if (!owns(caller.principal, lease.terms.principal)) throw notOwner();
      return work(lease);
    });
  }

  /** That a session has ended is told once it is durable; of one that is not in memory the journal may know that it ended before a restart. */
  async #sessionToldOver<T>(caller: Caller, sessionId: string | null, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (thrown) {
      if (sessionId === null || !SESSION_OVER.has(asGatewayError(thrown).code)) throw thrown;
      const sessionRef = sessionRefOf(sessionId);
      await this.#deps.sessionDesk.endTold(sessionRef);
      const ended = asGatewayError(thrown).code === 'session_not_found' ? await this.#deps.journal.endedSession(sessionRef) : null;
      if (ended === null) throw thrown;
      throw owns(caller.principal, ended.principal) ? sessionEnded() : notSessionOwner();
    }
  }

  /** 409 on every operation of an ended lease, however late it comes (R14, R30): nothing brings it back. */
  async #notHeld(lease: Lease): Promise<GatewayError> {
    if (lease.phase === 'over') await this.#deps.desk.endTold(lease);
    const { decided, state } = lease;
    return refuse('lease_not_held', 'The lease is not held.', { state, reason: decided?.end.reason ?? null, ended_at: decided?.endedAt ?? null });
  }

  /** Not in memory: it ended before a restart, or was a waiter of an earlier process, which nobody will serve. Throws `lease_not_found`, `not_lease_owner`. */
  async #forgotten(caller: Caller, leaseId: string): Promise<EndedLease> {
    const leaseRef = leaseRefOf(leaseId);
    const ended = await this.#deps.journal.endedLease(leaseRef);
    if (ended !== null) {
      if (ended.lease !== null && !owns(caller.principal, ended.lease.principal)) throw notOwner();
      return ended;
    }
    const endedAt = this.#deps.leaseIds.lostAt(leaseId);
    if (endedAt === null) throw refuse('lease_not_found', 'There is no such lease.');
    return { leaseRef, state: 'lost', reason: 'lost', endedAt, lease: null };
  }
}

/** A refused call about a session names no resource, and no session either: so that a thousand ids of nobody in one batch are one record. */
function nobodys(): { readonly resource: null; readonly leaseRef: null } {
  return { resource: null, leaseRef: null };
}

/** What a poll waits for the end of: a place in line, or an upgrade that is not granted, refused or given up as far as may be told. */
function undecided(lease: Lease): boolean {
  return lease.state === 'waiting' || lease.becomingExclusive;
}
