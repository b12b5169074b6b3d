import type { DeadlockStep } from '../domain/deadlock.ts';
import type { GatewayError } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import type { LeaseMode, LeaseState } from '../domain/lease.ts';
import type { Caller } from '../domain/principal.ts';
import type { Resource } from '../domain/resource.ts';
import type { Claim } from './coordinator.ts';
import type { Timed } from './deadlines.ts';
import { Holds } from './holds.ts';
import type { AnnouncedEnd, DecidedEnd } from './lease-end.ts';
import type { Session } from './session.ts';

export interface LeaseTerms {
  readonly leaseId: string;
  readonly leaseRef: string;
  readonly resources: readonly Resource[];
  readonly mode: LeaseMode;
  readonly principal: string;
  readonly clientId: string | null;
  readonly priority: number;
  readonly createdOrder: number;
  readonly createdMs: number;
  readonly createdAt: string;
  /** At first; a renewal may change it. */
  readonly ttlMs: number;
  readonly maxWaitMs: number | null;
  readonly maxHoldMs: number | null;
  readonly lockDelayMs: number;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** `null`: a lease for one token-less write, which has no session, no time to live, and no place in the journal. */
  readonly session: Session | null;
  /** Who asked; `null` after a restart. */
  readonly caller: Caller | null;
}

/** What a lease calls back; the desk implements it. */
export interface LeaseEvents {
  isLive(lease: Lease): boolean;
  lapse(lease: Lease): void;
  granted(lease: Lease, token: FencingToken): void;
  waits(lease: Lease): void;
  refused(lease: Lease, error: GatewayError): void;
  vanished(lease: Lease): void;
  deadlocked(lease: Lease, cycle: readonly DeadlockStep[]): void;
}

/** One lease, from its place in line to its end. `told` is what others may know; the rest may be ahead of it. */
export class Lease implements Claim, Timed {
  readonly kind = 'lease';
  readonly terms: LeaseTerms;
  readonly #events: LeaseEvents;
  mode: LeaseMode;
  phase: 'waiting' | 'granting' | 'held' | 'over' = 'waiting';
  /** Mode and token once they are durable. */
  told: { readonly mode: LeaseMode; readonly token: FencingToken } | null = null;
  renewedMs: number;
  ttlMs: number;
  grantedMs = 0;
  grantedAt: string | null = null;
  /** A try: it is never told that it waits. */
  quiet = false;
  /** The coordinator has looked, and did not let it in: until then a try waits for the answer. */
  stands = false;
  /** The coordinator has let it in, and the journal took the grant not yet: it is the first of those who wait. */
  grantPutOff = false;
  /** Its client was told that it waits, and so knows it. */
  waitTold = false;
  /** Others were told that it waits. */
  announced = false;
  readonly holds = new Holds();
  /** By resource key: whatever ends the lease has the last word on them. */
  readonly announcedBreaks = new Map<string, AnnouncedEnd>();
  /** Commit sections and journal units that are under way: an end waits for them. */
  pins = 0;
  decided: DecidedEnd | null = null;
  /** A shared lease asks to become exclusive. */
  upgrade: { readonly askedMs: number; readonly askedAt: string; quiet: boolean; untilMs: number } | null = null;
  /** Others were told that its upgrade waits, and not yet what came of that. */
  upgradeAnnounced = false;
  /** Who asks for its upgrade, and is to be told what became of it: open requests, and those who poll, a hold by its id. */
  readonly upgradeAskers = new Set<object | string>();
  /** The journal says that its upgrade waits. */
  upgradeKept = false;
  /** Its upgrade waited when the gateway was restarted, and is over like every wait. */
  upgradeLost = false;
  /** Its upgrade has given way to a deadlock, and the record of that is not durable yet. */
  givingWay = false;
  /** An exclusive lease whose change to shared waits for its pins, or for the journal: it admits no new write. */
  downgrade: { readonly caller: Caller } | null = null;
  /** The lease never came to be, or its upgrade failed. */
  failure: GatewayError | null = null;
  /** Its node at the grant: it is told of an ended lease, too, whose node is gone. */
  acquiredZnodePath: string | null = null;
  /** In which its upgrade gave way. */
  cycle: readonly DeadlockStep[] | null = null;
  heapIndex = -1;
  dueMs = 0;
  readonly #listeners = new Set<() => void>();

  constructor(terms: LeaseTerms, events: LeaseEvents) {
    this.terms = terms;
    this.#events = events;
    this.mode = terms.mode;
    this.renewedMs = terms.createdMs;
    this.ttlMs = terms.ttlMs;
  }

  get leaseRef(): string {
    return this.terms.leaseRef;
  }
  get clientId(): string | null {
    return this.terms.clientId;
  }
  get party(): object {
    return this.terms.session ?? this;
  }
  get resources(): readonly Resource[] {
    return this.terms.resources;
  }
  get priority(): number {
    return this.terms.priority;
  }
  get lockDelayMs(): number {
    return this.terms.lockDelayMs;
  }
  get createdOrder(): number {
    return this.terms.createdOrder;
  }

  isLive(): boolean {
    return this.#events.isLive(this);
  }
  lapse(): void {
    this.#events.lapse(this);
  }
  granted(token: FencingToken): void {
    this.#events.granted(this, token);
  }
  waits(): void {
    this.#events.waits(this);
  }
  refused(error: GatewayError): void {
    this.#events.refused(this, error);
  }
  vanished(): void {
    this.#events.vanished(this);
  }
  deadlocked(cycle: readonly DeadlockStep[]): void {
    this.#events.deadlocked(this, cycle);
  }

  /** Whether it is known that somebody is in its way. */
  get looked(): boolean {
    return this.stands || this.grantPutOff;
  }

  /** As others see it. */
  get state(): LeaseState {
    if (this.phase === 'over') return this.decided?.end.state ?? 'lost';
    if (this.phase === 'held') return this.decided === null ? 'held' : 'ending';
    return 'waiting';
  }

  /** Neither over nor about to be. */
  get open(): boolean {
    return this.phase !== 'over' && this.decided === null;
  }

  get upgrading(): boolean {
    return this.upgrade !== null;
  }

  /** Its upgrade is decided and may not be told yet. */
  get becomesExclusive(): boolean {
    return this.mode === 'exclusive' && this.told?.mode === 'shared';
  }

  /** From the request to become exclusive until what came of it may be told: decided is not yet told. */
  get becomingExclusive(): boolean {
    return this.phase === 'held' && (this.upgrading || this.givingWay || this.becomesExclusive);
  }

  /** What became of an earlier conversion is said no more: another one begins. */
  forgetConversion(): void {
    this.forgetFailure();
    this.upgradeLost = false;
  }

  /** Everybody who asked for the conversion was told how it failed. That it waited when the gateway stopped is true for whoever asks later, too. */
  forgetFailure(): void {
    this.failure = null;
    this.cycle = null;
  }

  /** When it ends by itself (R2): the earlier of its own time to live and its session's, and the longest hold. */
  get deadlineMs(): number {
    const session = this.terms.session;
    if (session === null) return Number.POSITIVE_INFINITY;
    return Math.min(this.ownDeadlineMs, session.deadlineMs, this.holdDeadlineMs);
  }

  /** By its own time to live. */
  get ownDeadlineMs(): number {
    return Math.max(this.renewedMs, this.terms.session?.renewedMs ?? 0) + this.ttlMs;
  }

  get holdDeadlineMs(): number {
    return this.phase === 'held' && this.terms.maxHoldMs !== null ? this.grantedMs + this.terms.maxHoldMs : Number.POSITIVE_INFINITY;
  }

  /** When the first administrator's grace is over; the lease may end by itself before. */
  get breaksAtMs(): number {
    return Math.min(Number.POSITIVE_INFINITY, ...[...this.announcedBreaks.values()].map(({ untilMs }) => untilMs));
  }

  get waitDeadlineMs(): number {
    return this.phase === 'waiting' && this.terms.maxWaitMs !== null ? this.terms.createdMs + this.terms.maxWaitMs : Number.POSITIVE_INFINITY;
  }

  /** When its upgrade waits no more; a try is answered when the coordinator has looked. */
  get upgradeDeadlineMs(): number {
    return this.upgrade?.quiet === false ? this.upgrade.untilMs : Number.POSITIVE_INFINITY;
  }

  get nextCheckMs(): number {
    return Math.min(this.deadlineMs, this.waitDeadlineMs, this.upgradeDeadlineMs);
  }

  /** A sign of life: of the lease, and of its session if a lease made that. */
  renew(nowMs: number): void {
    this.renewedMs = nowMs;
    if (this.terms.session?.terms.implied === true) this.terms.session.renewedMs = nowMs;
  }

  covers(resourceKey: string): boolean {
    return this.terms.resources.some((resource) => resource.key === resourceKey);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  nextChange(): Promise<void> {
    return new Promise((resolve) => {
      const off = this.onChange(() => {
        off();
        resolve();
      });
    });
  }

  /** The coordinator has looked and did not let it in. */
  standsNow(): void {
    this.stands = true;
    this.changed();
  }

  /** To be called only for what may be told. */
  changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
