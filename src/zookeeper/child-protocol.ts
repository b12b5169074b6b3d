import type { ZkFailure, ZkNodeKind, ZkSession } from '../locks/zookeeper/zk-client.ts';
import type { ZkServer } from './connect-string.ts';

/**
 * What the gateway and the process with the native client say to each other: one JSON object a line, over a socket pair that only
 * the two of them hold. The child speaks only when spoken to first. Data travel in base64, zxids as decimal texts.
 */

export interface SessionOrder {
  readonly servers: readonly ZkServer[];
  readonly chroot: string;
  readonly sessionMs: number;
  /** Go on with this session instead of making one. */
  readonly resume: ZkSession | null;
  /** The server that the session was at, if any: the others are asked first. */
  readonly last: string | null;
  /** `user:password` for digest authentication; nodes that are made then belong to it alone. */
  readonly auth: string | null;
}

export type CallOrder =
  | { readonly op: 'get'; readonly path: string; readonly watch: boolean }
  | { readonly op: 'exists' | 'children' | 'sync'; readonly path: string }
  | { readonly op: 'create'; readonly path: string; readonly data: string; readonly node: ZkNodeKind }
  | { readonly op: 'set'; readonly path: string; readonly data: string; readonly version: number }
  | { readonly op: 'remove'; readonly path: string; readonly version: number };

export type ToChild =
  | { readonly kind: 'hello' }
  | ({ readonly kind: 'open' } & SessionOrder)
  | ({ readonly kind: 'call'; readonly id: number } & CallOrder)
  /** The gateway lives: the permit to go on for a third of the session. Answered by `alive`. */
  | { readonly kind: 'permit' }
  | { readonly kind: 'close' };

export interface WireStat {
  readonly czxid: string;
  readonly mzxid: string;
  readonly mtimeMs: number;
  readonly version: number;
  readonly cversion: number;
  readonly ephemeralOwner: string;
  readonly numChildren: number;
}

/** Of a call that succeeded; what does not belong to the operation is left out. */
export interface WireResult {
  readonly stat?: WireStat | null;
  readonly data?: string;
  readonly names?: readonly string[];
  readonly path?: string;
}

export type FromChild =
  | { readonly kind: 'ready' }
  /** The native client cannot be loaded. */
  | { readonly kind: 'cannot'; readonly detail: string }
  | { readonly kind: 'connected'; readonly session: ZkSession; readonly server: string }
  | { readonly kind: 'disconnected' }
  /** The server said that the session is no more, or refused the authentication. */
  | { readonly kind: 'over'; readonly detail: string }
  | { readonly kind: 'answer'; readonly id: number; readonly result: WireResult }
  | { readonly kind: 'failure'; readonly id: number; readonly failure: ZkFailure; readonly detail: string }
  | { readonly kind: 'watch'; readonly path: string }
  | { readonly kind: 'alive' }
  | { readonly kind: 'closed' }
  /** For the log. */
  | { readonly kind: 'said'; readonly line: string };

/** From the gateway to the supervisor. */
export type ToSupervisor = { readonly kind: 'replace' };

/** From the supervisor to the gateway; `child` carries the socket. */
export type FromSupervisor =
  | { readonly kind: 'child'; readonly pid: number }
  | { readonly kind: 'exited'; readonly code: number | null; readonly signal: string | null }
  | { readonly kind: 'said'; readonly line: string };
