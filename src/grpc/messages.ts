/** The messages of `lock_service.proto` as they come and go: 64-bit numbers are decimal strings, never doubles; enums are their names. */

export type WireMode = 'LOCK_MODE_UNSPECIFIED' | 'LOCK_MODE_EXCLUSIVE' | 'LOCK_MODE_SHARED';

/** A number in place of a name: a value that this version of the contract does not have. */
type Received<Name extends string> = Name | number;

export interface RecordLockRequest {
  readonly resource_path: string;
  readonly client_id: string;
  readonly session_timeout_ms: string;
  readonly wait_blocking: boolean;
  readonly mode: Received<WireMode>;
  readonly priority?: number;
  readonly wait_limit_ms?: string;
  readonly session_id: string;
  readonly max_hold_ms?: string;
  readonly hold_id: string;
  readonly lock_delay_ms?: string;
}

export interface RecordLockResponse {
  readonly acquired: boolean;
  readonly acquired_znode_path: string;
  readonly fencing_token: string;
  readonly lease_expires_at: string;
  readonly lease_id: string;
  readonly session_id: string;
  readonly state: string;
  readonly queue_position: number;
  readonly signed_token: string;
  readonly reason: string;
  readonly hold_count: number;
  readonly expires_in_ms: string;
  readonly hold_expires_in_ms: string;
}

export interface RenewLockRequest {
  readonly lease_id: string;
  readonly ttl_ms: string;
}

export interface ReleaseLockRequest {
  readonly lease_id: string;
  readonly resource_path: string;
  readonly fencing_token: string;
  readonly hold_id: string;
  readonly all: boolean;
}

export interface ReleaseLockResponse {
  readonly released: boolean;
}

export interface GetLockRequest {
  readonly resource_path: string;
}

export interface WireParty {
  readonly lease_ref: string;
  readonly client_id: string;
  readonly since: string;
  readonly expires_in_ms: string;
  readonly priority: number;
  readonly znode: string;
  readonly ttl_ms: string;
  readonly lock_delay_ms: string;
  readonly reason: string;
}

export interface LockInfo {
  readonly resource_path: string;
  readonly mode: WireMode;
  readonly high_water_mark: string;
  readonly holders: readonly WireParty[];
  readonly waiters: readonly WireParty[];
  readonly queue_length: number;
  readonly wait_estimate_ms?: string;
  readonly znode_path: string;
  readonly held_back_ms: string;
  readonly foreign_contenders: readonly string[];
  readonly fence_level: string;
}

export interface WatchLockRequest {
  readonly resource_path: string;
  readonly from_seq: string;
}

export interface WireEvent {
  readonly type: string;
  readonly seq: string;
  readonly at: string;
  readonly resource_path: string;
  readonly lease_ref: string;
  readonly client_id: string;
  readonly mode: WireMode;
  readonly fencing_token: string;
  readonly reason: string;
  readonly locks: readonly LockInfo[];
  readonly cycle: readonly WireCycleMember[];
}

export interface WireCycleMember {
  readonly lease_ref: string;
  readonly client_id: string;
  readonly waits_for: string;
}

export interface KeepAliveRequest {
  readonly session_ids: readonly string[];
}

export interface KeepAliveResponse {
  readonly session_id: string;
  readonly expires_in_ms: string;
  readonly lost_lease_ids: readonly string[];
  readonly reason: string;
}
