import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import type { Clock, MachineTime, Timer } from '../domain/clock.ts';

/**
 * The clock of a running gateway. Monotonic time counts suspend (trap T25): `process.hrtime` stands still while the machine
 * sleeps, `/proc/uptime` does not, so what it is ahead is added. Judged when the time is asked for, not by a timer.
 */

/** `/proc/uptime` counts hundredths of a second: less than this ahead is rounding, not sleep. */
const SUSPEND_MS_MIN = 50;
/** How long one reading of `/proc/uptime` is good for. */
const READING_MS_MAX = 5;
/** How often a sleeping machine's timers are looked after when nobody asks for the time. */
const WATCH_MS = 1_000;
const TIMEOUT_MS_MAX = 2_147_483_647;

export interface TimeSources {
  /** Milliseconds that stand still during suspend. */
  runningMs(): number;
  /** Milliseconds since boot, suspend included. */
  uptimeMs(): number;
  /** Names that boot. */
  readonly bootId: string;
  wallMs(): number;
}

interface Pending {
  readonly dueMs: number;
  readonly run: () => void;
  timeout: NodeJS.Timeout;
}

export class SystemClock implements Clock {
  readonly #sources: TimeSources;
  readonly #pending = new Set<Pending>();
  readonly #watch: NodeJS.Timeout;
  #readAtMs: number;
  /** What uptime was ahead of running time when this clock was made. */
  readonly #aheadAtStartMs: number;
  #suspendedMs = 0;

  constructor(sources: TimeSources = linuxTime()) {
    this.#sources = sources;
    this.#readAtMs = sources.runningMs();
    this.#aheadAtStartMs = sources.uptimeMs() - this.#readAtMs;
    this.#watch = setInterval(() => this.monotonicMs(), WATCH_MS).unref();
  }

  monotonicMs(): number {
    const runningMs = this.#sources.runningMs();
    if (runningMs - this.#readAtMs >= READING_MS_MAX) {
      this.#readAtMs = runningMs;
      const aheadMs = this.#sources.uptimeMs() - runningMs - this.#aheadAtStartMs;
      if (aheadMs - this.#suspendedMs > SUSPEND_MS_MIN) {
        this.#suspendedMs = aheadMs;
        this.#rearm();
      }
    }
    return runningMs + this.#suspendedMs;
  }

  wallMs(): number {
    return this.#sources.wallMs();
  }

  /** Finer than `/proc/uptime`: of two processes of one boot neither is a rounding ahead, as long as the machine did not sleep before both. */
  machine(): MachineTime {
    const before = Math.abs(this.#aheadAtStartMs) > SUSPEND_MS_MIN ? this.#aheadAtStartMs : 0;
    return { bootId: this.#sources.bootId, uptimeMs: this.monotonicMs() + before };
  }

  after(delayMs: number, run: () => void): Timer {
    const dueMs = this.monotonicMs() + Math.max(0, delayMs);
    const pending: Pending = { dueMs, run, timeout: this.#timeout(() => this.#fire(pending), delayMs) };
    this.#pending.add(pending);
    return { cancel: () => this.#cancel(pending) };
  }

  /** Ends every timer. For a stopping gateway and for tests. */
  stop(): void {
    clearInterval(this.#watch);
    for (const pending of this.#pending) this.#cancel(pending);
  }

  #cancel(pending: Pending): void {
    clearTimeout(pending.timeout);
    this.#pending.delete(pending);
  }

  /** Node's timers may run a millisecond early, and a long delay comes in pieces: whoever is not due waits on. */
  #fire(pending: Pending): void {
    const leftMs = pending.dueMs - this.monotonicMs();
    if (leftMs > 0) {
      pending.timeout = this.#timeout(() => this.#fire(pending), leftMs);
      return;
    }
    this.#pending.delete(pending);
    pending.run();
  }

  /** After a sleep every timer is late by its length. */
  #rearm(): void {
    for (const pending of this.#pending) {
      clearTimeout(pending.timeout);
      pending.timeout = this.#timeout(() => this.#fire(pending), pending.dueMs - this.#sources.runningMs() - this.#suspendedMs);
    }
  }

  #timeout(run: () => void, delayMs: number): NodeJS.Timeout {
    return setTimeout(run, Math.min(TIMEOUT_MS_MAX, Math.max(0, Math.ceil(delayMs)))).unref();
  }
}

/** Linux: the descriptor stays open for the life of the process, one `pread` per reading. */
export function linuxTime(): TimeSources & { close(): void } {
  const descriptor = openSync('/proc/uptime', 'r');
  const buffer = Buffer.alloc(64);
  let closed = false;
  return {
    runningMs: () => Number(process.hrtime.bigint()) / 1e6,
    uptimeMs: () => {
      // A socket that outlives the gateway by a moment still asks; what it asks for no longer matters.
      if (closed) return Number.NaN;
      const length = readSync(descriptor, buffer, 0, buffer.length, 0);
      return Number.parseFloat(buffer.toString('latin1', 0, length)) * 1_000;
    },
    bootId: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
    wallMs: () => Date.now(),
    close: () => {
      closed = true;
      closeSync(descriptor);
    },
  };
}
