import type { ClientEventListener } from './client-events.ts';
import { CLIENT_LIMITS } from './client-limits.ts';
import type { Lease, LeaseMode } from './contract/answers.ts';
import type { Converting } from './converting.ts';
import { FencegateError, isFencegateError } from './errors.ts';
import type { HeldLease, HeldLeaseState } from './held-lease.ts';
import type { ConvertOptions, LeaseStanding } from './lease-standing.ts';
import type { Place } from './local-line.ts';
import type { SessionKeeper } from './session-keeper.ts';
import type { Transport } from './transport.ts';

export interface OwnStandingParts {
  readonly lease: HeldLease;
  readonly holdId: string;
  /** The place among the tasks of this process; `null` for a nested hold, which has none of its own. */
  readonly place: Place | null;
  readonly leavePlace: () => void;
  readonly transport: Transport;
  readonly keeper: SessionKeeper;
  readonly converting: Converting;
  readonly onEvent: ClientEventListener;
}

/** One hold on a lease of this client. */
export class OwnStanding implements LeaseStanding {
  readonly #parts: OwnStandingParts;
  readonly #lease: HeldLease;
  #releasing: Promise<void> | null = null;

  constructor(parts: OwnStandingParts) {
    this.#parts = parts;
    this.#lease = parts.lease;
    this.#lease.onEnd(() => void parts.keeper.givenBack(this.#lease).then(parts.leavePlace));
  }

  get leaseId(): string {
    return this.#lease.leaseId;
  }

  get leaseRef(): string {
    return this.#lease.leaseRef;
  }

  get resources(): readonly string[] {
    return this.#lease.resources;
  }

  get mode(): LeaseMode {
    return this.#lease.mode;
  }

  get token(): string {
    return this.#lease.token;
  }

  get writeToken(): string {
    return this.#lease.writeToken;
  }

  get state(): HeldLeaseState {
    const { state } = this.#lease;
    return state === 'held' && this.#releasing !== null ? 'released' : state;
  }

  get loss(): FencegateError | null {
    return this.#lease.loss;
  }

  get remainingMs(): number {
    return this.#lease.remainingMs;
  }

  get keptForMs(): number {
    return this.#lease.keptForMs;
  }

  get signal(): AbortSignal {
    return this.#lease.signal;
  }

  covers(resource: string): boolean {
    return this.#lease.covers(resource);
  }

  assertHeld(): void {
    this.#lease.assertHeld();
    if (this.#releasing !== null) throw new FencegateError('lease_released', { detail: 'This hold was released before.' });
  }

  refused(reason: string): void {
    this.#lease.lose(reason, 'gateway');
  }

  /** Not repeated: whoever asks wants to know now. */
  async look(signal?: AbortSignal): Promise<void> {
    const path = `/v1/leases/${encodeURIComponent(this.#lease.leaseId)}`;
    try {
      const { state, reason } = await this.#parts.transport.json<Lease>({ method: 'GET', path, signal });
      if (state !== 'held') this.#lease.lose(reason ?? state, 'gateway');
    } catch (thrown) {
      if (!isFencegateError(thrown, 'lease_not_found')) throw thrown;
      this.#lease.lose('forgotten', 'gateway');
    }
  }

  release(): Promise<void> {
    this.#releasing ??= this.#release();
    return this.#releasing;
  }

  convert(mode: LeaseMode, options: ConvertOptions): Promise<void> {
    this.assertHeld();
    return this.#parts.converting.convert(this.#lease, this.#parts.place, mode, options);
  }

  /** With this hold id, so that a repeated release counts once and never takes somebody else's hold off. */
  async #release(): Promise<void> {
    const { holdId, transport, keeper, leavePlace } = this.#parts;
    if (this.#lease.state !== 'held') return;
    this.#lease.holds.delete(holdId);
    const path = `/v1/leases/${encodeURIComponent(this.#lease.leaseId)}`;
    const untilMs = transport.clock.monotonicMs() + CLIENT_LIMITS.cleanUpMs;
    try {
      const release = { method: 'DELETE', path, query: { hold_id: holdId }, limitMs: CLIENT_LIMITS.cleanUpMs, outlivesClose: true } as const;
      await transport.repeated(release, { keyed: true, untilMs });
    } catch (thrown) {
      keeper.leftovers.addHold(this.#lease.leaseId, holdId);
      this.#parts.onEvent({ type: 'release_failed', leaseRef: this.#lease.leaseRef, error: thrown });
      throw thrown;
    } finally {
      if (this.#lease.holds.size === 0) this.#lease.released();
      leavePlace();
    }
  }
}
