/** Domain views as JSON: snake_case, tokens as decimal strings, `null` for what does not apply. Typed by the schemas of the answers. */
import type { Static } from '@sinclair/typebox';
import type { AuditRecord } from '../domain/audit-record.ts';
import { cycleMembers } from '../domain/deadlock.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import type { CoordinatorReadiness, Readiness, VolumeReadiness } from '../domain/health.ts';
import type { OperationView } from '../domain/journal.ts';
import type { LeaseView, LockParty, LockView, SessionView } from '../domain/lock-api.ts';
import { ASYNC_IS_NOT_SEEN, type MountFacts } from '../domain/mount-facts.ts';
import type { AdminSession, CoordinatorState, MountAnswer, ReadyBody, VolumeReady } from './schemas/admin.ts';
import type { RecordBody } from './schemas/audit.ts';
import type { OperationBody } from './schemas/files.ts';
import type { LeaseBody, LockBody, Party, Session } from './schemas/leases.ts';

export function tokenText(token: FencingToken | null): string | null {
  return token === null ? null : token.toString();
}

export function leaseJson(lease: LeaseView): LeaseBody {
  const names = lease.resources.map(({ name }) => name);
  return {
    lease_id: lease.leaseId,
    lease_ref: lease.leaseRef,
    resource: names.length === 1 ? (names[0] ?? null) : null,
    resources: names,
    mode: lease.mode,
    state: lease.state,
    fencing_token: tokenText(lease.fencingToken),
    signed_token: lease.signedToken,
    client_id: lease.clientId,
    session_id: lease.sessionId,
    priority: lease.priority,
    hold_count: lease.holdCount,
    hold_id: lease.holdId,
    ttl_ms: lease.ttlMs,
    expires_in_ms: Math.round(lease.expiresInMs),
    hold_expires_in_ms: lease.holdExpiresInMs === null ? null : Math.round(lease.holdExpiresInMs),
    lease_expires_at: lease.leaseExpiresAt,
    granted_at: lease.grantedAt,
    queue_position: lease.queuePosition,
    acquired_znode_path: lease.acquiredZnodePath,
    reason: lease.reason,
    cycle: lease.cycle === null ? null : cycleMembers(lease.cycle),
    metadata: lease.metadata,
  };
}

export function sessionJson(session: SessionView): Static<typeof Session> {
  return {
    session_id: session.sessionId,
    session_ref: session.sessionRef,
    ttl_ms: session.ttlMs,
    expires_in_ms: Math.round(session.expiresInMs),
    lease_count: session.leaseCount,
  };
}

/** For everybody but the holder: no session id. */
export function adminSessionJson(session: SessionView): Static<typeof AdminSession> {
  return {
    session_ref: session.sessionRef,
    principal: session.principal,
    client_id: session.clientId,
    state: session.state,
    ttl_ms: session.ttlMs,
    expires_in_ms: Math.round(session.expiresInMs),
    lease_count: session.leaseCount,
  };
}

function partyJson(party: LockParty): Static<typeof Party> {
  return {
    lease_ref: party.leaseRef,
    client_id: party.clientId,
    since: party.since,
    expires_in_ms: Math.round(party.expiresInMs),
    ttl_ms: party.ttlMs,
    lock_delay_ms: party.lockDelayMs,
    priority: party.priority,
    znode: party.znode,
    reason: party.reason,
  };
}

export function lockJson(lock: LockView): LockBody {
  return {
    resource: lock.resource.name,
    mode: lock.mode,
    high_water_mark: tokenText(lock.highWaterMark),
    holders: lock.holders.map(partyJson),
    waiters: lock.waiters.map(partyJson),
    queue_length: lock.queueLength,
    wait_estimate_ms: lock.waitEstimateMs === null ? null : Math.round(lock.waitEstimateMs),
    held_back_ms: Math.ceil(lock.heldBackMs),
    znode_path: lock.znodePath,
    foreign_contenders: [...lock.foreign],
    fence_level: lock.fenceLevel,
  };
}

export function operationJson(operation: OperationView): OperationBody {
  return {
    operation_id: operation.operationId,
    action: operation.action,
    resource: operation.resource,
    outcome: operation.outcome,
    code: operation.code,
    at: operation.at,
    etag: operation.etag,
    fencing_token: tokenText(operation.fencingToken),
  };
}

export function recordJson(record: AuditRecord): RecordBody {
  const { volume, path } = record;
  return {
    seq: record.seq,
    at: record.at,
    action: record.action,
    resource: volume === null || path === null ? null : `${volume}/${path}`,
    volume,
    path,
    outcome: record.outcome,
    code: record.code,
    status: record.status,
    principal: record.principal,
    client_id: record.clientId,
    remote_address: record.remoteAddress,
    request_id: record.requestId,
    operation_id: record.operationId,
    lease_ref: record.leaseRef,
    fencing_token: tokenText(record.fencingToken),
    high_water_mark: tokenText(record.highWaterMark),
    size_bytes: record.sizeBytes,
    digest: record.digest,
    etag_before: record.etagBefore,
    etag_after: record.etagAfter,
    duration_ms: record.durationMs,
    fence_level: record.fenceLevel,
    count: record.count,
    previous_hash: record.previousHash,
    hash: record.hash,
    detail: record.detail === undefined ? null : detailJson(record.detail),
  };
}

/** A row that was tampered with must not stop a query: `verify` is what finds it. */
function detailJson(text: string): RecordBody['detail'] {
  try {
    return JSON.parse(text) as RecordBody['detail'];
  } catch {
    return { reason: text };
  }
}

export function volumeReadyJson(volume: VolumeReadiness): Static<typeof VolumeReady> {
  const { name, state, fenceLevel, reason, space } = volume;
  return {
    name,
    state,
    fence_level: fenceLevel,
    reason,
    total_bytes: space?.totalBytes ?? null,
    free_bytes: space?.freeBytes ?? null,
    total_inodes: space?.totalInodes ?? null,
    free_inodes: space?.freeInodes ?? null,
  };
}

export function mountJson(mount: MountFacts | null): Static<typeof MountAnswer> | null {
  if (mount === null) return null;
  const { fileSystem, isNetwork, source, options, warnings } = mount;
  return {
    file_system: fileSystem,
    network: isNetwork,
    source,
    options: [...options],
    warnings: [...warnings],
    note: isNetwork ? ASYNC_IS_NOT_SEEN : null,
  };
}

export function coordinatorJson(coordinator: CoordinatorReadiness): Static<typeof CoordinatorState> {
  const { kind, state, sessionMs, proofAgeMs, reason } = coordinator;
  return { kind, state, session_ms: sessionMs, proof_age_ms: proofAgeMs === null ? null : Math.round(proofAgeMs), reason };
}

export function readyJson(readiness: Readiness): ReadyBody {
  const { healthy, headSeq, headHash, reason } = readiness.journal;
  return {
    ready: readiness.ready,
    journal: { healthy, head_seq: headSeq, head_hash: headHash, reason },
    coordinator: coordinatorJson(readiness.coordinator),
    volumes: readiness.volumes.map(volumeReadyJson),
  };
}
