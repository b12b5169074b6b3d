import { setMaxListeners } from 'node:events';
import type { ClientClock, ClientTimer } from './clock.ts';
import type { Lease, LeaseMode } from './contract/answers.ts';
import { FencegateError } from './errors.ts';
import { defaultMarginMs } from './lease-margin.ts';
import { ttlOf } from './ttl-of.ts';

export type HeldLeaseState = 'held' | 'released' | 'lost';

/** Who says so: the clock of this process, which is early, or the gateway. */
export type LostBy = 'clock' | 'gateway';

export interface HeldLeaseParts {
  readonly clock: ClientClock;
  readonly lease: Lease;
  /** By the own clock: until when the gateway certainly keeps the lease. */
  readonly untilMs: number;
  /** When the request was sent that `lease` answers. */
  readonly askedMs: number;
  /** What was left then of the longest hold, however often it is renewed; infinite for none. */
  readonly holdMs: number;
  readonly marginMs: number | null;
}

/**
 * A lease as this process may count on it. Its end is judged by the own clock alone, from *before* the request that renewed it was
 * sent, less a margin: so it is over here before it can be over at the gateway (case R24). Judged at each use, not only by a timer:
 * a process that was stopped finds it lost before it sends anything (case R25).
 */
export class HeldLease {
  readonly leaseId: string;
  readonly leaseRef: string;
  readonly sessionId: string;
  readonly resources: readonly string[];
  readonly ttlMs: number;
  readonly holds = new Set<string>();
  readonly #clock: ClientClock;
  readonly #controller = new AbortController();
  readonly #listeners = new Set<() => void>();
  #mode: LeaseMode;
  #token: string;
  #signedToken: string | null;
  #untilMs: number;
  /** How long the answer that said so gave it. */
  #toldMs: number;
  readonly #marginMs: number;
  /** However often it is renewed. */
  #holdUntilMs: number;
  /** What ends it then. */
  #holdEnd: 'max_hold' | 'broken' = 'max_hold';
  #state: HeldLeaseState = 'held';
  #loss: FencegateError | null = null;
  #lostBy: LostBy | null = null;
  #timer: ClientTimer | null = null;

  constructor({ clock, lease, untilMs, askedMs, holdMs, marginMs }: HeldLeaseParts) {
    this.#clock = clock;
    this.leaseId = lease.lease_id;
    this.leaseRef = lease.lease_ref;
    this.sessionId = lease.session_id ?? '';
    this.resources = lease.resources;
    this.ttlMs = ttlOf(lease);
    this.#marginMs = marginMs ?? defaultMarginMs(this.ttlMs, holdMs);
    this.#toldMs = untilMs - askedMs;
    this.#mode = lease.mode ?? 'exclusive';
    this.#token = lease.fencing_token ?? '';
    this.#signedToken = lease.signed_token;
    this.#holdUntilMs = askedMs + holdMs;
    this.#untilMs = Math.min(untilMs, this.#holdUntilMs);
    // One listener for each write that is under way.
    setMaxListeners(0, this.signal);
    this.#arm();
  }

  get mode(): LeaseMode {
    return this.#mode;
  }

  get token(): string {
    return this.#token;
  }

  /** What a write sends: the signed token where the volume asks for one. */
  get writeToken(): string {
    return this.#signedToken ?? this.#token;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get loss(): FencegateError | null {
    return this.#loss;
  }

  get lostBy(): LostBy | null {
    return this.#lostBy;
  }

  get state(): HeldLeaseState {
    if (this.#state === 'held' && this.remainingMs <= 0) this.lose(this.#untilMs === this.#holdUntilMs ? this.#holdEnd : 'expired', 'clock');
    return this.#state;
  }

  /** How long it lives when it is not renewed, ms: at most its time to live, less where the gateway can vouch for less (over ZooKeeper). */
  get livesForMs(): number {
    return Math.min(this.ttlMs, this.#toldMs);
  }

  /** By how much it counts as over too early, ms: at most half of what it lives for, as it is renewed in thirds of that. */
  get marginMs(): number {
    return Math.min(this.#marginMs, this.livesForMs / 2);
  }

  /** What is left to rely on, ms; the margin is taken off. */
  get remainingMs(): number {
    return Math.max(0, this.#untilMs - this.marginMs - this.#clock.monotonicMs());
  }

  /** Until when the gateway certainly keeps it, ms, margin included: whoever was told of the loss has that long to stop. */
  get keptForMs(): number {
    return Math.max(0, this.#untilMs - this.#clock.monotonicMs());
  }

  covers(resource: string): boolean {
    return this.resources.includes(resource);
  }

  /** Throws `lease_lost` or `lease_released`. */
  assertHeld(): void {
    const { state } = this;
    if (state === 'lost') throw this.#loss ?? lossOf(this.#token, 'lost', 'clock');
    if (state === 'released') throw new FencegateError('lease_released', { detail: 'The lease was released by this process.' });
  }

  /** The gateway renewed it at some time after `sentMs`, for `forMs`. What is lost stays lost. */
  renewed(sentMs: number, forMs: number): void {
    if (this.state !== 'held') return;
    const untilMs = Math.min(sentMs + forMs, this.#holdUntilMs);
    if (untilMs <= this.#untilMs) return;
    this.#untilMs = untilMs;
    this.#toldMs = forMs;
    this.#arm();
  }

  /** An administrator breaks it then at the latest; nothing moves that. */
  breaksBy(untilMs: number): void {
    if (this.state !== 'held') return;
    if (untilMs < this.#holdUntilMs) this.#holdEnd = 'broken';
    this.#holdUntilMs = Math.min(untilMs, this.#holdUntilMs);
    this.#untilMs = Math.min(this.#untilMs, this.#holdUntilMs);
    this.#arm();
  }

  converted(lease: Lease): void {
    this.#mode = lease.mode ?? this.#mode;
    this.#token = lease.fencing_token ?? this.#token;
    this.#signedToken = lease.signed_token;
  }

  released(): void {
    if (this.#state !== 'held') return;
    this.#state = 'released';
    this.#over();
  }

  /** The first reason stands. No write is made from here on; `signal` tells those who listen. */
  lose(reason: string, by: LostBy): void {
    if (this.#state !== 'held') return;
    this.#state = 'lost';
    this.#lostBy = by;
    this.#loss = lossOf(this.#token, reason, by);
    this.#over();
    this.#controller.abort(this.#loss);
  }

  /** `listener` is called once, when it is released or lost. */
  onEnd(listener: () => void): void {
    this.#listeners.add(listener);
  }

  #over(): void {
    this.#timer?.cancel();
    for (const listener of [...this.#listeners]) listener();
    this.#listeners.clear();
  }

  #arm(): void {
    this.#timer?.cancel();
    // Looking at the state is what loses it.
    this.#timer = this.#clock.after(this.remainingMs, () => this.state === 'held' && this.#arm());
  }
}

function lossOf(token: string, reason: string, by: LostBy): FencegateError {
  const source = by === 'clock' ? 'by the clock of this process' : 'says the gateway';
  const detail = `The lease is lost: ${reason}, ${source}. Nothing more is written under token ${token}.`;
  return new FencegateError('lease_lost', { detail, members: { reason, fencing_token: token, lost_by: by } });
}
