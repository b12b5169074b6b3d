import type { ClientEventListener } from './client-events.ts';
import type { ClientClock } from './clock.ts';
import type { InheritedFacts } from './inherited-lease.ts';
import type { ClientTls } from './own-fetch.ts';
import type { Fetch } from './transport.ts';

export interface FencegateClientOptions {
  /** Where the gateway listens; default `http://127.0.0.1:8080`. A path before `/v1` is kept. */
  readonly url?: string;
  /** Bearer token; default none. */
  readonly authToken?: string;
  /** An own authority, and an own certificate for a gateway that wants one. Only with an `https` URL; not used by an own `fetch`. */
  readonly tls?: ClientTls;
  /** A label that people see with leases and audit records; default none. */
  readonly clientId?: string;
  /** How long the client's session lives without a heartbeat, ms: no lease of it can have a longer time to live. Default 300 000, or the first lease's. */
  readonly sessionTtlMs?: number;
  /** Told of what happens in the background: failed heartbeats, leases that are being broken or lost, unconfirmed releases. */
  readonly onEvent?: ClientEventListener;
  /** In place of the global `fetch`; uploads do not go through it. */
  readonly fetch?: Fetch;
  /** In place of the machine's time. */
  readonly clock?: ClientClock;
  /** In place of `Math.random`, for jitter. */
  readonly random?: () => number;
  /** Makes the id of a request with this method, by which the log and the audit records of the gateway know it; default: a random one for each. */
  readonly requestId?: (method: string) => string;
  /** The lease of the `fencegate exec` around this process. */
  readonly inheritedLease?: InheritedFacts;
}

/** What to follow: one resource, everything below a prefix (all volumes without `volume`), or the leases of this client. */
export type WatchTarget = { readonly resource: string } | { readonly volume?: string; readonly pathPrefix?: string } | { readonly session: true };

export interface WatchOptions {
  /** `seq` of the last event that is known already: what came after it is sent, or a `reset`. */
  readonly afterSeq?: number;
  readonly signal?: AbortSignal;
}

/** What an administrator says about a lock that is broken. */
export interface BreakOptions {
  /** Why; goes into the audit log. */
  readonly reason: string;
  /** How long its holder may still finish, ms; default 0. */
  readonly graceMs?: number;
  /** `lease_ref` of those who are meant, as `lock` shows the holders: nobody else is broken. Default: whoever holds it when the gateway is asked. */
  readonly leaseRefs?: readonly string[];
  readonly signal?: AbortSignal;
}

export interface Cancellable {
  readonly signal?: AbortSignal;
}
