import type { Clock, Timer } from './clock.ts';

/** Work that is done a pause after it was asked for: once, however often it is asked for meanwhile, and never after `stop`. */
export class Later {
  readonly #clock: Clock;
  readonly #pauseMs: number;
  readonly #work: () => void;
  #timer: Timer | null = null;
  #stopped = false;

  constructor(clock: Clock, pauseMs: number, work: () => void) {
    this.#clock = clock;
    this.#pauseMs = pauseMs;
    this.#work = work;
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  ask(): void {
    if (this.#timer !== null || this.#stopped) return;
    this.#timer = this.#clock.after(this.#pauseMs, () => {
      this.#timer = null;
      this.#work();
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }
}
