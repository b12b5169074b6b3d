import type { AuditAction, AuditDraft, AuditRecord, StoredOutcome } from '../domain/audit-record.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { FenceLevel } from '../domain/fence-level.ts';
import type { FencingToken } from '../domain/fencing-token.ts';

/** A row of the table `audit`, read with 64-bit integers. */
export interface AuditRow {
  readonly seq: bigint;
  readonly at: string;
  readonly at_ms: bigint;
  readonly at_high_ms: bigint;
  readonly action: string;
  readonly volume: string | null;
  readonly path: string | null;
  readonly outcome: string;
  readonly code: string | null;
  readonly status: bigint | null;
  readonly principal: string | null;
  readonly client_id: string | null;
  readonly remote_address: string | null;
  readonly request_id: string | null;
  readonly operation_id: string | null;
  readonly lease_ref: string | null;
  readonly fencing_token: bigint | null;
  readonly high_water_mark: bigint | null;
  readonly size_bytes: bigint | null;
  readonly digest: string | null;
  readonly etag_before: string | null;
  readonly etag_after: string | null;
  readonly duration_ms: number | null;
  readonly fence_level: string | null;
  readonly count: bigint;
  readonly detail: string | null;
  readonly superseded_by: bigint | null;
  readonly chain_key: string;
  readonly previous_hash: Buffer;
  readonly hash: Buffer;
}

/** Records of leases may carry the operation that took them; they are not the operation. A break with a grace is one of its own. */
export const OF_OPERATION = `(action NOT LIKE 'lease\\_%' ESCAPE '\\' OR action = 'lease_break')`;

const COLUMNS = [
  'at',
  'action',
  'volume',
  'path',
  'outcome',
  'code',
  'status',
  'principal',
  'client_id',
  'remote_address',
  'request_id',
  'operation_id',
  'lease_ref',
  'fencing_token',
  'high_water_mark',
  'size_bytes',
  'digest',
  'etag_before',
  'etag_after',
  'duration_ms',
  'fence_level',
  'count',
  'detail',
] as const;

/** `seq`, the two times in ms, the record, the key and the two hashes, in the order that `insertValues` gives. */
export const INSERT_AUDIT = `INSERT INTO audit (seq, at_ms, at_high_ms, chain_key, previous_hash, hash, ${COLUMNS.join(', ')})
  VALUES (?, ?, ?, ?, ?, ?, ${COLUMNS.map(() => '?').join(', ')})`;

/** The record's own columns, in the order of `INSERT_AUDIT`. */
export function recordValues(record: AuditDraft): readonly (string | number | bigint | null)[] {
  return [
    record.at,
    record.action,
    record.volume,
    record.path,
    record.outcome,
    record.code,
    record.status,
    record.principal,
    record.clientId,
    record.remoteAddress,
    record.requestId,
    record.operationId,
    record.leaseRef,
    record.fencingToken,
    record.highWaterMark,
    record.sizeBytes,
    record.digest,
    record.etagBefore,
    record.etagAfter,
    record.durationMs,
    record.fenceLevel,
    record.count,
    record.detail ?? null,
  ];
}

function numberOf(value: bigint | null): number | null {
  return value === null ? null : Number(value);
}

/** The record as it was appended. A tampered row may hold words or numbers that no record has; the chain finds those, so nothing is checked here. */
export function draftOf(row: AuditRow): AuditDraft {
  return {
    at: row.at,
    action: row.action as AuditAction,
    volume: row.volume,
    path: row.path,
    outcome: row.outcome as StoredOutcome,
    code: row.code as ErrorCode | null,
    status: numberOf(row.status),
    principal: row.principal,
    clientId: row.client_id,
    remoteAddress: row.remote_address,
    requestId: row.request_id,
    operationId: row.operation_id,
    leaseRef: row.lease_ref,
    fencingToken: row.fencing_token as FencingToken | null,
    highWaterMark: row.high_water_mark as FencingToken | null,
    sizeBytes: numberOf(row.size_bytes),
    digest: row.digest,
    etagBefore: row.etag_before,
    etagAfter: row.etag_after,
    durationMs: row.duration_ms,
    fenceLevel: row.fence_level as FenceLevel | null,
    count: Number(row.count),
    ...(row.detail === null ? {} : { detail: row.detail }),
  };
}

export function recordOf(row: AuditRow): AuditRecord {
  return { ...draftOf(row), seq: Number(row.seq), previousHash: row.previous_hash.toString('hex'), hash: row.hash.toString('hex') };
}
