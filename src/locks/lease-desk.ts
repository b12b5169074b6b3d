import { type Clock, rfc3339 } from '../domain/clock.ts';
import { asGatewayError, refuse } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import type { Pin } from '../domain/lease.ts';
import type { Caller } from '../domain/principal.ts';
import type { Resource } from '../domain/resource.ts';
import type { TokenCeilings } from '../domain/token-ceilings.ts';
import type { Coordinator, DeadlockStep } from './coordinator.ts';
import { Deadlines } from './deadlines.ts';
import { endKinds } from './end-kinds.ts';
import { EndedLeases } from './ended-leases.ts';
import type { EventRing } from './event-ring.ts';
import type { HoldTimes } from './hold-times.ts';
import type { LeaseLedger } from './lease-ledger.ts';
import { type End, Lease, type LeaseEvents, type LeaseTerms } from './lease-record.ts';
import type { Session } from './session.ts';

export interface DeskDeps {
  readonly clock: Clock;
  readonly coordinator: Coordinator<Lease>;
  readonly ledger: LeaseLedger;
  readonly ceilings: TokenCeilings;
  readonly events: EventRing;
  readonly holdTimes: HoldTimes;
}

/**
 * The life of a lease between the coordinator, which decides, and the journal, which makes it so. Carries I1 (a pin keeps a lease
 * from ending) and I2 (nobody is told of a grant before its mark is durable), and R14: every change is guarded by the state.
 * Time is judged at each use: `now` ends whatever is over before anything else looks.
 */
export class LeaseDesk implements LeaseEvents {
  readonly #deps: DeskDeps;
  readonly #live = new Map<string, Lease>();
  readonly #byToken = new Map<FencingToken, Lease>();
  readonly #ended = new EndedLeases();
  readonly #deadlines: Deadlines<Lease | Session>;
  #sweeping = false;
  #stopped = false;
  #sessionOver: (session: Session) => void = () => undefined;

  constructor(deps: DeskDeps) {
    this.#deps = deps;
    this.#deadlines = new Deadlines(deps.clock, () => void this.now());
  }

  /** Ends everything whose time is up, then says what time it is. */
  now(): number {
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#sweeping || this.#stopped) return nowMs;
    this.#sweeping = true;
    const over: { readonly lease: Lease; readonly end: End }[] = [];
    for (let due = this.#deadlines.takeDue(nowMs); due !== null; due = this.#deadlines.takeDue(nowMs)) {
      if (due.kind === 'lease') over.push(...this.#judgeLease(due, nowMs));
      else over.push(...this.#judgeSession(due, nowMs));
    }
    this.#sweeping = false;
    if (over.length > 0) this.decide(over);
    return nowMs;
  }

  onSessionOver(listener: (session: Session) => void): void {
    this.#sessionOver = listener;
  }

  watchSession(session: Session): void {
    this.#deadlines.set(session, session.deadlineMs);
  }

  unwatchSession(session: Session): void {
    this.#deadlines.remove(session);
  }

  make(terms: LeaseTerms): Lease {
    return new Lease(terms, this);
  }

  /** Stands in line; what comes of it is told by the lease's `onChange`. */
  enter(lease: Lease): void {
    this.#register(lease);
    this.#deps.coordinator.enter(lease);
    if (lease.phase === 'waiting' && lease.terms.session !== null) this.#deps.events.lease('waiting', lease, null);
  }

  /** Puts a lease back as it was before a restart, with a fresh time to live. */
  restore(lease: Lease, told: NonNullable<Lease['told']>, grantedAt: string): void {
    lease.phase = 'held';
    lease.told = told;
    lease.grantedAt = grantedAt;
    lease.grantedMs = this.#deps.clock.monotonicMs();
    this.#register(lease);
    this.#byToken.set(told.token, lease);
    this.#deps.coordinator.seat(lease, told.token);
  }

  byRef(leaseRef: string): Lease | null {
    return this.#live.get(leaseRef) ?? this.#ended.byRef(leaseRef, this.#deps.clock.monotonicMs());
  }

  byToken(token: FencingToken): Lease | null {
    return this.#byToken.get(token) ?? this.#ended.byToken(token);
  }

  all(): Iterable<Lease> {
    return this.#live.values();
  }

  /** A try that got nothing: leaves the line without a trace, its refusal is the record. */
  withdraw(lease: Lease, error: Lease['failure']): void {
    if (lease.phase !== 'waiting') return;
    lease.failure = error;
    this.#unregister(lease);
    this.#deps.coordinator.leave(lease, 0);
    lease.changed();
  }

  /** Ends a lease now, or as soon as nothing pins it. Idempotent: the first end stands. */
  end(lease: Lease, end: End): void {
    this.decide([{ lease, end }]);
  }

  /** The same for several at once, in as few journal units as possible. */
  decide(ends: readonly { readonly lease: Lease; readonly end: End }[]): void {
    const ready: Lease[] = [];
    for (const { lease, end } of ends) {
      if (!lease.open) continue;
      this.#record(lease, end);
      if (lease.pins > 0) continue;
      if (lease.decided?.fencedBy != null) void this.#fenceThenEnd(lease);
      else ready.push(lease);
    }
    this.#takeEffect(ready);
  }

  /** Resolves when the end may be told; rejects when the journal refused, and then tries again at the next call. */
  async endTold(lease: Lease): Promise<void> {
    while (lease.phase !== 'over') await new Promise<void>((resolve) => { const off = lease.onChange(() => { off(); resolve(); }); });
    const decided = lease.decided;
    if (decided === null) return;
    if (!decided.failed) return decided.durable;
    await this.#deps.ledger.endedAgain(lease);
    decided.failed = false;
    this.#deps.events.ended(lease, decided.end);
  }

  /** I1. Throws 412 when the lease of `token` may not write here now. */
  pin(resource: Resource, token: FencingToken): Pin {
    this.now();
    const lease = this.#byToken.get(token);
    const told = lease?.told ?? null;
    const mark = this.#deps.coordinator.look(resource.key)?.mark ?? null;
    if (lease === undefined || told === null || !lease.covers(resource.key) || !lease.open || lease.phase !== 'held') throw this.#notHeld(token, mark);
    if (told.mode !== 'exclusive' || lease.downgrade !== null) throw refuse('lease_is_shared', 'The token belongs to a shared lease; only an exclusive one may write.', { presented_token: token.toString() });
    if (mark !== token || told.token !== token) throw stale(token);
    return this.hold(lease);
  }

  hold(lease: Lease): Pin {
    const { resources, principal, clientId, leaseRef } = lease.terms;
    lease.pins += 1;
    let left = false;
    const leave = (): void => {
      if (left) return;
      left = true;
      lease.pins -= 1;
      if (lease.pins === 0) this.#unpinned(lease);
    };
    return { lease: { leaseRef, resources, principal, clientId, mode: lease.told?.mode ?? lease.mode, token: lease.told?.token as FencingToken }, leave };
  }

  /** Exclusive to shared: when the last pin has left. The promise settles when it may be told. */
  downgrade(lease: Lease, caller: Caller): void {
    if (lease.downgrade !== null) return;
    lease.downgrade = { caller };
    if (lease.pins === 0) this.#downgradeNow(lease);
  }

  isLive(lease: Lease): boolean {
    return lease.open && this.#deps.clock.monotonicMs() < lease.deadlineMs;
  }

  lapse(lease: Lease): void {
    this.end(lease, endKinds.expired());
  }

  granted(lease: Lease, token: FencingToken): void {
    if (lease.upgrading) {
      lease.upgrading = false;
      void this.#tellUpgrade(lease, token);
      return;
    }
    lease.phase = 'granting';
    void this.#tellGrant(lease, token);
  }

  refused(lease: Lease, error: NonNullable<Lease['failure']>): void {
    lease.failure = error;
    this.#unregister(lease);
    lease.changed();
  }

  deadlocked(lease: Lease, cycle: readonly DeadlockStep[]): void {
    if (!lease.upgrading) {
      if (lease.phase === 'waiting') this.end(lease, endKinds.deadlock(cycle));
      return;
    }
    this.#deps.coordinator.cancelUpgrade(lease);
    lease.upgrading = false;
    lease.failure = refuse('deadlock', 'The upgrade would wait for somebody who waits for this session.', { cycle });
    lease.changed();
  }

  stop(): void {
    this.#stopped = true;
    this.#deadlines.stop();
  }

  #register(lease: Lease): void {
    this.#live.set(lease.leaseRef, lease);
    const session = lease.terms.session;
    if (session === null) return;
    session.leases.add(lease);
    for (const { key } of lease.resources) session.byKey.set(key, lease);
    this.#deadlines.set(lease, lease.nextCheckMs);
  }

  /** Takes it out of everything but the coordinator. */
  #unregister(lease: Lease): void {
    lease.phase = 'over';
    this.#live.delete(lease.leaseRef);
    if (lease.told !== null) this.#byToken.delete(lease.told.token);
    this.#deadlines.remove(lease);
    lease.terms.session?.leases.delete(lease);
    this.#forgetKeys(lease);
    if (lease.terms.session?.terms.implied === true) this.#sessionOver(lease.terms.session);
  }

  #forgetKeys(lease: Lease): void {
    const byKey = lease.terms.session?.byKey;
    for (const { key } of lease.resources) if (byKey?.get(key) === lease) byKey.delete(key);
  }

  #judgeLease(lease: Lease, nowMs: number): { readonly lease: Lease; readonly end: End }[] {
    if (!lease.open) return [];
    if (nowMs >= lease.deadlineMs) return [{ lease, end: nowMs >= lease.holdDeadlineMs ? endKinds.maxHold() : endKinds.expired() }];
    if (nowMs >= lease.waitDeadlineMs) return [{ lease, end: endKinds.waitedOut() }];
    this.#deadlines.set(lease, lease.nextCheckMs);
    return [];
  }

  #judgeSession(session: Session, nowMs: number): { readonly lease: Lease; readonly end: End }[] {
    if (session.ended) return [];
    if (nowMs < session.deadlineMs) {
      this.#deadlines.set(session, session.deadlineMs);
      return [];
    }
    this.#sessionOver(session);
    const end = session.terms.implied ? endKinds.expired() : endKinds.sessionExpired();
    return [...session.leases].map((lease) => ({ lease, end }));
  }

  #record(lease: Lease, end: End): void {
    const fencedBy = end.fence && lease.told !== null ? this.#deps.coordinator.fence(lease) : null;
    lease.decided = { end, endedAt: null, fencedBy, durable: Promise.resolve(), failed: false };
    this.#forgetKeys(lease);
    const session = lease.terms.session;
    if (session !== null && !end.clean && lease.told !== null) session.noteLost(lease.terms.leaseId, this.#deps.clock.monotonicMs());
  }

  async #fenceThenEnd(lease: Lease): Promise<void> {
    const token = lease.decided?.fencedBy ?? null;
    if (token !== null) {
      // A volume that cannot take the ceiling cannot be written either: the end itself must not hang on it.
      await this.#reserve(lease.resources, token).catch(() => undefined);
    }
    this.#takeEffect([lease]);
  }

  /** The units go to the journal first, then the places are given up: so the next grant's unit comes after. */
  #takeEffect(leases: readonly Lease[]): void {
    if (leases.length === 0) return;
    const at = rfc3339(this.#deps.clock.wallMs());
    const nowMs = this.#deps.clock.monotonicMs();
    for (const lease of leases) {
      if (lease.decided !== null) lease.decided.endedAt = at;
      this.#unregister(lease);
      if (lease.terms.session === null) continue;
      this.#ended.add(lease, nowMs);
      if (lease.told !== null) this.#deps.holdTimes.ended(nowMs - lease.grantedMs);
    }
    this.#deps.ledger.ended(leases);
    for (const lease of leases) {
      const clean = lease.decided?.end.clean !== false || lease.told === null;
      this.#deps.coordinator.leave(lease, clean ? 0 : lease.terms.lockDelayMs);
      void this.#tellEnd(lease);
    }
  }

  async #tellEnd(lease: Lease): Promise<void> {
    const decided = lease.decided;
    if (decided === null) return;
    try {
      await decided.durable;
      if (lease.terms.session !== null) this.#deps.events.ended(lease, decided.end);
    } catch {
      // Whoever asks for this end learns it from `endTold`, which tries again.
      decided.failed = true;
    }
    lease.changed();
  }

  async #tellGrant(lease: Lease, token: FencingToken): Promise<void> {
    const pin = this.#busy(lease);
    try {
      await this.#reserve(lease.resources, token);
      lease.grantedAt = rfc3339(this.#deps.clock.wallMs());
      if (lease.terms.session !== null) await this.#deps.ledger.granted(lease, token, 'lease_grant');
    } catch (thrown) {
      this.#grantFailed(lease, thrown);
      return;
    }
    const nowMs = this.#deps.clock.monotonicMs();
    lease.phase = 'held';
    lease.told = { mode: lease.mode, token };
    lease.grantedMs = nowMs;
    lease.renewedMs = nowMs;
    if (lease.terms.session?.terms.implied === true) lease.terms.session.renewedMs = nowMs;
    this.#byToken.set(token, lease);
    if (lease.terms.session !== null && lease.decided === null) {
      this.#deadlines.set(lease, lease.nextCheckMs);
      this.#deps.events.lease('granted', lease, null);
    }
    lease.changed();
    pin();
  }

  /** It did not happen: the place is given up, and the next one tries. */
  #grantFailed(lease: Lease, thrown: unknown): void {
    lease.failure = asGatewayError(thrown);
    this.#unregister(lease);
    this.#deps.coordinator.leave(lease, 0);
    lease.changed();
  }

  async #tellUpgrade(lease: Lease, token: FencingToken): Promise<void> {
    const unpin = this.#busy(lease);
    try {
      await this.#reserve(lease.resources, token);
      await this.#deps.ledger.granted(lease, token, 'lease_convert');
      if (lease.told !== null) this.#byToken.delete(lease.told.token);
      lease.told = { mode: 'exclusive', token };
      this.#byToken.set(token, lease);
      if (lease.decided === null) this.#deps.events.lease('converted', lease, null);
    } catch (thrown) {
      lease.failure = asGatewayError(thrown);
      this.#deps.coordinator.downgrade(lease);
    }
    lease.changed();
    unpin();
  }

  #busy(lease: Lease): () => void {
    lease.pins += 1;
    return () => {
      lease.pins -= 1;
      if (lease.pins === 0) this.#unpinned(lease);
    };
  }

  #unpinned(lease: Lease): void {
    if (lease.phase === 'over') return;
    if (lease.decided !== null) void this.#fenceThenEnd(lease);
    else if (lease.downgrade !== null) this.#downgradeNow(lease);
  }

  #downgradeNow(lease: Lease): void {
    const { session } = lease.terms;
    const { told, downgrade } = lease;
    if (session === null || told === null || downgrade === null) return;
    lease.told = { mode: 'shared', token: told.token };
    const durable = this.#deps.ledger.kept(lease, session, lease.told, 'lease_convert', downgrade.caller);
    this.#deps.coordinator.downgrade(lease);
    const unpin = this.#busy(lease);
    durable.then(
      () => {
        if (lease.decided === null) this.#deps.events.lease('converted', lease, null);
      },
      (thrown: unknown) => {
        lease.failure = asGatewayError(thrown);
      },
    ).finally(() => {
      lease.downgrade = null;
      lease.changed();
      unpin();
    });
  }

  async #reserve(resources: readonly Resource[], token: FencingToken): Promise<void> {
    const volumes = new Set(resources.map((resource) => resource.volume));
    await Promise.all([...volumes].map((volume) => this.#deps.ceilings.reserve(volume, token)));
  }

  #notHeld(token: FencingToken, mark: FencingToken | null) {
    const decided = this.byToken(token)?.decided ?? null;
    if (mark !== null && mark > token && decided === null) return stale(token);
    return refuse('lease_ended', 'The lease of this token has ended.', { reason: decided?.end.reason ?? null, ended_at: decided?.endedAt ?? null });
  }
}

function stale(token: FencingToken) {
  return refuse('stale_token', 'A newer token exists for this resource: the lease behind this one is over.', { presented_token: token.toString(), newer_token_exists: true });
}
