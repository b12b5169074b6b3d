import type { DeadlockStep } from './deadlock.ts';
import type { FenceLevel } from './fence-level.ts';
import type { FencingToken } from './fencing-token.ts';
import type { LeaseMode, LeaseState } from './lease.ts';
import type { Caller } from './principal.ts';
import type { Resource } from './resource.ts';

/** The face that the lock service shows to HTTP and gRPC (`http-api.md`, Leases; `locks.md`). Durations in ms. */

export interface AcquireRequest {
  readonly resources: readonly Resource[];
  readonly mode: LeaseMode;
  /** `null`: the default. Outside the volume's bounds: `ttl_out_of_range` with `min_ms`, `max_ms`. */
  readonly ttlMs: number | null;
  /** How long the request waits; `null`: until the wait is over or the request gone, and for so long the request is the waiter's sign of life. */
  readonly waitMs: number | null;
  readonly maxWaitMs: number | null;
  readonly maxHoldMs: number | null;
  readonly priority: number;
  readonly clientId: string | null;
  readonly sessionId: string | null;
  readonly holdId: string | null;
  readonly lockDelayMs: number | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
}

/** What is not known of a lease that ended before a restart is `null`: a wait is not in the journal. */
export interface LeaseView {
  readonly leaseId: string;
  readonly leaseRef: string;
  readonly resources: readonly Resource[];
  readonly mode: LeaseMode | null;
  readonly state: LeaseState;
  readonly fencingToken: FencingToken | null;
  readonly signedToken: string | null;
  readonly clientId: string | null;
  readonly sessionId: string | null;
  readonly priority: number | null;
  readonly holdCount: number;
  readonly holdId: string | null;
  readonly ttlMs: number | null;
  readonly expiresInMs: number;
  /** What is left of the longest hold; `null` while it is not held, and without one. */
  readonly holdExpiresInMs: number | null;
  readonly leaseExpiresAt: string | null;
  readonly grantedAt: string | null;
  readonly queuePosition: number | null;
  readonly acquiredZnodePath: string | null;
  readonly reason: string | null;
  /** In which it, or its upgrade, gave way. */
  readonly cycle: readonly DeadlockStep[] | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
}

export interface SessionView {
  readonly sessionId: string;
  readonly sessionRef: string;
  readonly principal: string;
  readonly clientId: string | null;
  /** `ending`: its end is decided and not durable yet, so it may not be told. */
  readonly state: 'live' | 'ending';
  readonly ttlMs: number;
  readonly expiresInMs: number;
  /** One that is ending: those whose end is not durable yet. */
  readonly leaseCount: number;
}

/** What everybody may see of a holder or a waiter. */
export interface LockParty {
  readonly leaseRef: string;
  readonly clientId: string | null;
  readonly since: string;
  readonly expiresInMs: number;
  readonly ttlMs: number;
  readonly lockDelayMs: number;
  readonly priority: number;
  readonly znode: string | null;
  /** What its holder says it is for: `reason` of its metadata, shortened. The rest of the metadata is for the holder alone. */
  readonly reason: string | null;
}

export interface LockView {
  readonly resource: Resource;
  readonly mode: LeaseMode | null;
  readonly highWaterMark: FencingToken | null;
  readonly holders: readonly LockParty[];
  readonly waiters: readonly LockParty[];
  readonly queueLength: number;
  readonly waitEstimateMs: number | null;
  /** For how long nobody is granted after an unclean end (lock-delay); 0: not held back. */
  readonly heldBackMs: number;
  readonly znodePath: string;
  /** Nodes of other recipes that contend at the coordinator, in the order in which they came. They hold without a token. */
  readonly foreign: readonly string[];
  /** What protects writes now: `token` while somebody holds who does not know Fencegate; `null` where nothing is written. */
  readonly fenceLevel: FenceLevel | null;
}

export interface LockFilter {
  readonly volume?: string;
  readonly state?: 'held' | 'waiting';
  readonly olderThanMs?: number;
  readonly limit: number;
  readonly cursor: string | null;
}

export interface LockService {
  /**
   * `created` false: re-entrant. A try or a wait that ran out rejects with `lock_not_acquired`, or with
   * `coordinator_suspended` when nobody knows who holds, and when LOST ends it. The signal's abort takes the hold of this
   * request off again, and with the last one the waiter out of the line.
   */
  acquire(caller: Caller, request: AcquireRequest, signal: AbortSignal): Promise<{ readonly lease: LeaseView; readonly created: boolean }>;
  /**
   * The answer of an `acquire` that told of `leaseId` and `holdId` did not get to its client: what nobody else was told of is given back. Does nothing for
   * a lease that is over.
   */
  undelivered(caller: Caller, leaseId: string, holdId: string): void;
  /** For a waiter the long poll that keeps its place. Rejects with `lease_not_found`. */
  lease(caller: Caller, leaseId: string, waitMs: number, signal: AbortSignal): Promise<LeaseView>;
  /** The lease on `resource` that has this token, live or ended within the hour, for its own principal. Rejects with `lease_not_found`, `not_lease_owner`. */
  leaseWithToken(caller: Caller, resource: Resource, token: FencingToken): Promise<LeaseView>;
  /** Without `ttlMs` for the time to live that it has; otherwise for that one from now on. Rejects with `lease_not_held`, `ttl_out_of_range`. */
  renew(caller: Caller, leaseId: string, ttlMs?: number | null): Promise<LeaseView>;
  /** To `shared`: done when it resolves. To `exclusive`: done, or still `shared` when it waits for the other readers (`lease` polls for the end of that; converting to `shared` gives it up). Rejects with `upgrade_conflict`, `lease_not_held`. */
  convert(caller: Caller, leaseId: string, mode: LeaseMode, signal: AbortSignal): Promise<LeaseView>;
  /** Idempotent. Takes off the hold `holdId`, else any, with `all` every one; the last one ends the lease, held or waiting. */
  release(caller: Caller, leaseId: string, options: { readonly holdId: string | null; readonly all: boolean }): Promise<void>;

  createSession(caller: Caller, request: { readonly ttlMs: number | null; readonly clientId: string | null }): Promise<SessionView>;
  heartbeat(caller: Caller, sessionId: string): Promise<{ readonly expiresInMs: number; readonly lost: readonly string[] }>;
  endSession(caller: Caller, sessionId: string): Promise<void>;
  endSessionByRef(caller: Caller, sessionRef: string): Promise<void>;
  /** In the order in which they came to be. Rejects with `invalid_request` for a bad cursor. */
  sessionPage(page: {
    readonly limit: number;
    readonly cursor: string | null;
  }): Promise<{ readonly sessions: readonly SessionView[]; readonly nextCursor: string | null }>;

  /** From the authoritative state (R26). */
  lock(resource: Resource): Promise<LockView>;
  locks(filter: LockFilter): Promise<{ readonly locks: readonly LockView[]; readonly nextCursor: string | null }>;
}
