import type { Clock } from '../../domain/clock.ts';
import type { Claim } from '../coordinator.ts';
import type { ResourceEntry } from './resource-entry.ts';

/** Lock-delay: after an unclean end nobody is granted for a while (R24). A longer one that already runs stays. */
export class HoldBacks<C extends Claim> {
  readonly #clock: Clock;
  readonly #over: (entry: ResourceEntry<C>) => void;

  constructor(clock: Clock, over: (entry: ResourceEntry<C>) => void) {
    this.#clock = clock;
    this.#over = over;
  }

  set(entry: ResourceEntry<C>, delayMs: number): void {
    entry.heldBackUntilMs = Math.max(entry.heldBackUntilMs, this.#clock.monotonicMs() + delayMs);
    this.#arm(entry);
  }

  #arm(entry: ResourceEntry<C>): void {
    entry.holdBackTimer?.cancel();
    entry.holdBackTimer = this.#clock.after(entry.heldBackUntilMs - this.#clock.monotonicMs(), () => {
      entry.holdBackTimer = null;
      // A timer may come early by the other clock's measure; the deadline decides.
      if (entry.heldBackUntilMs > this.#clock.monotonicMs()) this.#arm(entry);
      else this.#over(entry);
    });
  }
}
