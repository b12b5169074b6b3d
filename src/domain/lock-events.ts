import type { DeadlockStep } from './deadlock.ts';
import type { FencingToken } from './fencing-token.ts';
import type { LeaseMode } from './lease.ts';
import type { LockView } from './lock-api.ts';
import type { Caller } from './principal.ts';
import type { Resource } from './resource.ts';

/** The transitions of leases that a client may follow (R16). Derived from committed state; never the source of truth. */
export const LOCK_EVENT_TYPES = [
  'waiting',
  'granted',
  'converted',
  'released',
  'expired',
  'breaking',
  'broken',
  'lost',
  'cancelled',
  'deadlock',
  'suspended',
  'reconnected',
] as const;
export type LockEventType = (typeof LOCK_EVENT_TYPES)[number];

export interface LockEvent {
  readonly type: LockEventType;
  /** Grows by event; a watch resumes after the last one it saw. */
  readonly seq: number;
  /** RFC 3339 UTC. */
  readonly at: string;
  /** `volume/path`; `null` for `suspended` and `reconnected`, which concern everything. */
  readonly resource: string | null;
  readonly leaseRef: string | null;
  readonly clientId: string | null;
  readonly mode: LeaseMode | null;
  readonly fencingToken: FencingToken | null;
  readonly reason: string | null;
  /** Of a `deadlock`: the waits that went round. */
  readonly cycle: readonly DeadlockStep[] | null;
}

/** First event of a watch that cannot be resumed from where it was asked to: the present state, valid at `seq`. */
export interface LockReset {
  readonly type: 'reset';
  readonly seq: number;
  readonly at: string;
  readonly locks: readonly LockView[];
}

export type WatchScope =
  | { readonly of: 'resource'; readonly resource: Resource }
  /** `volume` null: every volume. `pathPrefix` is a plain-text prefix of the path, empty for all. */
  | { readonly of: 'prefix'; readonly volume: string | null; readonly pathPrefix: string }
  | { readonly of: 'session'; readonly sessionId: string };

export interface LockEvents {
  /**
   * Everything about `scope` from now on, or after `afterSeq`. A consumer that is too slow for the bounded buffer gets a `reset`.
   * Ends when `signal` aborts. Rejects with `session_not_found`.
   */
  watch(caller: Caller, scope: WatchScope, afterSeq: number | null, signal: AbortSignal): Promise<AsyncIterable<LockEvent | LockReset>>;
}
