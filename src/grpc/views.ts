import type { FencingToken } from '../domain/fencing-token.ts';
import type { LeaseMode } from '../domain/lease.ts';
import type { LeaseView, LockParty, LockView } from '../domain/lock-api.ts';
import type { LockEvent, LockReset } from '../domain/lock-events.ts';
import type { LockInfo, RecordLockResponse, WireEvent, WireMode, WireParty } from './messages.ts';

/** Domain views as messages: 0 and "" where JSON has `null`, times as epoch ms, 64-bit numbers as decimal strings. */

export function leaseMessage(lease: LeaseView): RecordLockResponse {
  const held = lease.state === 'held';
  return {
    acquired: held,
    acquired_znode_path: held ? (lease.acquiredZnodePath ?? '') : '',
    fencing_token: tokenText(held ? lease.fencingToken : null),
    lease_expires_at: epochMs(lease.leaseExpiresAt),
    lease_id: lease.leaseId,
    session_id: lease.sessionId ?? '',
    state: `LEASE_STATE_${lease.state.toUpperCase()}`,
    queue_position: lease.queuePosition ?? 0,
    signed_token: held ? (lease.signedToken ?? '') : '',
    reason: lease.reason ?? '',
    hold_count: lease.holdCount,
    expires_in_ms: wholeMs(lease.expiresInMs),
    // 0 says that there is none.
    hold_expires_in_ms: lease.holdExpiresInMs === null ? '0' : wholeMs(Math.max(1, lease.holdExpiresInMs)),
  };
}

/** Not acquired is no error. The state is that of the lease that waited, if there was one. */
export function notAcquired(state: string | null, reason: string): RecordLockResponse {
  return {
    acquired: false,
    acquired_znode_path: '',
    fencing_token: '0',
    lease_expires_at: '0',
    lease_id: '',
    session_id: '',
    state: `LEASE_STATE_${(state ?? 'unspecified').toUpperCase()}`,
    queue_position: 0,
    signed_token: '',
    reason,
    hold_count: 0,
    expires_in_ms: '0',
    hold_expires_in_ms: '0',
  };
}

export function lockMessage(lock: LockView): LockInfo {
  return {
    resource_path: lock.resource.name,
    mode: modeName(lock.mode),
    high_water_mark: tokenText(lock.highWaterMark),
    holders: lock.holders.map(partyMessage),
    waiters: lock.waiters.map(partyMessage),
    queue_length: lock.queueLength,
    ...(lock.waitEstimateMs === null ? {} : { wait_estimate_ms: wholeMs(lock.waitEstimateMs) }),
    znode_path: lock.znodePath,
    held_back_ms: String(Math.ceil(lock.heldBackMs)),
    foreign_contenders: lock.foreign,
    fence_level: `FENCE_LEVEL_${(lock.fenceLevel ?? 'unspecified').toUpperCase()}`,
  };
}

/** `visible`: a cycle goes through whatever its members hold, and of what lies outside of the caller's scope the name is left out. */
export function eventMessage(event: LockEvent | LockReset, visible: (name: string) => boolean): WireEvent {
  const base = { type: event.type.toUpperCase(), seq: String(event.seq), at: epochMs(event.at) };
  const blank = { resource_path: '', lease_ref: '', client_id: '', mode: modeName(null), fencing_token: '0', reason: '' };
  if (event.type === 'reset') return { ...base, ...blank, locks: event.locks.map(lockMessage), cycle: [] };
  return {
    ...base,
    resource_path: event.resource ?? '',
    lease_ref: event.leaseRef ?? '',
    client_id: event.clientId ?? '',
    mode: modeName(event.mode),
    fencing_token: tokenText(event.fencingToken),
    reason: event.reason ?? '',
    locks: [],
    cycle: (event.cycle ?? []).map(({ waiterLeaseRef, waiterClientId, resource }) => ({
      lease_ref: waiterLeaseRef,
      client_id: waiterClientId ?? '',
      waits_for: visible(resource) ? resource : '',
    })),
  };
}

export function wholeMs(ms: number): string {
  return String(Math.round(ms));
}

function partyMessage(party: LockParty): WireParty {
  return {
    lease_ref: party.leaseRef,
    client_id: party.clientId ?? '',
    since: epochMs(party.since),
    expires_in_ms: wholeMs(party.expiresInMs),
    priority: party.priority,
    znode: party.znode ?? '',
    ttl_ms: wholeMs(party.ttlMs),
    lock_delay_ms: wholeMs(party.lockDelayMs),
    reason: party.reason ?? '',
  };
}

function modeName(mode: LeaseMode | null): WireMode {
  if (mode === null) return 'LOCK_MODE_UNSPECIFIED';
  return mode === 'exclusive' ? 'LOCK_MODE_EXCLUSIVE' : 'LOCK_MODE_SHARED';
}

function tokenText(token: FencingToken | null): string {
  return token === null ? '0' : token.toString();
}

function epochMs(at: string | null): string {
  return at === null ? '0' : String(Date.parse(at));
}
