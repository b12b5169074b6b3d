import type { Clock, MachineTime, Random, Timer } from '../../src/domain/clock.ts';

interface Pending {
  readonly dueMs: number;
  readonly order: number;
  readonly run: () => void;
}

/** A clock that moves only when told; timers run in due order while it moves. */
export class FakeClock implements Clock {
  #monotonicMs = 1_000;
  #wallMs = Date.UTC(2026, 0, 1);
  #boot = 1;
  #order = 0;
  readonly #pending = new Set<Pending>();

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  wallMs(): number {
    return this.#wallMs;
  }

  machine(): MachineTime {
    return { bootId: `boot ${this.#boot}`, uptimeMs: this.#monotonicMs };
  }

  after(delayMs: number, run: () => void): Timer {
    const pending = { dueMs: this.#monotonicMs + Math.max(0, delayMs), order: this.#order++, run };
    this.#pending.add(pending);
    return { cancel: () => void this.#pending.delete(pending) };
  }

  /** Moves both clocks, running every timer that falls due on the way. */
  advance(ms: number): void {
    const until = this.#monotonicMs + ms;
    for (;;) {
      const next = this.#next(until);
      if (next === undefined) break;
      this.#move(next.dueMs);
      this.#pending.delete(next);
      next.run();
    }
    this.#move(until);
  }

  /** Like `advance`, but lets promises settle between timers. */
  async advanceAsync(ms: number): Promise<void> {
    const until = this.#monotonicMs + ms;
    await settle();
    for (;;) {
      const next = this.#next(until);
      if (next === undefined) break;
      this.#move(next.dueMs);
      this.#pending.delete(next);
      next.run();
      await settle();
    }
    this.#move(until);
    await settle();
  }

  /** The process was stopped: the time has passed, and no timer has run yet. */
  stopFor(ms: number): void {
    this.#move(this.#monotonicMs + ms);
  }

  /** The wall clock jumps; the monotonic one does not. */
  jumpWall(ms: number): void {
    this.#wallMs += ms;
  }

  /** What follows runs on another machine, or after this one was started again. */
  reboot(): void {
    this.#boot += 1;
  }

  #next(untilMs: number): Pending | undefined {
    let best: Pending | undefined;
    for (const p of this.#pending) {
      if (p.dueMs > untilMs) continue;
      if (best === undefined || p.dueMs < best.dueMs || (p.dueMs === best.dueMs && p.order < best.order)) best = p;
    }
    return best;
  }

  #move(toMs: number): void {
    if (toMs <= this.#monotonicMs) return;
    this.#wallMs += toMs - this.#monotonicMs;
    this.#monotonicMs = toMs;
  }
}

/** What has to come to rest besides promises. */
const besides = new Set<() => Promise<void>>();

/** From now on settling also waits for this: for a server that is asked. @returns what ends that. */
export function settleAlso(rest: () => Promise<void>): () => void {
  besides.add(rest);
  return () => void besides.delete(rest);
}

/** Lets every promise that can settle without I/O do so, and whatever was named to `settleAlso`. */
export async function settle(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
  for (const rest of besides) await rest();
}

/** Reproducible bytes (mulberry32). */
export function seededRandom(seed: number): Random & { next(): number } {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return { next, bytes: (count) => Uint8Array.from({ length: count }, () => Math.floor(next() * 256)) };
}
