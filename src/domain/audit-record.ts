import { cycleMembers, type DeadlockStep } from './deadlock.ts';
import type { ErrorCode } from './errors.ts';
import type { FenceLevel } from './fence-level.ts';
import type { FencingToken } from './fencing-token.ts';
import { LIMITS } from './limits.ts';

/** The actions of the audit log; a closed list, part of the contract. */
export const AUDIT_ACTIONS = [
  'put',
  'mkdir',
  'patch',
  'append',
  'upload',
  'delete',
  'move',
  'copy',
  'lease_grant',
  'lease_refuse',
  'lease_convert',
  'lease_release',
  'lease_expire',
  'lease_break',
  'lease_lose',
  'lease_cancel',
  'deadlock',
  'fence_rebase',
  'volume_adopt',
  'doctor_fix',
  'start',
  'take_over',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** `pending` is computed from the operations in flight, never stored. */
export type Outcome = 'committed' | 'rejected' | 'aborted' | 'unknown' | 'pending';
export type StoredOutcome = Exclude<Outcome, 'pending'>;

/** One decision, before the journal gives it its place in the chain. `at` is RFC 3339 UTC; `digest` lower-case hex. */
export interface AuditDraft {
  readonly at: string;
  readonly action: AuditAction;
  readonly volume: string | null;
  readonly path: string | null;
  readonly outcome: StoredOutcome;
  readonly code: ErrorCode | null;
  readonly status: number | null;
  readonly principal: string | null;
  readonly clientId: string | null;
  readonly remoteAddress: string | null;
  readonly requestId: string | null;
  readonly operationId: string | null;
  readonly leaseRef: string | null;
  readonly fencingToken: FencingToken | null;
  readonly highWaterMark: FencingToken | null;
  readonly sizeBytes: number | null;
  readonly digest: string | null;
  readonly etagBefore: string | null;
  readonly etagAfter: string | null;
  readonly durationMs: number | null;
  readonly fenceLevel: FenceLevel | null;
  /** How many equal refusals this record stands for; 1 otherwise. */
  readonly count: number;
  /** JSON text made by `auditDetail`, `fixDetail`, `holdDetail` or `deadlockDetail`; left out when there is nothing more to say. */
  readonly detail?: string;
}

/** A write of a lease that is being broken, so that harm can be judged and undone. */
export interface CommittedWrite {
  readonly operationId: string;
  readonly action: AuditAction;
  readonly resource: string;
  readonly at: string;
  readonly etagBefore: string | null;
  readonly etagAfter: string | null;
}

/** What a lease wrote, oldest first. `truncated`: there is more than is listed. */
export interface CommittedWrites {
  readonly writes: readonly CommittedWrite[];
  readonly truncated: boolean;
}

/**
 * What an administrator's decision has beside the fields of every record, as it is stored and shown: the reason given and, of a lease
 * that is broken, what it had written when that was decided.
 */
export function auditDetail(reason: string, committed?: CommittedWrites): string {
  if (committed === undefined) return JSON.stringify({ reason });
  const listed = committed.writes.slice(0, LIMITS.recordedWritesMax);
  const writes = listed.map(({ operationId, action, resource, at, etagBefore, etagAfter }) => ({
    operation_id: operationId,
    action,
    resource,
    at,
    etag_before: etagBefore,
    etag_after: etagAfter,
  }));
  const truncated = committed.truncated || committed.writes.length > listed.length;
  return JSON.stringify({ reason, committed: writes, committed_truncated: truncated });
}

/** Which finding a fix was asked for, also when it was refused: of one that is gone nothing else tells. */
export function fixDetail(findingId: string, reason: string | null): string {
  return JSON.stringify({ reason, finding_id: findingId });
}

/** A hold was taken off, and the lease goes on with so many others. */
export function holdDetail(holdCount: number): string {
  return JSON.stringify({ reason: null, hold_count: holdCount });
}

/** The cycle in which a wait gave way. */
export function deadlockDetail(cycle: readonly DeadlockStep[]): string {
  return JSON.stringify({ reason: 'deadlock', cycle: cycleMembers(cycle) });
}

/** What does not apply is `null`, never left out; what is known stands in `fields`. */
export function recordWith(fields: Pick<AuditDraft, 'at' | 'action' | 'outcome'> & Partial<AuditDraft>): AuditDraft {
  return {
    volume: null,
    path: null,
    code: null,
    status: null,
    principal: null,
    clientId: null,
    remoteAddress: null,
    requestId: null,
    operationId: null,
    leaseRef: null,
    fencingToken: null,
    highWaterMark: null,
    sizeBytes: null,
    digest: null,
    etagBefore: null,
    etagAfter: null,
    durationMs: null,
    fenceLevel: null,
    count: 1,
    ...fields,
  };
}

export interface AuditRecord extends Omit<AuditDraft, 'outcome'> {
  readonly outcome: Outcome;
  readonly seq: number;
  readonly previousHash: string;
  readonly hash: string;
}

export interface AuditFilter {
  readonly volume?: string;
  readonly path?: string;
  readonly pathPrefix?: string;
  readonly principal?: string;
  readonly clientId?: string;
  readonly leaseRef?: string;
  readonly token?: FencingToken;
  readonly action?: AuditAction;
  readonly outcome?: Outcome;
  readonly code?: ErrorCode;
  readonly requestId?: string;
  readonly operationId?: string;
  /** RFC 3339; `since` is included, `until` is not. */
  readonly since?: string;
  readonly until?: string;
}

export interface AuditPage {
  readonly records: readonly AuditRecord[];
  /** Opaque; `null` on the last page. */
  readonly nextCursor: string | null;
}

export interface ChainReport {
  readonly valid: boolean;
  readonly records: number;
  readonly firstSeq: number | null;
  readonly lastSeq: number | null;
  readonly headHash: string;
  readonly firstBadSeq: number | null;
  /** From this `seq` on every record is keyed. `null`: no key is in use, or nothing sealed with one of the keys says where that begins. */
  readonly keyedFromSeq: number | null;
}
