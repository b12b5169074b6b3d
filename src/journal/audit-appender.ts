import type { Database, Statement } from 'better-sqlite3';
import type { AuditDraft } from '../domain/audit-record.ts';
import { type ChainKeys, recordHash } from './audit-chain.ts';
import { INSERT_AUDIT, OF_OPERATION, recordValues } from './audit-row.ts';
import { readAnchor } from './chain-anchor.ts';
import { InternalFacts } from './internal-facts.ts';

/** Where the chain ends. Kept in memory by the only writer, and put back when a transaction is rolled back. */
export interface ChainPosition {
  readonly seq: number;
  readonly hash: Buffer;
  readonly atHighMs: number;
  readonly regressionMs: number;
}

/** Appends records to the audit log, each with its place in the chain (I4). Every call runs inside the caller's transaction. */
export class AuditAppender {
  readonly #keys: ChainKeys;
  readonly #facts: InternalFacts;
  readonly #insert: Statement;
  readonly #superseded: Statement<[string, string | null, string | null], number>;
  readonly #supersede: Statement<[number, string, number, string | null, string | null]>;
  #position: ChainPosition;

  constructor(db: Database, keys: ChainKeys) {
    this.#keys = keys;
    this.#facts = new InternalFacts(db);
    this.#insert = db.prepare(INSERT_AUDIT);
    this.#supersede = db.prepare(`UPDATE audit INDEXED BY audit_operation SET superseded_by = ?
      WHERE operation_id = ? AND seq < ? AND superseded_by IS NULL AND volume IS ? AND path IS ? AND ${OF_OPERATION}`);
    this.#superseded = db
      .prepare<[string, string | null, string | null], number>(
        `SELECT 1 FROM audit INDEXED BY audit_operation
      WHERE operation_id = ? AND superseded_by IS NOT NULL AND volume IS ? AND path IS ? AND ${OF_OPERATION} LIMIT 1`,
      )
      .pluck();
    this.#position = this.#stored(db);
  }

  #stored(db: Database): ChainPosition {
    const last = db
      .prepare<[], { seq: number; hash: Buffer; at_high_ms: number }>('SELECT seq, hash, at_high_ms FROM audit ORDER BY seq DESC LIMIT 1')
      .get();
    const regressionMs = this.#facts.number('audit_regression_ms');
    if (last !== undefined) return { seq: last.seq, hash: last.hash, atHighMs: last.at_high_ms, regressionMs };
    const anchor = readAnchor(this.#facts, this.#keys);
    return { seq: anchor.seq, hash: anchor.hash, atHighMs: 0, regressionMs };
  }

  position(): ChainPosition {
    return this.#position;
  }

  /** After a rollback. */
  restore(position: ChainPosition): void {
    this.#position = position;
  }

  /** @returns the record's `seq`. */
  append(record: AuditDraft): number {
    const previous = this.#position;
    const atMs = Date.parse(record.at);
    if (Number.isNaN(atMs)) throw new RangeError('an audit record has no readable time');
    const seq = previous.seq + 1;
    const hash = recordHash(this.#keys.signing, previous.hash, seq, record);
    const atHighMs = Math.max(previous.atHighMs, atMs);
    const regressionMs = Math.max(previous.regressionMs, atHighMs - atMs);
    this.#insert.run(seq, atMs, atHighMs, this.#keys.signing.id, previous.hash, hash, ...recordValues(record));
    // How far the wall clock ever went back: a search by time widens its range of `seq` by that much.
    if (regressionMs > previous.regressionMs) this.#facts.put('audit_regression_ms', regressionMs);
    this.#position = { seq, hash, atHighMs, regressionMs };
    return seq;
  }

  /** Whether an earlier record of the operation on this resource has given way to its last word. */
  hasLastWord({ volume, path }: AuditDraft, operationId: string): boolean {
    return this.#superseded.get(operationId, volume, path) !== undefined;
  }

  /** Appends the last word on an operation; earlier records of it on the same resource stay in the chain but are shown no more. */
  appendLastWord(record: AuditDraft, operationId: string): number {
    const seq = this.append(record);
    this.#supersede.run(seq, operationId, seq, record.volume, record.path);
    return seq;
  }
}
