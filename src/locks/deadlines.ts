import type { Clock, Timer } from '../domain/clock.ts';
import { LIMITS } from '../domain/limits.ts';

/** Something with an end in time. The two fields belong to the `Deadlines` it is in. */
export interface Timed {
  heapIndex: number;
  dueMs: number;
}

/**
 * Ends in time, earliest first: a binary heap under one timer. A due moment may be too early (a renewal does not touch the heap);
 * whoever is due is judged again by its owner, which sets it anew or ends it.
 */
export class Deadlines<T extends Timed> {
  readonly #clock: Clock;
  readonly #wake: () => void;
  readonly #heap: T[] = [];
  #timer: Timer | null = null;
  #timerMs = Number.POSITIVE_INFINITY;

  /** @param wake called when something may be due; it is expected to call `takeDue`. */
  constructor(clock: Clock, wake: () => void) {
    this.#clock = clock;
    this.#wake = wake;
  }

  get size(): number {
    return this.#heap.length;
  }

  set(item: T, dueMs: number): void {
    if (item.heapIndex < 0) {
      item.heapIndex = this.#heap.length;
      this.#heap.push(item);
    }
    item.dueMs = dueMs;
    this.#up(item);
    this.#down(item);
    this.#arm();
  }

  remove(item: T): void {
    const at = item.heapIndex;
    if (at < 0) return;
    item.heapIndex = -1;
    const last = this.#heap.pop();
    if (last === undefined || last === item) return;
    this.#heap[at] = last;
    last.heapIndex = at;
    this.#up(last);
    this.#down(last);
  }

  /** Takes out the next one that is due. */
  takeDue(nowMs: number): T | null {
    const first = this.#heap[0];
    if (first === undefined || first.dueMs > nowMs) return null;
    this.remove(first);
    return first;
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#timerMs = Number.NEGATIVE_INFINITY;
  }

  #arm(): void {
    const first = this.#heap[0];
    if (first === undefined || first.dueMs >= this.#timerMs) return;
    this.#timer?.cancel();
    this.#timerMs = first.dueMs;
    const delayMs = Math.min(Math.max(0, first.dueMs - this.#clock.monotonicMs()), LIMITS.lockExpiryCheckMsMax);
    this.#timer = this.#clock.after(delayMs, () => {
      this.#timer = null;
      this.#timerMs = Number.POSITIVE_INFINITY;
      this.#wake();
      this.#arm();
    });
  }

  #up(item: T): void {
    while (item.heapIndex > 0) {
      const parent = this.#heap[(item.heapIndex - 1) >> 1] as T;
      if (parent.dueMs <= item.dueMs) return;
      this.#swap(parent, item);
    }
  }

  #down(item: T): void {
    for (;;) {
      const left = this.#heap[item.heapIndex * 2 + 1];
      const right = this.#heap[item.heapIndex * 2 + 2];
      const child = right !== undefined && left !== undefined && right.dueMs < left.dueMs ? right : left;
      if (child === undefined || child.dueMs >= item.dueMs) return;
      this.#swap(item, child);
    }
  }

  #swap(upper: T, lower: T): void {
    const at = upper.heapIndex;
    upper.heapIndex = lower.heapIndex;
    lower.heapIndex = at;
    this.#heap[upper.heapIndex] = upper;
    this.#heap[lower.heapIndex] = lower;
  }
}
