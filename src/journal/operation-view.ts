import type { AuditRecord, Outcome } from '../domain/audit-record.ts';
import type { OperationView } from '../domain/journal.ts';

/** Of several resources the least settled one speaks for the operation. */
const WEIGHT: Readonly<Record<Outcome, number>> = { unknown: 4, pending: 3, aborted: 2, rejected: 1, committed: 0 };

/** What a client is told about its operation; `null` when nothing is recorded under that id. */
export function operationView(records: readonly AuditRecord[]): OperationView | null {
  let chosen: AuditRecord | undefined;
  for (const record of records) {
    if (chosen === undefined || WEIGHT[record.outcome] > WEIGHT[chosen.outcome]) chosen = record;
  }
  if (chosen === undefined || chosen.operationId === null) return null;
  return {
    operationId: chosen.operationId,
    action: chosen.action,
    resource: chosen.path === null ? (chosen.volume ?? '') : `${chosen.volume ?? ''}/${chosen.path}`,
    outcome: chosen.outcome,
    code: chosen.code,
    at: chosen.at,
    etag: chosen.etagAfter,
    fencingToken: chosen.fencingToken,
  };
}
