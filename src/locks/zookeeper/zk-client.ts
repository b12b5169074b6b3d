/**
 * The ensemble as the lock recipe sees it: one session at a time, over one child process. Every call has a deadline of its own in the
 * adapter; what is not known to have happened rejects with `unknown`, and only `no_node` means absent (trap T12).
 */

/** `unknown`: the request may or may not have been carried out (traps N12, N15): connection lost, time-out, child gone. */
export type ZkFailure = 'no_node' | 'node_exists' | 'bad_version' | 'not_empty' | 'no_auth' | 'bad_arguments' | 'session_over' | 'unknown';

export class ZkError extends Error {
  readonly failure: ZkFailure;

  constructor(failure: ZkFailure, detail: string) {
    super(detail);
    this.name = 'ZkError';
    this.failure = failure;
  }
}

export interface ZkStat {
  readonly czxid: bigint;
  readonly mzxid: bigint;
  /** Server time of the last change of the data, ms. */
  readonly mtimeMs: number;
  readonly version: number;
  /** How many children were ever made: the counter that numbers the sequential ones. Deletes do not count. */
  readonly cversion: number;
  /** Session id in hex, `0` for a persistent node. */
  readonly ephemeralOwner: string;
  readonly numChildren: number;
}

/** Which connection answered: a pair of answers with different numbers straddles a reconnect and is thrown away. */
export interface ZkAnswer {
  readonly connection: number;
}

export interface ZkData extends ZkAnswer {
  readonly data: Uint8Array;
  readonly stat: ZkStat;
}

export type ZkNodeKind = 'persistent' | 'ephemeral' | 'ephemeral_sequential';

export type ZkSessionState = 'connecting' | 'connected' | 'disconnected' | 'over';

export interface ZkSession {
  /** Hex, as `ephemeralOwner` shows it. */
  readonly id: string;
  readonly password: string;
  readonly timeoutMs: number;
}

/** Requests are sent in the order of the calls and go down one pipe. */
export interface ZkClient {
  /** `null` before the first connection. */
  readonly session: ZkSession | null;
  readonly state: ZkSessionState;
  onState(listener: (state: ZkSessionState) => void): void;

  get(path: string, options?: { readonly watch?: boolean }): Promise<ZkData>;
  /** `stat` is `null` when it is not there. */
  exists(path: string): Promise<ZkAnswer & { readonly stat: ZkStat | null }>;
  children(path: string): Promise<ZkAnswer & { readonly names: readonly string[] }>;
  /** @returns the path made, with the sequence number. */
  create(path: string, data: Uint8Array, kind: ZkNodeKind): Promise<ZkAnswer & { readonly path: string }>;
  /** Version-checked; `-1` is not allowed. */
  set(path: string, data: Uint8Array, version: number): Promise<ZkAnswer & { readonly stat: ZkStat }>;
  remove(path: string, version: number | null): Promise<ZkAnswer>;
  /** Afterwards, reads on this connection see everything that was committed before the call. */
  sync(path: string): Promise<ZkAnswer>;
  /** Fires once for each watch left by `get`, with the path; also once for all paths when the session is over. */
  onWatch(listener: (path: string) => void): void;
  /** Closes the session: its ephemeral nodes go. */
  close(): Promise<void>;
}
