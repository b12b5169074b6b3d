import type { ZkFailure } from '../locks/zookeeper/zk-client.ts';

/** The part of the npm package `zookeeper` that is used, with the types that it really has. Loaded in the child process only. */

export interface NativeStat {
  /** Doubles: exact below 2^53 (trap N17). */
  readonly czxid: number;
  readonly mzxid: number;
  readonly mtime: Date;
  readonly version: number;
  readonly cversion: number;
  readonly ephemeralOwner: string;
  readonly numChildren: number;
}

type Done<T extends unknown[]> = (rc: number, error: string, ...rest: T) => void;

export interface NativeClient {
  readonly client_id: string;
  readonly client_password: string;
  readonly timeout: number;
  /** 0 not connected, 1 connecting, 2 associating, 3 connected. */
  readonly state: number;
  removeAllListeners(): void;
  init(config: object): void;
  close(): void;
  on(event: string, listener: (client: unknown, detail: unknown) => void): void;
  add_auth(scheme: string, auth: string, done: Done<[]>): number;
  a_get(path: string, watch: boolean, done: Done<[NativeStat, Buffer | null]>): number;
  a_exists(path: string, watch: boolean, done: Done<[NativeStat | null]>): number;
  a_get_children(path: string, watch: boolean, done: Done<[string[] | null]>): number;
  a_create(path: string, data: Buffer, flags: number, done: Done<[string]>): number;
  a_set(path: string, data: Buffer, version: number, done: Done<[NativeStat | null]>): number;
  a_delete_(path: string, version: number, done: Done<[]>): number;
  a_sync(path: string, done: Done<[string]>): number;
  a_set_acl(path: string, version: number, acl: readonly object[], done: Done<[]>): number;
}

/** Rejects when the package, or its compiled part for this machine, is not there. */
export async function loadNative(): Promise<() => NativeClient> {
  const loaded = (await import('zookeeper')) as unknown as { readonly default: new (config: object) => NativeClient };
  const Client = loaded.default;
  return () => new Client({});
}

export const RC = { ok: 0, badArguments: -8, noNode: -101, badVersion: -103, nodeExists: -110 } as const;

const FAILURES: Readonly<Record<number, ZkFailure>> = {
  [RC.badArguments]: 'bad_arguments',
  [RC.noNode]: 'no_node',
  [-102]: 'no_auth',
  [RC.badVersion]: 'bad_version',
  [-108]: 'bad_arguments',
  [RC.nodeExists]: 'node_exists',
  [-111]: 'not_empty',
  [-114]: 'bad_arguments',
  [-115]: 'no_auth',
};

/** Whatever is not a definite answer of a server may have happened (traps N12, N15): -4, -7, -9, -112, -116, -118 and the rest. */
export function failureOf(rc: number): ZkFailure {
  return FAILURES[rc] ?? 'unknown';
}
