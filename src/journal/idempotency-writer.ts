import type { Database, Statement } from 'better-sqlite3';
import type { JournalOp } from '../domain/journal.ts';
import { toJsonText } from './json-text.ts';

/** Stored answers of requests with an `Idempotency-Key`: written with the intent, corrected by its outcome, bounded in number. */
export class IdempotencyWriter {
  readonly #rowsMax: number;
  readonly #insert: Statement;
  readonly #standIn: Statement<[string, string]>;
  readonly #holds: Statement<[string]>;
  readonly #retag: Statement<[string, string, string]>;
  readonly #remove: Statement<[string]>;
  readonly #oldest: Statement<[number]>;
  readonly #count: Statement<[], number>;
  /** An upper bound: rows replaced or removed are only seen at the next count. */
  #rowsAtMost: number;

  constructor(db: Database, rowsMax: number) {
    this.#rowsMax = rowsMax;
    this.#insert = db.prepare(
      `INSERT OR REPLACE INTO idempotency (principal, key, method, path, fingerprint, operation_id, answer, at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    // The answer that was promised lies inside the one that stands in for it.
    this.#standIn = db.prepare(
      `UPDATE idempotency SET answer = json_set(?, '$.promised', json(coalesce(json_extract(answer, '$.promised'), answer))) WHERE operation_id = ?`,
    );
    this.#holds = db.prepare(
      `UPDATE idempotency SET answer = json_extract(answer, '$.promised') WHERE operation_id = ? AND json_extract(answer, '$.promised') IS NOT NULL`,
    );
    this.#retag = db.prepare('UPDATE idempotency SET answer = replace(answer, ?, ?) WHERE operation_id = ?');
    this.#remove = db.prepare('DELETE FROM idempotency WHERE operation_id = ?');
    this.#oldest = db.prepare(
      'DELETE FROM idempotency WHERE (principal, key, method, path) IN (SELECT principal, key, method, path FROM idempotency ORDER BY at_ms LIMIT ?)',
    );
    this.#count = db.prepare<[], number>('SELECT count(*) FROM idempotency').pluck();
    this.#rowsAtMost = this.#count.get() ?? 0;
  }

  put(op: Extract<JournalOp, { op: 'idempotency_put' }>): void {
    const { scope, row } = op;
    this.#insert.run(scope.principal, scope.key, scope.method, scope.path, row.fingerprint, row.operationId, toJsonText(row.answer), op.atMs);
    this.#rowsAtMost += 1;
    if (this.#rowsAtMost <= this.#rowsMax) return;
    const excess = (this.#count.get() ?? 0) - this.#rowsMax;
    // Some more than needed go, so that a full table is not counted at every write.
    if (excess > 0) this.#oldest.run(excess + Math.floor(this.#rowsMax / 100));
    this.#rowsAtMost = this.#count.get() ?? 0;
  }

  /** Only committed and unknown outcomes are replayed; an aborted write may be tried again under its key. */
  settle({ operationId, outcome, answer, retagged }: Extract<JournalOp, { op: 'outcome' }>): void {
    if (outcome === 'aborted' || outcome === 'rejected') this.#remove.run(operationId);
    else if (answer !== null) this.#standIn.run(toJsonText(answer), operationId);
    else this.#holds.run(operationId);
    // No two versions have the same tag, and nothing else looks like one.
    if (retagged !== undefined) this.#retag.run(inText(retagged.from), inText(retagged.to), operationId);
  }
}

/** As it stands inside a JSON text. */
function inText(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
