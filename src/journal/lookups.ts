import type { Database, Statement } from 'better-sqlite3';
import type { AuditRecord } from '../domain/audit-record.ts';
import type { EndedLease, EndedSession, IdempotencyRow, IdempotencyScope, Mark, OperationKey, StoredAnswer } from '../domain/journal.ts';
import { LIMITS } from '../domain/limits.ts';
import { type AuditRow, OF_OPERATION, recordOf } from './audit-row.ts';
import { fromJsonText } from './json-text.ts';
import { type MarkRow, markOf } from './mark-writer.ts';

const OPERATION_ROWS_MAX = 1_000;
const IS_OPERATION = `superseded_by IS NULL AND operation_id IS NOT NULL AND ${OF_OPERATION}`;

/** The reads that answer from one or a few rows, each by an index. */
export class Lookups {
  readonly #mark: Statement<[string], MarkRow>;
  readonly #ended: Statement<[string], Omit<EndedLease, 'lease'> & { readonly body: string | null }>;
  readonly #endedSession: Statement<[string], EndedSession>;
  readonly #idempotent: Statement<[string, string, string, string, number], { fingerprint: string; operation_id: string; answer: string }>;
  readonly #byOperation: Statement<[string], AuditRow>;
  readonly #ofRequest: Statement<[string], string>;
  readonly #ofKey: Statement<[string, string, number], string>;

  constructor(db: Database) {
    this.#mark = db.prepare<[string], MarkRow>('SELECT token, lease_ref, principal, ever_named FROM marks WHERE resource_key = ?').safeIntegers();
    this.#ended = db.prepare('SELECT lease_ref AS leaseRef, state, reason, ended_at AS endedAt, body FROM ended_leases WHERE lease_ref = ?');
    this.#endedSession = db.prepare('SELECT principal FROM ended_sessions WHERE session_ref = ?');
    this.#idempotent = db.prepare(
      'SELECT fingerprint, operation_id, answer FROM idempotency WHERE principal = ? AND key = ? AND method = ? AND path = ? AND at_ms > ?',
    );
    this.#byOperation = db
      .prepare<[string], AuditRow>(
        `SELECT * FROM audit INDEXED BY audit_operation WHERE operation_id = ? AND ${IS_OPERATION} ORDER BY seq LIMIT ${OPERATION_ROWS_MAX}`,
      )
      .safeIntegers();
    this.#ofRequest = db
      .prepare<[string], string>(
        `SELECT operation_id FROM audit INDEXED BY audit_request WHERE request_id = ? AND ${IS_OPERATION} ORDER BY seq DESC LIMIT 1`,
      )
      .pluck();
    this.#ofKey = db
      .prepare<[string, string, number], string>(
        'SELECT operation_id FROM idempotency WHERE principal = ? AND key = ? AND at_ms > ? ORDER BY at_ms DESC LIMIT 1',
      )
      .pluck();
  }

  mark(resourceKey: string): Mark | null {
    const row = this.#mark.get(resourceKey);
    return row === undefined ? null : markOf(row);
  }

  endedLease(leaseRef: string): EndedLease | null {
    const row = this.#ended.get(leaseRef);
    if (row === undefined) return null;
    const { body, ...ended } = row;
    return { ...ended, lease: body === null ? null : (fromJsonText(body) as NonNullable<EndedLease['lease']>) };
  }

  endedSession(sessionRef: string): EndedSession | null {
    return this.#endedSession.get(sessionRef) ?? null;
  }

  idempotent(scope: IdempotencyScope, nowMs: number): IdempotencyRow | null {
    const row = this.#idempotent.get(scope.principal, scope.key, scope.method, scope.path, nowMs - LIMITS.idempotencyKeptMs);
    return row === undefined
      ? null
      : { fingerprint: row.fingerprint, operationId: row.operation_id, answer: fromJsonText(row.answer) as StoredAnswer };
  }

  /** The records shown for one operation, one per resource; empty when it is not known. */
  operation(key: OperationKey, nowMs: number): AuditRecord[] {
    const id = this.#operationId(key, nowMs);
    return id === undefined ? [] : this.#byOperation.all(id).map(recordOf);
  }

  #operationId(key: OperationKey, nowMs: number): string | undefined {
    switch (key.by) {
      case 'operation_id':
        return key.operationId;
      case 'request_id':
        return this.#ofRequest.get(key.requestId);
      case 'idempotency_key':
        return this.#ofKey.get(key.principal, key.key, nowMs - LIMITS.idempotencyKeptMs);
    }
  }
}
