import type { Database, Statement } from 'better-sqlite3';
import { type ChainKeys, recordHash } from './audit-chain.ts';
import { type AuditRow, draftOf } from './audit-row.ts';
import { readAnchor } from './chain-anchor.ts';
import { InternalFacts } from './internal-facts.ts';
import { type KeyedPart, readKeyedPart } from './keyed-part.ts';

export interface VerifyStep {
  /** Check on from this `seq`; `null`: from where the chain begins. */
  readonly from: number | null;
  /** The hash before `from`, hex; `null`: taken from the record before it, or from the anchor. */
  readonly previousHash: string | null;
  /** The last `seq` to check. */
  readonly until: number;
  readonly limit: number;
}

export interface VerifyFound {
  readonly records: number;
  readonly firstSeq: number | null;
  readonly lastSeq: number | null;
  readonly lastHash: string;
  /** From here on every record is keyed; `null`: see `KeyedPartFound`. */
  readonly keyedFromSeq: number | null;
  /** The first `seq` that does not fit: altered, missing, or not to be checked with the keys at hand. */
  readonly firstBadSeq: number | null;
}

/** Recomputes the chain, a page per call. Runs in the reader thread. */
export class ChainVerifier {
  readonly #keys: ChainKeys;
  readonly #facts: InternalFacts;
  readonly #page: Statement<[number, number, number], AuditRow>;
  readonly #hashAt: Statement<[number], Buffer>;
  readonly #successor: Statement<[bigint, string | null, string | null, string | null], number>;

  constructor(db: Database, keys: ChainKeys) {
    this.#keys = keys;
    this.#facts = new InternalFacts(db);
    this.#page = db
      .prepare<[number, number, number], AuditRow>('SELECT * FROM audit WHERE seq >= ? AND seq <= ? ORDER BY seq LIMIT ?')
      .safeIntegers();
    this.#hashAt = db.prepare<[number], Buffer>('SELECT hash FROM audit WHERE seq = ?').pluck();
    this.#successor = db
      .prepare<[bigint, string | null, string | null, string | null], number>(
        'SELECT 1 FROM audit WHERE seq = ? AND operation_id IS ? AND volume IS ? AND path IS ?',
      )
      .pluck();
  }

  step(step: VerifyStep): VerifyFound {
    const start = this.#start(step);
    const rows = this.#page.all(start.from, step.until, step.limit);
    const firstSeq = rows[0] === undefined ? null : Number(rows[0].seq);
    let expected = start.from;
    let previous = start.previous;
    const keyed = readKeyedPart(this.#facts, this.#keys);
    let bad = start.genuine && keyed.genuine ? null : (firstSeq ?? start.from);
    for (const row of rows) {
      if (bad !== null) break;
      if (this.#fits(row, expected, previous, keyed.part)) {
        previous = row.hash;
        expected += 1;
      } else bad = Math.min(expected, Number(row.seq));
    }
    // Fewer rows than the chain should have: its end was cut off.
    if (bad === null && rows.length < step.limit && expected <= step.until) bad = expected;
    const last = rows.at(-1);
    return {
      records: rows.length,
      firstSeq,
      lastSeq: last === undefined ? null : Number(last.seq),
      lastHash: previous.toString('hex'),
      keyedFromSeq: keyed.part === null ? null : keyed.part.afterSeq + 1,
      firstBadSeq: bad,
    };
  }

  #start({ from, previousHash }: VerifyStep): { readonly from: number; readonly previous: Buffer; readonly genuine: boolean } {
    const anchor = readAnchor(this.#facts, this.#keys);
    // Retention may have cut off what this page was to begin with; then it goes on behind the anchor.
    if (from !== null && from > anchor.seq && previousHash !== null) return { from, previous: Buffer.from(previousHash, 'hex'), genuine: true };
    const before = from === null ? undefined : this.#hashAt.get(from - 1);
    if (from !== null && from > anchor.seq + 1 && before !== undefined) return { from, previous: before, genuine: true };
    return { from: anchor.seq + 1, previous: anchor.hash, genuine: anchor.genuine };
  }

  #fits(row: AuditRow, expected: number, previous: Buffer, keyed: KeyedPart | null): boolean {
    if (Number(row.seq) !== expected || !row.previous_hash.equals(previous)) return false;
    const key = this.#keys.find(row.chain_key);
    if (key === undefined) return false;
    if (keyed !== null) {
      // Once a key is in use, a plain hash would let anybody continue the chain, or make it anew up to any place.
      if ((key.secret === null) !== expected <= keyed.afterSeq) return false;
      if (expected === keyed.afterSeq && !row.hash.equals(keyed.afterHash)) return false;
    }
    if (!recordHash(key, previous, expected, draftOf(row)).equals(row.hash)) return false;
    return Number(row.at_ms) === Date.parse(row.at) && this.#isHiddenRightly(row);
  }

  /** The flag that hides a record is outside the chain, so it must point to a later record of the same operation and resource. */
  #isHiddenRightly(row: AuditRow): boolean {
    if (row.superseded_by === null) return true;
    return (
      row.operation_id !== null &&
      row.superseded_by > row.seq &&
      this.#successor.get(row.superseded_by, row.operation_id, row.volume, row.path) !== undefined
    );
  }
}
