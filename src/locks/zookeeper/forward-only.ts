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

/**
 * What one session changes gets numbers that grow in the order in which the answers come. One that does not was committed by servers that were put
 * back from a copy, or lost the end of their log, with the session still in it. A token with such a number would fall (R2), and who held what is
 * not there any more: nothing that the session is told from then on counts.
 */
export class ForwardOnly implements ZkClient {
  readonly #client: ZkClient;
  readonly #onBack: (why: string) => void;
  #highest = 0n;

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
  get(path: string, options?: { readonly watch?: boolean }): Promise<ZkData> {
    return this.#client.get(path, options);
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
  set(path: string, data: Uint8Array, version: number): Promise<ZkAnswer & { readonly stat: ZkStat }> {
    return this.#client.set(path, data, version).then((answer) => {
      const { mzxid } = answer.stat;
      if (mzxid <= this.#highest) {
        const why = `The ensemble is at ${mzxid} and was at ${this.#highest}: it was put back, and the session is given up.`;
        this.#onBack(why);
        throw new ZkError('session_over', why);
      }
      this.#highest = mzxid;
      return answer;
    });
  }
}
