import { uptime } from 'node:os';

export interface ClientTimer {
  cancel(): void;
}

/** Time as the client sees it; passed in, so that a test can stop and move it. */
export interface ClientClock {
  /** Milliseconds that only grow. The time of day never counts. */
  monotonicMs(): number;
  /** Calls `run` once, not before `delayMs` has passed. Keeps the process alive only when asked to. */
  after(delayMs: number, run: () => void, keepsAlive?: boolean): ClientTimer;
}

const MS_PER_SECOND = 1_000;
/** Some systems count their uptime in whole seconds: less than this ahead is rounding, not sleep. */
const SUSPEND_MS_MIN = 1_500;
/** Timers stand still while the machine sleeps, so long ones come in pieces. */
const PIECE_MS = 1_000;

/** Counts the sleep of the machine: `performance.now` stands still then, the system's uptime does not. */
export class SystemClientClock implements ClientClock {
  readonly #aheadAtStartMs = uptime() * MS_PER_SECOND - performance.now();
  #sleptMs = 0;

  monotonicMs(): number {
    const runningMs = performance.now();
    const aheadMs = uptime() * MS_PER_SECOND - runningMs - this.#aheadAtStartMs;
    if (aheadMs - this.#sleptMs > SUSPEND_MS_MIN) this.#sleptMs = aheadMs;
    return runningMs + this.#sleptMs;
  }

  after(delayMs: number, run: () => void, keepsAlive = false): ClientTimer {
    const dueMs = this.monotonicMs() + delayMs;
    let timeout: NodeJS.Timeout;
    const wait = (restMs: number): void => {
      timeout = setTimeout(look, Math.max(0, Math.min(PIECE_MS, Math.ceil(restMs))));
      if (!keepsAlive) timeout.unref();
    };
    const look = (): void => {
      const restMs = dueMs - this.monotonicMs();
      if (restMs > 0) wait(restMs);
      else run();
    };
    wait(delayMs);
    return { cancel: () => clearTimeout(timeout) };
  }
}
