import { type Clock, type Random, rfc3339 } from '../domain/clock.ts';
import { cycleMembers } from '../domain/deadlock.ts';
import { GatewayError, refuse } from '../domain/errors.ts';
import { foreignDetail, foreignMembers, NO_FOREIGN_CONTENDERS } from '../domain/foreign-contenders.ts';
import { LIMITS } from '../domain/limits.ts';
import type { AcquireRequest, LeaseView } from '../domain/lock-api.ts';
import type { Caller } from '../domain/principal.ts';
import type { Resource } from '../domain/resource.ts';
import type { VolumePolicy } from '../domain/volume.ts';
import { type AcquireTerms, acquireTerms } from './acquire-terms.ts';
import type { Converting } from './converting.ts';
import type { Coordinator } from './coordinator.ts';
import { endKinds } from './end-kinds.ts';
import { foreignBefore, foreignThere } from './foreign-there.ts';
import type { Holding } from './holding.ts';
import type { LeaseDesk } from './lease-desk.ts';
import type { End } from './lease-end.ts';
import type { LeaseIds } from './lease-ids.ts';
import type { LeaseLedger } from './lease-ledger.ts';
import type { Lease } from './lease-record.ts';
import { sessionLost } from './lock-refusals.ts';
import type { LockViews } from './lock-views.ts';
import { leaseRefOf, newHoldId } from './secret-id.ts';
import type { Session } from './session.ts';
import type { Sessions } from './sessions.ts';
import { waitForChange } from './wait-for-change.ts';
import type { WaitersContact } from './waiters-contact.ts';

export interface AcquiringDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly leaseIds: LeaseIds;
  readonly contact: WaitersContact;
  readonly policy: (volume: string) => VolumePolicy;
  readonly coordinator: Coordinator<Lease>;
  readonly desk: LeaseDesk;
  readonly sessions: Sessions;
  readonly views: LockViews;
  readonly converting: Converting;
  readonly holding: Holding;
  readonly ledger: LeaseLedger;
}

/** Signs of life of a waiter whose request stays open. */
const POLLS_PER_TTL = 3;
const ENDED = 'The wait ended without the lock.';

/** Try, wait, wait with a limit, and acquiring again what the session already has (R3, R4). */
export class Acquiring {
  readonly #deps: AcquiringDeps;
  #createdOrder = 0;
  #draining = false;

  constructor(deps: AcquiringDeps) {
    this.#deps = deps;
  }

  /** Nobody new from now on: `draining`. */
  drain(): void {
    this.#draining = true;
  }

  nextOrder(): number {
    this.#createdOrder += 1;
    return this.#createdOrder;
  }

  async acquire(caller: Caller, request: AcquireRequest, signal: AbortSignal): Promise<{ readonly lease: LeaseView; readonly created: boolean }> {
    if (this.#draining) throw new GatewayError('draining', { detail: 'The gateway is going down.', retryAfterMs: 1_000 });
    const terms = acquireTerms(request, this.#deps.policy);
    this.#deps.desk.now();
    const session = request.sessionId === null ? null : this.#deps.sessions.own(caller, request.sessionId);
    const holdId = request.holdId ?? newHoldId(this.#deps.random);
    const existing = session === null ? null : leaseOver(session, terms.resources);
    this.#deps.contact.assert();
    const lease = existing ?? this.#make(caller, request, terms, session);
    const known = lease.holds.has(holdId);
    lease.holds.asked(holdId);
    let answered = false;
    try {
      if (existing === null) await this.#enter(lease, request, holdId, signal);
      else await this.#again(caller, existing, request, { holdId, known }, signal);
      // Nobody would know of it.
      if (signal.aborted) throw signal.reason;
      answered = true;
    } finally {
      if (answered) lease.holds.answered(holdId);
      else this.#deps.holding.unanswered(caller, lease, holdId);
    }
    return { lease: this.#deps.views.lease(lease, holdId), created: existing === null };
  }

  #make(caller: Caller, request: AcquireRequest, terms: AcquireTerms, named: Session | null): Lease {
    const { clock, leaseIds, sessions, desk } = this.#deps;
    if (named !== null && named.leases.size >= LIMITS.leasesPerSessionMax) {
      throw refuse('too_many_leases', `A session has at most ${LIMITS.leasesPerSessionMax} leases.`, { leases_max: LIMITS.leasesPerSessionMax });
    }
    const clientId = request.clientId ?? caller.clientId;
    const session = named ?? sessions.make(caller, terms.ttlMs, clientId, true);
    const leaseId = leaseIds.next();
    return desk.make({
      leaseId,
      leaseRef: leaseRefOf(leaseId),
      resources: terms.resources,
      mode: request.mode,
      principal: caller.principal.name,
      clientId,
      priority: request.priority,
      createdOrder: this.nextOrder(),
      createdMs: clock.monotonicMs(),
      createdAt: rfc3339(clock.wallMs()),
      ttlMs: terms.ttlMs,
      maxWaitMs: request.maxWaitMs,
      maxHoldMs: terms.maxHoldMs,
      lockDelayMs: terms.lockDelayMs,
      metadata: request.metadata,
      session,
      caller,
    });
  }

  #enter(lease: Lease, request: AcquireRequest, holdId: string, signal: AbortSignal): Promise<void> {
    lease.quiet = request.waitMs === 0;
    this.#deps.desk.enter(lease);
    return this.#outcome(lease, request, holdId, signal);
  }

  /** Resolves with the lease held, or still waiting when `waitMs` is over. A wait that cannot succeed any more rejects. */
  async #outcome(lease: Lease, { waitMs, maxWaitMs }: AcquireRequest, holdId: string, signal: AbortSignal): Promise<void> {
    const { clock, desk, contact } = this.#deps;
    const untilMs = clock.monotonicMs() + (waitMs ?? maxWaitMs ?? Number.POSITIVE_INFINITY);
    while ((lease.phase === 'waiting' || lease.phase === 'granting') && lease.holds.has(holdId)) {
      // A grant that is under way is waited for: it is a matter of one disk commit, and a try must not give it away. Neither does
      // a try leave before the coordinator has looked, for as long as there is contact.
      const undecided = lease.phase === 'granting' || (waitMs === 0 && !lease.stands);
      if (waitMs === 0 && lease.phase === 'waiting') {
        const refusal = lease.stands ? this.#occupied(lease) : contact.refusal();
        if (refusal !== null) {
          this.#giveUp(lease, refusal);
          break;
        }
      }
      const restMs = undecided ? Number.POSITIVE_INFINITY : Math.max(0, untilMs - clock.monotonicMs());
      // An open request that polls for itself is the waiter's sign of life.
      const pollMs = waitMs === null ? lease.ttlMs / POLLS_PER_TTL : Number.POSITIVE_INFINITY;
      const outcome = await waitForChange(lease, clock, Math.min(restMs, pollMs), signal);
      desk.now();
      if (outcome === 'aborted') throw signal.reason;
      if (waitMs === null && lease.phase === 'waiting') lease.renew(clock.monotonicMs());
      if (outcome === 'time' && lease.phase === 'waiting' && clock.monotonicMs() >= untilMs) break;
    }
    // A try does not stand in line, so the length of the line is not what it is refused for.
    if (waitMs === 0 && lease.failure?.code === 'queue_full') throw this.#occupied(lease);
    const refusal = contact.refusal();
    await this.#assertStands(lease, holdId, signal);
    if (lease.phase !== 'waiting') return;
    if (waitMs === null) throw contact.unknown(lease) ?? ended(lease, endKinds.waitedOut(foreignBefore(this.#deps.coordinator, lease)));
    // Who stands in line keeps its place, and can be told so; whom nobody has looked at has none that is known.
    if (refusal !== null && !lease.looked && !lease.waitTold) {
      this.#giveUp(lease, refusal);
      throw refusal;
    }
    lease.renew(clock.monotonicMs());
    await this.#deps.ledger.waitTold(lease);
    desk.now();
    await this.#assertStands(lease, holdId, signal);
  }

  #giveUp(lease: Lease, refusal: GatewayError): void {
    if (lease.phase !== 'waiting') return;
    // Others of the session may wait with the same lease, or have done so.
    if (lease.holds.size > 1 || lease.waitTold) throw refusal;
    this.#deps.desk.withdraw(lease, refusal);
  }

  async #assertStands(lease: Lease, holdId: string, signal: AbortSignal): Promise<void> {
    // Whoever went before the answer leaves at once.
    if (signal.aborted) throw signal.reason;
    if (lease.phase === 'over') throw await this.#whyNot(lease);
    if (!lease.holds.has(holdId)) throw ended(lease, endKinds.cancelled(null));
  }

  async #again(
    caller: Caller,
    lease: Lease,
    request: AcquireRequest,
    { holdId, known }: { readonly holdId: string; readonly known: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, desk, converting, holding } = this.#deps;
    lease.renew(clock.monotonicMs());
    if (lease.holds.size > LIMITS.holdsPerLeaseMax)
      throw refuse('too_many_leases', `A lease has at most ${LIMITS.holdsPerLeaseMax} holds.`, { holds_max: LIMITS.holdsPerLeaseMax });
    if (lease.phase === 'held' && request.mode === 'exclusive' && lease.told?.mode === 'shared') {
      // What it has meanwhile it may go on using, so the hold counts, though it waits.
      if (await converting.upgradeWithin(caller, lease, holdId, request, signal)) return;
    } else if (request.mode === 'exclusive' && lease.mode === 'shared') {
      throw refuse('overlapping_lease', 'The session already waits for this resource in shared mode.', { lease_ref: lease.leaseRef });
    }
    if (lease.phase !== 'held') {
      if (request.waitMs === 0 && lease.phase === 'waiting') throw this.#occupied(lease);
      if (request.waitMs !== 0) lease.quiet = false;
      await this.#outcome(lease, request, holdId, signal);
      return;
    }
    await holding.add(caller, lease, holdId, known);
    desk.now();
    if (lease.phase !== 'held') throw await this.#whyNot(lease);
  }

  async #whyNot(lease: Lease): Promise<GatewayError> {
    if (lease.failure !== null) return lease.failure;
    await this.#deps.desk.endTold(lease);
    const end = lease.decided?.end;
    if (end?.sessionLost === true) return sessionLost();
    const unknown = end?.reason === 'max_wait' ? this.#deps.contact.unknown(lease) : null;
    if (unknown !== null) return unknown;
    if (end?.cycle !== undefined)
      return refuse('deadlock', 'These waits go round in a circle; this one gives way.', {
        lease_ref: lease.leaseRef,
        cycle: cycleMembers(end.cycle),
      });
    return ended(lease, end ?? { state: lease.state, reason: null });
  }

  #occupied(lease: Lease): GatewayError {
    const position = this.#deps.coordinator.position(lease);
    const full = lease.failure?.members['resource'];
    const waitingAt =
      lease.resources.find(({ name }) => name === full) ??
      lease.resources.find(({ key }) => this.#deps.coordinator.look(key)?.holders.includes(lease) !== true) ??
      lease.resources[0];
    const look = waitingAt === undefined ? null : this.#deps.coordinator.look(waitingAt.key);
    const holder = look?.holders[0] ?? null;
    const heldBackMs = Math.ceil(Math.max(0, (look?.heldBackUntilMs ?? 0) - this.#deps.clock.monotonicMs()));
    const foreign = foreignThere(this.#deps.coordinator, look);
    const detail =
      heldBackMs > 0
        ? 'The last holder was lost, and by its lock-delay nobody is granted the resource yet.'
        : (foreignDetail(foreign) ?? 'Somebody else holds the resource, or is before this request.');
    return refuse('lock_not_acquired', detail, {
      resource: waitingAt?.name ?? null,
      holder_client_id: holder?.clientId ?? null,
      holder_lease_ref: holder?.leaseRef ?? null,
      queue_length: position === null ? (look?.queueLength ?? 0) : position - 1,
      held_back_ms: heldBackMs,
      ...foreignMembers(foreign),
    });
  }
}

/** Of a wait that is over, or of one hold that waits no longer while the lease goes on waiting with others. */
function ended(
  { leaseRef }: Lease,
  { state, reason, foreign = NO_FOREIGN_CONTENDERS }: Pick<LeaseView, 'state' | 'reason'> & Pick<End, 'foreign'>,
): GatewayError {
  const why = foreignDetail(foreign);
  const members = { lease_ref: leaseRef, state, reason, ...foreignMembers(foreign) };
  return refuse('lock_not_acquired', why === null ? ENDED : `${ENDED} ${why}`, members);
}

/** The session's lease over exactly these resources. Throws `overlapping_lease` when it has one over some of them. */
function leaseOver(session: Session, resources: readonly Resource[]): Lease | null {
  const found = resources.map(({ key }) => session.byKey.get(key));
  const first = found.find((lease) => lease !== undefined);
  if (first === undefined) return null;
  if (first.resources.length === resources.length && found.every((lease) => lease === first)) return first;
  throw refuse('overlapping_lease', 'The session has another lease over some of these resources.', { lease_ref: first.leaseRef });
}
