import type { Amount } from './plan.ts';

/** What one client does from end to end before it begins again: what the figures of a cycle row count. */
export type Cycle =
  /** A lease is taken and released, on a name of the client's own, or each time on one never seen; `acquire`: latencies are of the taking alone. */
  | { readonly kind: 'fencegate-lease'; readonly volume: string; readonly names?: 'own' | 'new'; readonly timed?: 'acquire' }
  /** The same with etcd: a lease, a key that only a free name gets, and the lease revoked, over the JSON gateway. */
  | { readonly kind: 'etcd-lock' }
  /** The same with Redis: SET NX PX, and a script that deletes the key only when it is still ours. */
  | { readonly kind: 'redis-lock' }
  /** WebDAV: LOCK, PUT, UNLOCK of a file of the client's own. */
  | { readonly kind: 'webdav'; readonly bodyBytes: number };

/** Work for the load driver beyond equal requests: clients of their own connection each, the next cycle after the end of the last. */
export interface CyclePlan {
  readonly plan: 'cycles';
  readonly port: number;
  readonly clients: number;
  readonly cycle: Cycle;
  readonly amount: Amount;
}

/**
 * Clients that all want one name. The holder releases and stands in line again, so the queue stays as long as it is; measured is the time from
 * sending the release to the answer that tells the next one.
 */
export interface HandOverPlan {
  readonly plan: 'hand-over';
  readonly port: number;
  readonly resource: string;
  readonly waiters: number;
  readonly amount: { readonly warmUpMs: number; readonly measureMs: number };
}

/** Sessions with a lease each, made at first use and kept alive; measured are the answers to batches of heartbeats. */
export interface HeartbeatPlan {
  readonly plan: 'heartbeats';
  readonly port: number;
  readonly volume: string;
  readonly leases: number;
  /** How often each session is renewed. */
  readonly everyMs: number;
  readonly batch: number;
  /** 0: they are only made. */
  readonly measureMs: number;
}
