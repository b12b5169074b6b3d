import type { AuditFilter } from '../domain/audit-record.ts';

/** SQL for an audit filter. `index` serves the most selective condition; the others are checked on the rows it finds. */
export interface AuditConditions {
  readonly index: string | null;
  readonly sql: readonly string[];
  readonly values: Readonly<Record<string, string | bigint>>;
  /** More than the indexed condition has to be checked, so rows may be looked at in vain. */
  readonly residual: boolean;
  readonly prefix: { readonly from: string; readonly to: string } | null;
}

/** Equality filters, the most selective first: the first one present chooses the index. */
const EQUALITIES = [
  ['operationId', 'operation_id', 'audit_operation'],
  ['requestId', 'request_id', 'audit_request'],
  ['leaseRef', 'lease_ref', 'audit_lease'],
  ['token', 'fencing_token', 'audit_token'],
  ['path', 'path', 'audit_path'],
  ['clientId', 'client_id', 'audit_client'],
  ['principal', 'principal', 'audit_principal'],
  ['code', 'code', 'audit_code'],
  ['action', 'action', 'audit_action'],
  ['volume', 'volume', 'audit_volume'],
] as const;

/** Sorts after every path that begins with the prefix. */
const LAST_CHARACTER = '\u{10FFFF}';

/** `:inFlight` is a JSON list of the operations that are pending now; `pending` is computed, never stored. */
function outcomeCondition(outcome: NonNullable<AuditFilter['outcome']>): { readonly sql: string; readonly value: string; readonly index: string; readonly exact: boolean } {
  const inFlight = 'operation_id IN (SELECT value FROM json_each(:inFlight))';
  if (outcome === 'pending') return { sql: `outcome = :outcome AND ${inFlight}`, value: 'committed', index: 'audit_operation', exact: false };
  if (outcome === 'committed') return { sql: `outcome = :outcome AND (operation_id IS NULL OR NOT ${inFlight})`, value: 'committed', index: 'audit_outcome', exact: false };
  return { sql: 'outcome = :outcome', value: outcome, index: 'audit_outcome', exact: true };
}

export function auditConditions(filter: AuditFilter): AuditConditions {
  const sql: string[] = [];
  const values: Record<string, string | bigint> = {};
  let index: string | null = null;
  let exact = true;
  for (const [field, column, name] of EQUALITIES) {
    const value = filter[field];
    if (value === undefined) continue;
    index ??= name;
    sql.push(`${column} = :${column}`);
    values[column] = value;
  }
  if (filter.outcome !== undefined) {
    const outcome = outcomeCondition(filter.outcome);
    index ??= outcome.index;
    exact = outcome.exact;
    sql.push(outcome.sql);
    values['outcome'] = outcome.value;
  }
  const prefix = filter.pathPrefix === undefined || filter.pathPrefix === '' ? null : { from: filter.pathPrefix, to: `${filter.pathPrefix}${LAST_CHARACTER}` };
  return { index, sql, values, residual: sql.length > 1 || !exact || prefix !== null || filter.since !== undefined || filter.until !== undefined, prefix };
}
