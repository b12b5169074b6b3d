import { LIMITS } from '../../domain/limits.ts';
import { rememberNewest } from '../../domain/remember-newest.ts';
import {
  type ZkAnswer,
  type ZkClient,
  type ZkData,
  ZkError,
  type ZkNodeKind,
  type ZkSession,
  type ZkSessionState,
  type ZkStat,
} from './zk-client.ts';

interface Seen {
  readonly czxid: bigint;
  readonly version: number;
}

/**
 * What one session changes gets numbers that grow in the order in which the answers come, and the version of a node does not fall. Where one does, servers
 * were put back from a copy, or lost the end of their log, with the session still in it. A token with such a number would fall (R2), and who held what
 * is not there any more: nothing that the session is told from then on counts. Versions are looked at because the numbers do not go back where servers
 * have elected a leader since.
 */
export class ForwardOnly implements ZkClient {
  readonly #client: ZkClient;
  readonly #onBack: (why: string) => void;
  #highest = 0n;
  readonly #seen = new Map<string, Seen>();

  /** @param onBack called with what was seen. */
  constructor(client: ZkClient, onBack: (why: string) => void) {
    this.#client = client;
    this.#onBack = onBack;
  }

  get session(): ZkSession | null {
    return this.#client.session;
  }
  get state(): ZkSessionState {
    return this.#client.state;
  }
  onState(listener: (state: ZkSessionState) => void): void {
    this.#client.onState(listener);
  }
  onWatch(listener: (path: string) => void): void {
    this.#client.onWatch(listener);
  }

  /** Rejects with `session_over` for a node that is older than it was, and with `unknown` where only this server says so. */
  async get(path: string, options?: { readonly watch?: boolean }): Promise<ZkData> {
    const answer = await this.#client.get(path, options);
    if (!this.#isBehind(path, answer.stat)) {
      this.#note(path, answer.stat);
      return answer;
    }
    await this.#client.sync(path);
    const { stat } = await this.#client.get(path);
    if (this.#isBehind(path, stat)) throw this.#back(`${path} is older than it was`);
    throw new ZkError('unknown', `get: the server lags, and told what was over of ${path}`);
  }
  exists(path: string): Promise<ZkAnswer & { readonly stat: ZkStat | null }> {
    return this.#client.exists(path);
  }
  children(path: string): Promise<ZkAnswer & { readonly names: readonly string[] }> {
    return this.#client.children(path);
  }
  create(path: string, data: Uint8Array, kind: ZkNodeKind): Promise<ZkAnswer & { readonly path: string }> {
    return this.#client.create(path, data, kind);
  }
  remove(path: string, version: number | null): Promise<ZkAnswer> {
    return this.#client.remove(path, version);
  }
  sync(path: string): Promise<ZkAnswer> {
    return this.#client.sync(path);
  }
  close(): Promise<void> {
    return this.#client.close();
  }

  /** Rejects with `session_over` for a change behind an earlier one. */
  async set(path: string, data: Uint8Array, version: number): Promise<ZkAnswer & { readonly stat: ZkStat }> {
    const answer = await this.#client.set(path, data, version);
    const { stat } = answer;
    if (stat.mzxid <= this.#highest) throw this.#back(`it is at ${stat.mzxid} and was at ${this.#highest}`);
    if (this.#isBehind(path, stat)) throw this.#back(`${path} is older than it was`);
    this.#highest = stat.mzxid;
    this.#note(path, stat);
    return answer;
  }

  #isBehind(path: string, { czxid, version }: Seen): boolean {
    const seen = this.#seen.get(path);
    return seen !== undefined && (czxid < seen.czxid || (czxid === seen.czxid && version < seen.version));
  }

  #note(path: string, { czxid, version }: Seen): void {
    rememberNewest(this.#seen, path, { czxid, version }, LIMITS.zookeeperKnownNodesMax);
  }

  #back(seen: string): ZkError {
    const why = `The ensemble was put back (${seen}): the session is given up.`;
    this.#onBack(why);
    return new ZkError('session_over', why);
  }
}
