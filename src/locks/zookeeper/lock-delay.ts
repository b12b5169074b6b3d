import type { Clock, Timer } from '../../domain/clock.ts';
import type { Claim } from '../coordinator.ts';
import type { ResourceEntry } from '../embedded/resource-entry.ts';

/** The lock-delay at one resource (R24): waited out in full by our own clock, from when we learned of it. */
export class LockDelay {
  readonly #clock: Clock;
  readonly #entry: Pick<ResourceEntry<Claim>, 'heldBackUntilMs'>;
  readonly #onOver: () => void;
  #timer: Timer | null = null;
  #over = false;

  constructor(clock: Clock, entry: Pick<ResourceEntry<Claim>, 'heldBackUntilMs'>, onOver: () => void) {
    this.#clock = clock;
    this.#entry = entry;
    this.#onOver = onOver;
  }

  get running(): boolean {
    return this.#timer !== null || this.#over;
  }

  /** Waited out, and the node does not say so yet. */
  get over(): boolean {
    return this.#over;
  }

  /** One that runs already goes on. */
  begin(delayMs: number): void {
    if (this.#timer !== null) return;
    this.#over = false;
    this.#entry.heldBackUntilMs = this.#clock.monotonicMs() + delayMs;
    this.#timer = this.#clock.after(delayMs, () => {
      this.#timer = null;
      this.#over = true;
      this.#onOver();
    });
  }

  /** The node has none any more. */
  cleared(): void {
    this.#over = false;
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }
}
