import type { Database } from 'better-sqlite3';
import type { AuditFilter, AuditRecord } from '../domain/audit-record.ts';
import { refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import { type AuditConditions, auditConditions, conditionValues, type IndexedCondition } from './audit-conditions.ts';
import { type AuditRow, recordOf } from './audit-row.ts';
import { InternalFacts } from './internal-facts.ts';
import { SeqSearch } from './seq-search.ts';

export interface SearchStep {
  readonly filter: AuditFilter;
  readonly order: 'asc' | 'desc';
  readonly limit: number;
  /** The whole search sees the log as it was at this `seq`: what is appended or superseded later does not move its pages. */
  readonly snapshot: number;
  /** Go on after this `seq` in the order of the search; `null` at its beginning. */
  readonly after: number | null;
  /** How many places of the log this step may look at; 0 at the beginning. */
  readonly window: number;
  readonly inFlight: readonly string[];
}

export interface SearchFound {
  readonly records: readonly AuditRecord[];
  /** Where the next step begins; `null` when the search is over. */
  readonly after: number | null;
  readonly window: number;
}

interface Range {
  readonly low: number;
  readonly high: number;
}

const FIRST_WINDOW = 4_096;

function timeOf(text: string, name: string): number {
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) throw refuse('invalid_request', `"${name}" is not an RFC 3339 time.`);
  return ms;
}

/**
 * Searches the audit log in steps. Each is one short read transaction over a bounded part of the log, so that neither a rare
 * match nor a slow client keeps the WAL from being emptied (case B28). Runs in the reader thread.
 */
export class AuditSearch {
  readonly #db: Database;
  readonly #facts: InternalFacts;
  readonly #bySeq: SeqSearch;

  constructor(db: Database) {
    this.#db = db;
    this.#facts = new InternalFacts(db);
    this.#bySeq = new SeqSearch(db);
  }

  step(step: SearchStep): SearchFound {
    const conditions = auditConditions(step.filter);
    const range = this.#range(step);
    if (range === null) return { records: [], after: null, window: 0 };
    const values = valuesOf(step);
    const rare = conditions.indexed.find((condition) => this.#isRare(condition, values));
    if (rare !== undefined) return this.#take(step, values, searchSql(conditions, step.order, rare), range, range);
    const leading = conditions.indexed.find(({ inOrder }) => inOrder);
    // With nothing else to check, every row that the index gives is a match, and the limit is bound enough.
    const alone = leading !== undefined && conditions.indexed.length + conditions.sql.length === 1;
    const window = alone ? Number.MAX_SAFE_INTEGER : Math.max(FIRST_WINDOW, step.window);
    const part =
      step.order === 'asc'
        ? { low: range.low, high: Math.min(range.high, range.low + window - 1) }
        : { low: Math.max(range.low, range.high - window + 1), high: range.high };
    return this.#take({ ...step, window }, values, searchSql(conditions, step.order, leading ?? null), range, part);
  }

  /** The places of the log that can match: what is left of the snapshot, narrowed by time. `null`: none. */
  #range({ filter, order, snapshot, after }: SearchStep): Range | null {
    const bounds = this.#bySeq.bounds();
    if (bounds === null) return null;
    let low = bounds.first;
    let high = Math.min(bounds.last, snapshot);
    if (filter.since !== undefined) low = Math.max(low, this.#bySeq.firstAtOrAfter(timeOf(filter.since, 'since')));
    if (filter.until !== undefined) {
      // A record after a jump back of the clock may lie later in the log than its time says, by at most the largest jump.
      const until = timeOf(filter.until, 'until') + this.#facts.number('audit_regression_ms');
      high = Math.min(high, this.#bySeq.firstAtOrAfter(until) - 1);
    }
    if (after !== null && order === 'asc') low = Math.max(low, after + 1);
    if (after !== null && order === 'desc') high = Math.min(high, after - 1);
    return low > high ? null : { low, high };
  }

  /** Few matches are fetched by their index at once, whatever else has to be checked on them; many are met soon on a walk along the log. */
  #isRare({ index, sql }: IndexedCondition, values: Record<string, unknown>): boolean {
    const most = LIMITS.auditRareMatchesMax;
    const count = this.#db
      .prepare<[Record<string, unknown>], number>(`SELECT count(*) FROM (SELECT 1 FROM audit INDEXED BY ${index} WHERE ${sql} LIMIT ${most + 1})`)
      .pluck()
      .get(values);
    return (count ?? 0) <= most;
  }

  #take(step: SearchStep, values: Record<string, unknown>, sql: string, range: Range, part: Range): SearchFound {
    const rows = this.#db
      .prepare<[Record<string, unknown>], AuditRow>(sql)
      .safeIntegers()
      .all({ ...values, low: part.low, high: part.high, snapshot: step.snapshot, limit: step.limit });
    const records = rows.map(recordOf);
    const last = records.at(-1);
    const done = part.low === range.low && part.high === range.high;
    if (records.length >= step.limit && last !== undefined) return { records, after: last.seq, window: step.window };
    if (done) return { records, after: null, window: 0 };
    return { records, after: step.order === 'asc' ? part.high : part.low, window: Math.min(step.window * 4, LIMITS.auditWindowMax) };
  }
}

/** Exported for the test that asks SQLite for its plan. `leading` is the condition whose index is used; `null`: a walk along the log. */
export function searchSql(conditions: AuditConditions, order: 'asc' | 'desc', leading: IndexedCondition | null): string {
  // The plus keeps SQLite from walking the log by `seq` where the few rows of an index are to be sorted instead.
  const range = leading === null || leading.inOrder ? 'seq BETWEEN :low AND :high' : '+seq BETWEEN :low AND :high';
  const where = [range, '(superseded_by IS NULL OR superseded_by > :snapshot)', ...conditions.indexed.map(({ sql }) => sql), ...conditions.sql];
  const source = leading === null ? 'audit NOT INDEXED' : `audit INDEXED BY ${leading.index}`;
  return `SELECT * FROM ${source} WHERE ${where.join(' AND ')} ORDER BY seq ${order === 'asc' ? 'ASC' : 'DESC'} LIMIT :limit`;
}

function valuesOf({ filter, inFlight }: SearchStep): Record<string, unknown> {
  const sinceMs = filter.since === undefined ? 0 : timeOf(filter.since, 'since');
  const untilMs = filter.until === undefined ? 0 : timeOf(filter.until, 'until');
  return conditionValues(filter, { sinceMs, untilMs }, inFlight);
}
