import type { Clock, Timer } from '../../domain/clock.ts';
import { LIMITS } from '../../domain/limits.ts';

/** When a volume that did not open is tried again: soon at first, then less and less often. */
export class StartRetries {
  readonly #clock: Clock;
  readonly #again: () => void;
  #timer: Timer | null = null;
  #pauseMs: number = LIMITS.volumeRetryMsMin;

  constructor(clock: Clock, again: () => void) {
    this.#clock = clock;
    this.#again = again;
  }

  get waits(): boolean {
    return this.#timer !== null;
  }

  /** The next pause is the shortest one again. */
  soon(): void {
    this.#pauseMs = LIMITS.volumeRetryMsMin;
  }

  later(): void {
    this.#timer ??= this.#clock.after(this.#pauseMs, () => {
      this.#timer = null;
      this.#pauseMs = Math.min(this.#pauseMs * 2, LIMITS.volumeRetryMsMax);
      this.#again();
    });
  }

  cancel(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }
}
