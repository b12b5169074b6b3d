import type { AuditDraft } from '../domain/audit-record.ts';
import type { Clock, Timer } from '../domain/clock.ts';
import type { GatewayError } from '../domain/errors.ts';

interface Counted {
  /** The latest one; it is written with the whole count. */
  record: AuditDraft;
  count: number;
  timer: Timer;
  /** Resolves when the first refusal of the window, if it was written at once, is durable. */
  readonly first: Promise<void>;
}

export interface CountedRefusalsParts {
  readonly clock: Clock;
  readonly windowMs: number;
  readonly keysMax: number;
  readonly write: (record: AuditDraft) => Promise<void>;
}

/** Equal refusals within a window, counted in memory and written as one record when the window ends or on `flush`. */
export class CountedRefusals {
  readonly #parts: CountedRefusalsParts;
  readonly #windows = new Map<string, Counted>();
  readonly #writing = new Set<Promise<void>>();

  constructor(parts: CountedRefusalsParts) {
    this.#parts = parts;
  }

  get full(): boolean {
    return this.#windows.size >= this.#parts.keysMax;
  }

  /** Opens a window for `key`. `count` 0: the first refusal was written by itself, `first` tells when it is durable. */
  open(key: string, record: AuditDraft, count: 0 | 1, first: Promise<void>): void {
    this.#windows.set(key, { record, count, first, timer: this.#endLater(key) });
  }

  /** Counts one more in an open window; `undefined` when there is none. */
  add(key: string, record: AuditDraft): Promise<void> | undefined {
    const counted = this.#windows.get(key);
    if (counted === undefined) return undefined;
    counted.record = record;
    counted.count += record.count;
    return counted.first;
  }

  forget(key: string): void {
    this.#windows.get(key)?.timer.cancel();
    this.#windows.delete(key);
  }

  /** Writes all that is counted. What cannot be written now stays counted and is tried again when its window ends. */
  async flush(): Promise<void> {
    for (const key of this.#windows.keys()) void this.#writeOut(key);
    // Also those that a window's end began to write a moment ago.
    await Promise.all([...this.#writing]);
  }

  /** Nothing more is written; what is still counted is lost. */
  stop(): void {
    for (const key of [...this.#windows.keys()]) this.forget(key);
  }

  #endLater(key: string): Timer {
    return this.#parts.clock.after(this.#parts.windowMs, () => void this.#end(key));
  }

  async #end(key: string): Promise<void> {
    const counted = this.#windows.get(key);
    if (counted === undefined) return;
    if (counted.count === 0) {
      this.#windows.delete(key);
      return;
    }
    await this.#writeOut(key);
    if (this.#windows.get(key) !== counted) return;
    if (counted.count === 0) this.#windows.delete(key);
    else counted.timer = this.#endLater(key);
  }

  #writeOut(key: string): Promise<void> {
    const counted = this.#windows.get(key);
    if (counted === undefined || counted.count === 0) return Promise.resolve();
    const { count, record } = counted;
    // Taken off first, so that nobody else writes them too; put back when the journal refuses.
    counted.count = 0;
    const writing = this.#parts
      .write({ ...record, count })
      .catch((_refused: GatewayError) => {
        counted.count += count;
      })
      .finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
    return writing;
  }
}
