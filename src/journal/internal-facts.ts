import type { Database, Statement } from 'better-sqlite3';

/** Small facts of the journal about itself, apart from `meta`, which belongs to the callers. */
export type InternalName =
  | 'journal_uuid'
  | 'settled_low_water'
  | 'audit_regression_ms'
  | 'anchor_seq'
  | 'anchor_hash'
  | 'anchor_key'
  | 'anchor_seal'
  | 'keyed_after_seq'
  | 'keyed_after_hash'
  | 'keyed_key'
  | 'keyed_seal';

export class InternalFacts {
  readonly #select: Statement<[string], string>;
  readonly #upsert: Statement<[string, string]> | null;

  constructor(db: Database) {
    this.#select = db.prepare<[string], string>('SELECT value FROM internal WHERE name = ?').pluck();
    this.#upsert = db.readonly ? null : db.prepare('INSERT OR REPLACE INTO internal (name, value) VALUES (?, ?)');
  }

  get(name: InternalName): string | null {
    return this.#select.get(name) ?? null;
  }

  number(name: InternalName): number {
    return Number(this.get(name) ?? '0');
  }

  put(name: InternalName, value: string | number): void {
    if (this.#upsert === null) throw new Error('a read-only connection cannot store a fact');
    this.#upsert.run(name, String(value));
  }
}
