import type { AuditFilter } from '../domain/audit-record.ts';

/** One condition that an index serves. */
export interface IndexedCondition {
  readonly index: string;
  readonly sql: string;
  /** Rows come out of the index in the order of `seq`; a prefix spans many values, whose rows have to be sorted. */
  readonly inOrder: boolean;
}

/** SQL for an audit filter: any of the indexed conditions may lead, all of them are checked. */
export interface AuditConditions {
  /** The more selective by their nature first. */
  readonly indexed: readonly IndexedCondition[];
  /** The range of time, checked on the rows that are found; the search narrows its range of `seq` by it before. */
  readonly sql: readonly string[];
}

/** The columns with an index for equality, the most selective first. */
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

/** Sorts after every character of a path. */
const LAST_CHARACTER = '\u{10FFFF}';

/** `:inFlight` is a JSON list of the operations under way now: `pending` is computed, never stored. */
function outcomeCondition(outcome: NonNullable<AuditFilter['outcome']>): IndexedCondition {
  const inFlight = 'operation_id IN (SELECT value FROM json_each(:inFlight))';
  if (outcome === 'pending') return { index: 'audit_operation', sql: `${inFlight} AND outcome = 'committed'`, inOrder: false };
  if (outcome === 'committed')
    return { index: 'audit_outcome', sql: `outcome = 'committed' AND (operation_id IS NULL OR NOT ${inFlight})`, inOrder: true };
  return { index: 'audit_outcome', sql: 'outcome = :outcome', inOrder: true };
}

export function auditConditions(filter: AuditFilter): AuditConditions {
  const indexed: IndexedCondition[] = [];
  for (const [field, column, index] of EQUALITIES) {
    if (filter[field] !== undefined) indexed.push({ index, sql: `${column} = :${field}`, inOrder: true });
  }
  if (filter.outcome !== undefined) indexed.push(outcomeCondition(filter.outcome));
  if (filter.pathPrefix !== undefined && filter.pathPrefix !== '')
    indexed.push({ index: 'audit_path', sql: 'path >= :pathPrefix AND path < :pathPrefixEnd', inOrder: false });
  const sql: string[] = [];
  if (filter.since !== undefined) sql.push('at_ms >= :sinceMs');
  if (filter.until !== undefined) sql.push('at_ms < :untilMs');
  return { indexed, sql };
}

/** The values for the names in the conditions' SQL; `since` and `until` in ms. */
export function conditionValues(
  filter: AuditFilter,
  times: { readonly sinceMs: number; readonly untilMs: number },
  inFlight: readonly string[],
): Record<string, unknown> {
  const values: Record<string, unknown> = { ...filter, ...times, inFlight: JSON.stringify(inFlight) };
  if (filter.pathPrefix !== undefined) values['pathPrefixEnd'] = `${filter.pathPrefix}${LAST_CHARACTER}`;
  return values;
}
