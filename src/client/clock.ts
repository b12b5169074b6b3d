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

/** What the system counts. */
export interface SystemTimes {
  /** Stands still while the machine sleeps. */
  runningMs(): number;
  /** Does not. */
  uptimeS(): number;
}

const SYSTEM_TIMES: SystemTimes = { runningMs: () => performance.now(), uptimeS: uptime };

/** Counts the sleep of the machine, by what the uptime is ahead of the running time. */
export class SystemClientClock implements ClientClock {
  readonly #times: SystemTimes;
  readonly #aheadAtStartMs: number;
  #sleptMs = 0;

  constructor(times: SystemTimes = SYSTEM_TIMES) {
    this.#times = times;
    this.#aheadAtStartMs = times.uptimeS() * MS_PER_SECOND - times.runningMs();
  }

  monotonicMs(): number {
    const runningMs = this.#times.runningMs();
    const aheadMs = this.#times.uptimeS() * MS_PER_SECOND - runningMs - this.#aheadAtStartMs;
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
