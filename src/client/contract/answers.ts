// Made from the schemas of the gateway: npx vitest run test/unit/client/contract.test.ts -u
import type { ErrorCode } from './codes.ts';

export type LeaseMode = 'exclusive' | 'shared';

export type LeaseState = 'waiting' | 'held' | 'ending' | 'released' | 'expired' | 'broken' | 'lost' | 'cancelled';

export type LockEventType =
  | 'waiting'
  | 'granted'
  | 'converted'
  | 'released'
  | 'expired'
  | 'breaking'
  | 'broken'
  | 'lost'
  | 'cancelled'
  | 'deadlock'
  | 'suspended'
  | 'reconnected';

export type AuditAction =
  | 'put'
  | 'mkdir'
  | 'patch'
  | 'append'
  | 'upload'
  | 'delete'
  | 'move'
  | 'copy'
  | 'lease_grant'
  | 'lease_refuse'
  | 'lease_convert'
  | 'lease_release'
  | 'lease_expire'
  | 'lease_break'
  | 'lease_lose'
  | 'lease_cancel'
  | 'deadlock'
  | 'fence_rebase'
  | 'volume_adopt'
  | 'doctor_fix'
  | 'start'
  | 'take_over';

export type AuditOutcome = 'committed' | 'rejected' | 'aborted' | 'unknown' | 'pending';

export type FenceLevel = 'token' | 'incarnation' | 'fleet';

export type Durability = 'synced' | 'journaled';

export interface Problem {
  /** /docs/problems/{code} */
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: string;
  readonly request_id: string;
}

export interface CycleMember {
  readonly lease_ref: string;
  readonly client_id: string | null;
  /** null in an event: outside the scope of who watches */
  readonly waits_for: string | null;
}

export interface Lease {
  readonly lease_id: string;
  /** Names the lease to everybody else */
  readonly lease_ref: string;
  /** null for a lease over several */
  readonly resource: string | null;
  /** Empty, and mode, session_id, priority and ttl_ms null, of a wait that a restart ended and the journal does not know: its id alone says that it was one */
  readonly resources: readonly string[];
  readonly mode: LeaseMode | null;
  readonly state: LeaseState;
  /** Fencing token, decimal */
  readonly fencing_token: string | null;
  readonly signed_token: string | null;
  readonly client_id: string | null;
  /** One that was made for a lease may be named like any other, and ends with the last of its leases and waits; then it is session_not_found */
  readonly session_id: string | null;
  readonly priority: number | null;
  readonly hold_count: number;
  readonly hold_id: string | null;
  readonly ttl_ms: number | null;
  readonly expires_in_ms: number;
  /** Of a held one with a longest hold, its own or the volume's: what is left of that, however it is renewed */
  readonly hold_expires_in_ms: number | null;
  /** RFC 3339 UTC */
  readonly lease_expires_at: string | null;
  /** RFC 3339 UTC */
  readonly granted_at: string | null;
  /** 1 = next */
  readonly queue_position: number | null;
  readonly acquired_znode_path: string | null;
  /** Why it ended. Of a held one: `breaking` while an administrator ends it after a grace, expires_in_ms goes no further; why its upgrade failed, `upgrade_lost` when that waited at a restart of the gateway. The next conversion takes the latter away */
  readonly reason: string | null;
  /** The waits that went round when it, or its upgrade, gave way to a deadlock (reason `deadlock`) */
  readonly cycle: readonly CycleMember[] | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
}

export interface AcquireLease {
  /** volume/path, plain text */
  readonly resource?: string;
  /** Taken all or nothing, in place of "resource" */
  readonly resources?: readonly string[];
  /** Default exclusive */
  readonly mode?: LeaseMode;
  /** Default 30000. From 1000 to 3600000, or as the volume says; outside of that ttl_out_of_range, with the bounds */
  readonly ttl_ms?: number | null;
  /** How long this request waits; default 0 */
  readonly wait_ms?: number | null;
  /** Ends the whole wait. Of requests of one session that wait together those of the first count */
  readonly max_wait_ms?: number | null;
  /** Ends the lease, however it is renewed; at most what its volume allows */
  readonly max_hold_ms?: number | null;
  /** Default 5 */
  readonly priority?: number | null;
  readonly client_id?: string | null;
  /** Secret of the client */
  readonly session_id?: string | null;
  /** Makes a retried request count once */
  readonly hold_id?: string | null;
  /** Hold-back after an unclean end; default 0 */
  readonly lock_delay_ms?: number | null;
  /** Up to 4096 bytes of JSON, for the holder. Its reason, when that is a text, is shown to whoever may look at the lock */
  readonly metadata?: Readonly<Record<string, unknown>> | null;
}

export interface CreateSession {
  /** Default 30000. From 1000 to 3600000; outside of that ttl_out_of_range, with the bounds */
  readonly ttl_ms?: number | null;
  readonly client_id?: string | null;
}

export interface Session {
  readonly session_id: string;
  readonly session_ref: string;
  readonly ttl_ms: number;
  readonly expires_in_ms: number;
  readonly lease_count: number;
}

export interface Heartbeat {
  /** How long what the session holds lives from now on; over ZooKeeper at most as long as the coordinator’s proof goes */
  readonly expires_in_ms: number;
  readonly lost: readonly string[];
}

export interface LockParty {
  readonly lease_ref: string;
  readonly client_id: string | null;
  /** Granted, or in line since; RFC 3339 UTC */
  readonly since: string;
  readonly expires_in_ms: number;
  /** Time to live at each renewal */
  readonly ttl_ms: number;
  /** For how long nobody is granted after an unclean end */
  readonly lock_delay_ms: number;
  readonly priority: number;
  readonly znode: string | null;
  /** What its holder says it is for: reason of its metadata when that is a text, the first 256 characters of it */
  readonly reason: string | null;
}

export interface Lock {
  readonly resource: string;
  readonly mode: LeaseMode | null;
  /** Highest token granted here */
  readonly high_water_mark: string | null;
  readonly holders: readonly LockParty[];
  /** In the order in which they will be served; first a holder that asks to become exclusive */
  readonly waiters: readonly LockParty[];
  readonly queue_length: number;
  /** For who would come now and ask for it alone: the average hold of this gateway for each turn before it, for the present holder at least as long again as it has held; no longer than max_hold_ms and a grace allow. An estimate, no promise. null: nothing has been held yet, or another recipe holds */
  readonly wait_estimate_ms: number | null;
  /** What is left of a lock-delay; 0: not held back */
  readonly held_back_ms: number;
  readonly znode_path: string;
  /** Nodes of other lock recipes at the coordinator; they hold without a token */
  readonly foreign_contenders: readonly string[];
  /** What protects writes now; token while another recipe holds; null for a lock-only volume */
  readonly fence_level: FenceLevel | null;
}

export interface LockPage {
  readonly locks: readonly Lock[];
  readonly next_cursor: string | null;
}

export interface LocksQuery {
  readonly volume?: string;
  readonly state?: 'held' | 'waiting';
  /** Only what is held or waits for longer */
  readonly older_than_ms?: number;
  /** How many in one page, at most 1000; default 1000. next_cursor leads to the rest */
  readonly limit?: number;
  /** next_cursor of the page before */
  readonly cursor?: string;
}

export interface WrittenFile {
  readonly resource: string;
  readonly volume: string;
  readonly path: string;
  readonly size_bytes: number;
  /** The value of the ETag header, quotes included */
  readonly etag: string;
  readonly digest: {
    /** Lower-case hex */
    readonly 'sha-256': string;
  } | null;
  /** Fencing token, decimal */
  readonly fencing_token: string;
  readonly lease_ref: string;
  readonly operation_id: string;
  readonly durability: Durability;
  readonly fence_level: FenceLevel;
}

export interface WrittenFiles {
  readonly operation_id: string;
  readonly files: readonly WrittenFile[];
}

export interface Entry {
  /** null when the name is not UTF-8 */
  readonly name: string | null;
  /** The bytes of a name that is not UTF-8; GET finds it by these bytes, percent-encoded */
  readonly name_base64: string | null;
  readonly type: 'file' | 'directory' | 'symbolic_link' | 'special';
  readonly size_bytes: number | null;
  /** RFC 3339 UTC */
  readonly modified_at: string | null;
}

export interface Listing {
  readonly entries: readonly Entry[];
  readonly next_cursor: string | null;
}

export interface Transfer {
  /** volume/path, plain text */
  readonly from: string;
  /** volume/path, plain text */
  readonly to: string;
  readonly overwrite?: boolean;
  /** Fencing token of this name, as it was given; null is the same as leaving it out */
  readonly from_token?: string | null;
  /** Fencing token of this name, as it was given; null is the same as leaving it out */
  readonly to_token?: string | null;
}

export interface Volume {
  readonly name: string;
  /** false: lock-only */
  readonly files: boolean;
  readonly require_token: 'false' | 'once_leased' | 'true';
  readonly tokens: 'issued' | 'signed';
  readonly read_only: boolean;
}

export interface VolumeList {
  readonly volumes: readonly Volume[];
}

export interface Operation {
  readonly operation_id: string;
  readonly action: string;
  readonly resource: string;
  /** unknown: the volume does not tell yet, or the journal failed in its commit; then the next start of the gateway makes it committed, or forgets it (404): it did not happen */
  readonly outcome: AuditOutcome;
  readonly code: string | null;
  /** When it was decided; RFC 3339 UTC */
  readonly at: string;
  readonly etag: string | null;
  /** Fencing token, decimal */
  readonly fencing_token: string | null;
}

export interface AuditRecord {
  readonly seq: number;
  /** When it was decided; RFC 3339 UTC */
  readonly at: string;
  readonly action: AuditAction;
  readonly resource: string | null;
  readonly volume: string | null;
  readonly path: string | null;
  readonly outcome: AuditOutcome;
  readonly code: string | null;
  readonly status: number | null;
  readonly principal: string | null;
  readonly client_id: string | null;
  readonly remote_address: string | null;
  readonly request_id: string | null;
  readonly operation_id: string | null;
  readonly lease_ref: string | null;
  /** In a refusal the token that was presented */
  readonly fencing_token: string | null;
  /** In a refusal the mark that it met */
  readonly high_water_mark: string | null;
  readonly size_bytes: number | null;
  /** SHA-256, lower-case hex */
  readonly digest: string | null;
  readonly etag_before: string | null;
  readonly etag_after: string | null;
  readonly duration_ms: number | null;
  readonly fence_level: FenceLevel | null;
  /** How many equal refusals this record stands for */
  readonly count: number;
  readonly previous_hash: string;
  readonly hash: string;
  /** Of an administrator's decision, a deadlock, a hold that was taken off, an upgrade that waited and was not granted, or an end by the longest hold, the longest wait or the end of the session; null in all other records */
  readonly detail: {
    /** As it was given; deadlock of a deadlock; why an upgrade was not granted; max_hold, session_ended or max_wait of an end. null: of a fix that needs none, and of a hold */
    readonly reason: string | null;
    /** Of a fix, carried out or refused: the finding that it was asked for */
    readonly finding_id?: string;
    /** What a broken lease had written when its end took effect (of a break that is pending: when it was announced), oldest first, at most 100; its lease_ref finds all of it */
    readonly committed?: readonly {
      readonly operation_id: string;
      readonly action: string;
      readonly resource: string;
      /** Committed; RFC 3339 UTC */
      readonly at: string;
      readonly etag_before: string | null;
      readonly etag_after: string | null;
    }[];
    /** Beside committed. True: it had written more */
    readonly committed_truncated?: boolean;
    /** Of a hold that was taken off: how many are left. The lease goes on with them */
    readonly hold_count?: number;
    /** Of a deadlock: the waits that went round */
    readonly cycle?: readonly CycleMember[];
  } | null;
}

export interface AuditPage {
  readonly records: readonly AuditRecord[];
  readonly next_cursor: string | null;
}

export interface AuditQuery {
  readonly volume?: string;
  readonly path?: string;
  readonly path_prefix?: string;
  readonly principal?: string;
  readonly client_id?: string;
  readonly lease_ref?: string;
  readonly token?: string;
  readonly action?: AuditAction;
  readonly outcome?: AuditOutcome;
  readonly code?: ErrorCode;
  readonly request_id?: string;
  readonly operation_id?: string;
  /** RFC 3339, included */
  readonly since?: string;
  /** RFC 3339, not included */
  readonly until?: string;
  /** Default desc: newest first */
  readonly order?: 'asc' | 'desc';
  /** How many in one page, at most 1000; default 100. next_cursor leads to the rest */
  readonly limit?: number;
  /** next_cursor of the page before */
  readonly cursor?: string;
}

export interface AuditChain {
  readonly valid: boolean;
  readonly records: number;
  readonly first_seq: number | null;
  readonly last_seq: number | null;
  readonly head_hash: string;
  readonly first_bad_seq: number | null;
  /** From this record on a plain hash does not count. It never changes: one that did is a history made anew. null: there is no key, or nothing that a configured key has sealed says where */
  readonly keyed_from_seq: number | null;
}

export interface BreakLock {
  /** volume/path, plain text */
  readonly resource: string;
  /** Why; goes into the audit record */
  readonly reason: string;
  /** Default 0: at once */
  readonly grace_ms?: number;
  /** Who is meant, as GET /v1/locks shows its holders: nobody else is broken. Sent again, also after it was done, the break is answered as the first one was, for an hour. Default: whoever holds the lock when the request arrives */
  readonly lease_refs?: readonly string[];
}

export interface BreakReport {
  readonly resource: string;
  readonly state: 'broken' | 'breaking';
  /** Fencing token, decimal */
  readonly high_water_mark: string | null;
  /** RFC 3339 UTC; null once broken */
  readonly deadline: string | null;
  readonly leases: readonly {
    readonly lease_ref: string;
    readonly client_id: string | null;
    readonly mode: LeaseMode;
    /** null: it was not granted yet, and held only some of its names */
    readonly fencing_token: string | null;
    /** Of the break: finds its records, and what came of it at /v1/operations; null when the lease was being ended already */
    readonly operation_id: string | null;
    /** What it had written, oldest first */
    readonly committed: readonly {
      readonly operation_id: string;
      readonly action: string;
      readonly resource: string;
      /** Committed; RFC 3339 UTC */
      readonly at: string;
      readonly etag_before: string | null;
      readonly etag_after: string | null;
    }[];
    /** True: it had written more; GET /v1/audit?lease_ref= lists all of it */
    readonly committed_truncated: boolean;
  }[];
}

export interface AdminSession {
  readonly session_ref: string;
  readonly principal: string;
  readonly client_id: string | null;
  /** ending: its end is decided, and the journal does not have it, or that of one of its leases, yet */
  readonly state: 'live' | 'ending';
  readonly ttl_ms: number;
  readonly expires_in_ms: number;
  /** Of one that is ending: leases whose end the journal does not have yet */
  readonly lease_count: number;
}

export interface CoordinatorState {
  readonly kind: 'embedded' | 'zookeeper';
  /** lost: there is no session, or none yet */
  readonly state: 'connected' | 'suspended' | 'reconnected' | 'lost';
  readonly session_ms: number | null;
  /** How long ago the request was sent whose answer proved the session */
  readonly proof_age_ms: number | null;
  /** Why nothing is granted although there is contact */
  readonly reason: string | null;
}

export interface VolumeReadiness {
  readonly name: string;
  /** unavailable also while it is not known whether the volume is still of this gateway: reads go on then */
  readonly state: 'open' | 'read_only' | 'closed' | 'unavailable' | 'lock_only';
  readonly fence_level: FenceLevel;
  readonly reason: string | null;
  /** Of the file system, as of the last look; null: lock-only, or it does not answer */
  readonly total_bytes: number | null;
  /** For anybody but root */
  readonly free_bytes: number | null;
  /** null also where they are not counted */
  readonly total_inodes: number | null;
  /** None left is 507 like no space left */
  readonly free_inodes: number | null;
}

export interface DoctorFinding {
  readonly id: string;
  readonly code: string;
  readonly severity: 'info' | 'warning' | 'error';
  readonly resource: string | null;
  readonly evidence: Readonly<Record<string, unknown>>;
  /** What the fix would do */
  readonly fix: string | null;
}

export interface DoctorReport {
  /** When it was looked at; RFC 3339 UTC */
  readonly at: string;
  readonly healthy: boolean;
  readonly findings: readonly DoctorFinding[];
  /** The first 1000; GET /v1/admin/sessions has all, page by page */
  readonly sessions: readonly AdminSession[];
  /** The first 1000; GET /v1/locks has all, page by page */
  readonly locks: readonly Lock[];
  readonly wait_for: readonly {
    readonly waiter_lease_ref: string;
    readonly holder_lease_ref: string;
    readonly resource: string;
  }[];
  readonly coordinator: CoordinatorState;
  readonly volumes: readonly VolumeReadiness[];
}

export interface FixReport {
  readonly dry_run: boolean;
  readonly steps: readonly string[];
}

export interface Fence {
  readonly resource: string;
  /** Fencing token, decimal */
  readonly high_water_mark: string | null;
  readonly lease_ref: string | null;
  readonly principal: string | null;
  /** It was ever leased by name (policy once_leased) */
  readonly ever_named: boolean;
  /** Every token up to this one is void on the volume */
  readonly floor: string | null;
}

export interface RebaseReport {
  /** Fencing token, decimal */
  readonly base: string;
  readonly volumes: readonly string[];
}
