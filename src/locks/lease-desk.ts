import { type Clock, rfc3339 } from '../domain/clock.ts';
import type { DeadlockStep } from '../domain/deadlock.ts';
import { GatewayError } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import type { StoredLease } from '../domain/journal.ts';
import type { Pin } from '../domain/lease.ts';
import type { Caller } from '../domain/principal.ts';
import type { Resource } from '../domain/resource.ts';
import type { Coordinator } from './coordinator.ts';
import { abandonUnfenced, type Ending, endByTime, endKinds } from './end-kinds.ts';
import type { EndsTold } from './ends-told.ts';
import type { EventRing } from './event-ring.ts';
import { foreignBefore } from './foreign-there.ts';
import { GivingWay } from './giving-way.ts';
import type { Granting } from './granting.ts';
import { grantedMsOf } from './held-so-far.ts';
import type { HoldTimes } from './hold-times.ts';
import { type DecidedEnd, decidedEnd, type End } from './lease-end.ts';
import type { LeaseLedger } from './lease-ledger.ts';
import { Lease, type LeaseEvents, type LeaseTerms } from './lease-record.ts';
import type { LeaseTable } from './lease-table.ts';
import type { Pinnable } from './pinnable.ts';
import type { Session } from './session.ts';

export interface LeaseDeskDeps {
  readonly clock: Clock;
  readonly coordinator: Coordinator<Lease>;
  readonly pinnable: Pinnable;
  readonly table: LeaseTable;
  readonly granting: Granting;
  readonly ledger: LeaseLedger;
  readonly ends: EndsTold;
  readonly events: EventRing;
  readonly holdTimes: HoldTimes;
}

/**
 * The life of a lease between the coordinator, which decides, and the journal, which makes it so. Carries I1 (a pin keeps a lease
 * from ending) and R14: every change is guarded by the state, and the first end stands.
 * Time is judged at each use: `now` ends whatever is over before anything else looks, so nothing that is over comes back.
 */
export class LeaseDesk implements LeaseEvents {
  readonly #deps: LeaseDeskDeps;
  readonly #givingWay: GivingWay;
  #sweeping = false;
  #stopped = false;
  #sessionOver: (session: Session) => void = () => undefined;

  constructor(deps: LeaseDeskDeps) {
    this.#deps = deps;
    this.#givingWay = new GivingWay(deps);
  }

  /** Ends everything whose time is up, then says what time it is. */
  now(): number {
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#sweeping || this.#stopped) return nowMs;
    this.#sweeping = true;
    const over: Ending[] = [];
    const { deadlines } = this.#deps.table;
    for (let due = deadlines.takeDue(nowMs); due !== null; due = deadlines.takeDue(nowMs)) {
      over.push(...(due.kind === 'lease' ? this.#judgeLease(due, nowMs) : this.#judgeSession(due, nowMs)));
    }
    this.#sweeping = false;
    if (over.length > 0) this.decide(over);
    return nowMs;
  }

  /** `listener` is called when a session's time is up, or when one that a lease made loses its last lease. */
  onSessionOver(listener: (session: Session) => void): void {
    this.#sessionOver = listener;
  }

  make(terms: LeaseTerms): Lease {
    return new Lease(terms, this);
  }

  /** Stands in line; what comes of it is told by the lease's `onChange`. */
  enter(lease: Lease): void {
    this.#deps.table.add(lease);
    this.#deps.coordinator.enter(lease);
  }

  /** Puts a lease back as it was before a restart, with a fresh time to live. Its seat in the coordinator is the caller's matter. */
  restore(lease: Lease, told: NonNullable<Lease['told']>, stored: StoredLease): void {
    lease.phase = 'held';
    lease.grantedAt = stored.grantedAt;
    lease.grantedMs = grantedMsOf(stored, this.#deps.clock);
    this.#deps.table.add(lease);
    this.#deps.table.tell(lease, told);
  }

  /** A try that got nothing, or a wait that ran out before its first answer: leaves without a trace, its refusal is the record. */
  withdraw(lease: Lease, error: GatewayError): void {
    if (lease.phase !== 'waiting') return;
    lease.failure = error;
    this.#remove(lease);
    this.#deps.coordinator.leave(lease, 0);
    lease.changed();
  }

  /** Ends a lease now, or as soon as nothing pins it. Idempotent. */
  end(lease: Lease, end: End): void {
    this.decide([{ lease, end }]);
  }

  /** The same for several at once, in as few journal units as possible. */
  decide(ends: readonly Ending[]): void {
    const ready: Lease[] = [];
    for (const { lease, end } of ends) {
      if (!lease.open) continue;
      this.#record(lease, end);
      if (lease.pins > 0) continue;
      if (lease.decided?.end.fence !== true) ready.push(lease);
      else void this.#fenceThenEnd(lease, lease.decided);
    }
    this.#takeEffect(ready);
  }

  /** See `EndsTold`. */
  endTold(lease: Lease): Promise<void> {
    return this.#deps.ends.told(lease);
  }

  /** I1. Throws 503 while the coordinator is not in contact, 412 when the lease of `token` may not write here now. */
  pin(resource: Resource, token: FencingToken): Pin {
    this.now();
    const lease = this.#deps.pinnable.lease(resource, token);
    const { resources, principal, clientId, leaseRef } = lease.terms;
    return { lease: { leaseRef, resources, principal, clientId, ...lease.told }, leave: this.#hold(lease) };
  }

  /** Exclusive to shared, when the last pin has left; until that is durable, or refused, no new write is admitted. */
  downgrade(lease: Lease, caller: Caller): void {
    if (lease.downgrade !== null) return;
    lease.downgrade = { caller };
    if (lease.pins === 0) this.#unpinned(lease);
  }

  isLive(lease: Lease): boolean {
    return lease.open && this.#deps.clock.monotonicMs() < lease.deadlineMs;
  }

  lapse(lease: Lease): void {
    this.end(lease, endKinds.expired());
  }

  granted(lease: Lease, token: FencingToken): void {
    const { granting } = this.#deps;
    const told = lease.phase === 'held' ? granting.upgrade(lease, token) : granting.grant(lease, token);
    lease.upgrade = null;
    void told.then((never) => {
      if (never instanceof GatewayError) {
        lease.failure = never;
        this.end(lease, endKinds.notGranted(never.code));
      }
      this.#settled(lease);
    });
  }

  vanished(lease: Lease): void {
    this.end(lease, endKinds.lost());
  }

  waits(lease: Lease): void {
    if (!lease.stands) lease.standsNow();
    if (lease.terms.session === null) return;
    if (lease.phase === 'waiting' && !lease.quiet && !lease.announced) {
      lease.announced = true;
      this.#deps.events.lease('waiting', lease, null);
    }
    if (lease.upgrade?.quiet === false && !lease.upgradeAnnounced) this.#deps.events.upgradeWaits(lease);
  }

  refused(lease: Lease, error: GatewayError): void {
    lease.failure = error;
    // A lease over several may be refused late, when its client knows it already.
    if (lease.waitTold) this.end(lease, endKinds.notGranted(error.code));
    else {
      this.#remove(lease);
      lease.changed();
    }
  }

  deadlocked(lease: Lease, cycle: readonly DeadlockStep[]): void {
    if (lease.upgrading) void this.#givingWay.upgrade(lease, cycle);
    else if (lease.phase === 'waiting') this.end(lease, endKinds.deadlock(cycle));
  }

  stop(): void {
    this.#stopped = true;
    this.#deps.table.deadlines.stop();
    this.#deps.ends.stop();
    this.#deps.granting.stop();
  }

  #judgeLease(lease: Lease, nowMs: number): Ending[] {
    if (!lease.open) return [];
    const end = endByTime(lease, nowMs, () => foreignBefore(this.#deps.coordinator, lease));
    if (end !== null) return [{ lease, end }];
    if (nowMs >= lease.upgradeDeadlineMs) this.#givingWay.waitedOut(lease);
    this.#deps.table.deadlines.set(lease, lease.nextCheckMs);
    return [];
  }

  #judgeSession(session: Session, nowMs: number): Ending[] {
    if (session.ended) return [];
    if (nowMs < session.deadlineMs) {
      this.#deps.table.deadlines.set(session, session.deadlineMs);
      return [];
    }
    this.#sessionOver(session);
    return [...session.leases].map((lease) => ({ lease, end: endKinds.sessionExpired() }));
  }

  #record(lease: Lease, end: End): void {
    const decided = decidedEnd(end);
    lease.decided = decided;
    // It waits for nothing any more, and whoever waits with it is answered. The coordinator lets it go with the rest.
    lease.upgrade = null;
    if (end.fence && lease.told !== null) decided.fencing = this.#fence(lease, decided);
    this.#deps.table.unkey(lease);
    if (lease.told === null ? lease.waitTold && end.state === 'lost' : !end.clean) lease.terms.session?.losing.add(lease);
  }

  async #fence(lease: Lease, decided: DecidedEnd): Promise<void> {
    const minted = this.#deps.coordinator.fence(lease);
    try {
      decided.fencedBy = typeof minted === 'bigint' ? minted : await minted;
    } catch {
      // Without a coordinator nothing is granted either: the lease ends, and whoever comes next gets a higher number.
    }
  }

  /** A volume that cannot take the ceiling cannot be written either, so the end does not hang on it. */
  async #fenceThenEnd(lease: Lease, decided: DecidedEnd): Promise<void> {
    // Also one whose grant was under way. Nobody has a token of one that still waits for some of its names.
    if (lease.told !== null) decided.fencing ??= this.#fence(lease, decided);
    await decided.fencing;
    if (decided.fencedBy !== null) await this.#deps.granting.reserve(lease.resources, decided.fencedBy).catch(() => undefined);
    if (decided.end.lateDetail !== undefined) decided.detail = await decided.end.lateDetail();
    if (lease.told !== null) abandonUnfenced(decided);
    if (lease.phase !== 'over') this.#takeEffect([lease]);
  }

  /** The units go to the journal first, then the places are given up: so the next grant's unit comes after. */
  #takeEffect(leases: readonly Lease[]): void {
    if (leases.length === 0) return;
    const at = rfc3339(this.#deps.clock.wallMs());
    for (const lease of leases) {
      if (lease.decided !== null) lease.decided.endedAt = at;
      this.#remove(lease);
      if (lease.terms.session !== null && lease.told !== null) this.#deps.holdTimes.ended(this.#deps.clock.monotonicMs() - lease.grantedMs);
    }
    this.#deps.ends.begin(leases);
    for (const lease of leases) {
      const clean = lease.decided?.end.clean !== false || lease.told === null;
      this.#deps.coordinator.leave(lease, clean ? 0 : lease.terms.lockDelayMs);
    }
  }

  #remove(lease: Lease): void {
    this.#leaveSession(lease);
    this.#deps.table.remove(lease);
  }

  #leaveSession(lease: Lease): void {
    const { session } = lease.terms;
    if (session?.isOverWith(lease) === true) this.#sessionOver(session);
  }

  #hold(lease: Lease): () => void {
    let left = false;
    lease.pins += 1;
    return () => {
      if (left) return;
      left = true;
      lease.pins -= 1;
      this.#unpinned(lease);
    };
  }

  /** A grant or conversion is over: told first, then whatever was decided meanwhile. */
  #settled(lease: Lease): void {
    if (lease.phase === 'over') this.#leaveSession(lease);
    lease.changed();
    this.#unpinned(lease);
  }

  #unpinned(lease: Lease): void {
    if (lease.pins > 0 || lease.phase === 'over') return;
    if (lease.decided !== null) {
      if (!lease.decided.end.fence) this.#takeEffect([lease]);
      else void this.#fenceThenEnd(lease, lease.decided);
    } else if (lease.downgrade !== null) {
      void this.#deps.granting.downgrade(lease).then(() => this.#settled(lease));
    }
  }
}
