import type { Clock, Timer } from '../../domain/clock.ts';

/** `lost` is final: whatever was held over this session is void. */
export type ContactState = 'connected' | 'suspended' | 'reconnected' | 'lost';

/**
 * Whether this gateway may still act on what the ensemble granted it (R12). Only a committed `set` of its own node proves that: a
 * client on a cut-off follower reads its own dead lock for seconds. The proof counts from before its request was sent, so this
 * clock runs out before the ensemble's own. Judged at each use, and by a timer for those who wait.
 */
export class Contact {
  readonly #clock: Clock;
  /** The session time that counts, ms. */
  readonly sessionMs: number;
  readonly #onState: (state: ContactState) => void;
  #provenMs: number;
  #state: ContactState = 'connected';
  #timer: Timer | null = null;

  /** @param provenMs monotonic, before the first proving request was sent. `onState` is told of each change once. */
  constructor(options: {
    readonly clock: Clock;
    readonly sessionMs: number;
    readonly provenMs: number;
    readonly onState: (state: ContactState) => void;
  }) {
    this.#clock = options.clock;
    this.sessionMs = options.sessionMs;
    this.#onState = options.onState;
    this.#provenMs = options.provenMs;
    this.#arm();
  }

  /** As of this moment. */
  get state(): ContactState {
    this.#judge();
    return this.#state;
  }

  /** Whether anything may be granted, entered again or converted. */
  get usable(): boolean {
    return this.state === 'connected' || this.#state === 'reconnected';
  }

  /** How old the proof is, ms. */
  get proofAgeMs(): number {
    return Math.max(0, this.#ageMs());
  }

  /** How long from now everything held here is certainly still ours, ms. */
  get remainderMs(): number {
    return this.#state === 'lost' ? 0 : Math.max(0, this.#provenMs + (this.sessionMs * 2) / 3 - this.#clock.monotonicMs());
  }

  /** @param sentMs when the request was sent whose answer proves the session. An older proof than one that is known says nothing. */
  proven(sentMs: number): void {
    this.#judge();
    if (this.#state === 'lost' || sentMs <= this.#provenMs) return;
    this.#provenMs = sentMs;
    const back = this.#state === 'suspended';
    if (this.#state === 'reconnected') this.#become('connected');
    if (back && this.#ageMs() < this.sessionMs / 3) this.#become('reconnected');
    this.#judge();
    this.#arm();
  }

  /** The connection is known to be gone, so nothing can be proven: suspended at once rather than after a third of the session. */
  doubt(): void {
    this.#judge();
    if (this.#state !== 'lost') this.#become('suspended');
  }

  /** The server says that the session is over, or we gave it up. */
  lose(): void {
    this.#become('lost');
    this.stop();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #ageMs(): number {
    return this.#clock.monotonicMs() - this.#provenMs;
  }

  #judge(): void {
    const ageMs = this.#ageMs();
    if (ageMs >= (this.sessionMs * 2) / 3) this.#become('lost');
    else if (ageMs >= this.sessionMs / 3 && this.#state !== 'lost') this.#become('suspended');
  }

  #become(state: ContactState): void {
    if (this.#state === state || this.#state === 'lost') return;
    this.#state = state;
    this.#onState(state);
  }

  #arm(): void {
    this.stop();
    if (this.#state === 'lost') return;
    const thirds = this.#state === 'suspended' ? 2 : 1;
    this.#timer = this.#clock.after(Math.max(0, this.#provenMs + (this.sessionMs * thirds) / 3 - this.#clock.monotonicMs()), () => {
      this.#judge();
      this.#arm();
    });
  }
}
