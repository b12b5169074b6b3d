import type { Database, Statement } from 'better-sqlite3';
import type { AuditDraft } from '../domain/audit-record.ts';
import { fencingToken } from '../domain/fencing-token.ts';
import type { JournalOp, Mark } from '../domain/journal.ts';

export interface MarkRow {
  readonly token: bigint;
  readonly lease_ref: string | null;
  readonly principal: string | null;
  readonly ever_named: bigint;
}

export function markOf(row: MarkRow): Mark {
  return { token: fencingToken(row.token), leaseRef: row.lease_ref, principal: row.principal, everNamed: row.ever_named === 1n };
}

/** Every column of the row takes the side of the higher token in one statement, so nothing can lower a mark (I2). */
const RAISE = `
INSERT INTO marks (resource_key, token, lease_ref, principal, ever_named) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (resource_key) DO UPDATE SET
  lease_ref = CASE WHEN excluded.token > token THEN excluded.lease_ref ELSE lease_ref END,
  principal = CASE WHEN excluded.token > token THEN excluded.principal ELSE principal END,
  ever_named = max(ever_named, excluded.ever_named),
  token = max(token, excluded.token)
RETURNING token, lease_ref, principal, ever_named`;

export class MarkWriter {
  readonly #raise: Statement<unknown[], MarkRow>;
  readonly #token: Statement<[string], bigint>;

  constructor(db: Database) {
    this.#raise = db.prepare<unknown[], MarkRow>(RAISE).safeIntegers();
    this.#token = db.prepare<[string], bigint>('SELECT token FROM marks WHERE resource_key = ?').pluck().safeIntegers();
  }

  /** @returns the mark as it stands now. Throws when two leases carry one token (I6): then the counter was set back. */
  raise(op: Extract<JournalOp, { op: 'raise_mark' }>): Mark {
    const row = this.#raise.get(op.resource.key, op.token, op.leaseRef, op.principal, op.named ? 1 : 0);
    if (row === undefined) throw new Error('raising a mark gave no row');
    if (row.token === op.token && row.lease_ref !== op.leaseRef) throw new Error(`token ${op.token} was issued to two leases`);
    return markOf(row);
  }

  /** The record with the mark as it stands now, unless it knows a higher one. */
  named(record: AuditDraft, resourceKey: string | undefined): AuditDraft {
    const token = resourceKey === undefined ? undefined : this.#token.get(resourceKey);
    if (token === undefined || (record.highWaterMark !== null && record.highWaterMark >= token)) return record;
    return { ...record, highWaterMark: fencingToken(token) };
  }
}
