import type { Database, Statement } from 'better-sqlite3';

/**
 * Finds a `seq` by time. `at_high_ms` never falls along the log, so bisection over the primary key needs no index of its own:
 * some twenty look-ups in ten million records.
 */
export class SeqSearch {
  readonly #first: Statement<[], number>;
  readonly #last: Statement<[], number>;
  readonly #highAt: Statement<[number], { seq: number; high: number }>;

  constructor(db: Database) {
    this.#first = db.prepare<[], number>('SELECT seq FROM audit ORDER BY seq LIMIT 1').pluck();
    this.#last = db.prepare<[], number>('SELECT seq FROM audit ORDER BY seq DESC LIMIT 1').pluck();
    this.#highAt = db.prepare('SELECT seq, at_high_ms AS high FROM audit WHERE seq >= ? ORDER BY seq LIMIT 1');
  }

  /** `null` when the log is empty. */
  bounds(): { readonly first: number; readonly last: number } | null {
    const first = this.#first.get();
    const last = this.#last.get();
    return first === undefined || last === undefined ? null : { first, last };
  }

  /** The lowest `seq` whose `at_high_ms` is at least `ms`; one past the last when there is none. */
  firstAtOrAfter(ms: number): number {
    const bounds = this.bounds();
    if (bounds === null) return 1;
    let low = bounds.first;
    let high = bounds.last + 1;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const found = this.#highAt.get(middle);
      if (found === undefined || found.high >= ms) high = middle;
      else low = found.seq + 1;
    }
    return low;
  }
}
