import type { ZkClient, ZkNodeKind, ZkSession, ZkSessionState, ZkStat } from '../../src/locks/zookeeper/zk-client.ts';
import type { FakeEnsemble } from './fake-ensemble.ts';

export type Call = 'get' | 'exists' | 'children' | 'create' | 'set' | 'remove' | 'sync';

/** What a client asks of an ensemble in memory; when that is carried out, and answered, is for each kind of client to say. */
export abstract class EnsembleClient implements ZkClient {
  readonly session: ZkSession;
  state: ZkSessionState;
  /** What happens at the servers right before the next watch is set. */
  onceBeforeWatch: (() => void) | null = null;
  protected readonly ensemble: FakeEnsemble;
  readonly #watchListeners: ((path: string) => void)[] = [];

  constructor(ensemble: FakeEnsemble, session: ZkSession, state: ZkSessionState) {
    this.ensemble = ensemble;
    this.session = session;
    this.state = state;
  }

  /** The servers tell of a change, if it is watched. */
  abstract fire(path: string): void;
  abstract onState(listener: (state: ZkSessionState) => void): void;
  abstract close(): Promise<void>;
  protected abstract ask<T extends object>(call: Call, work: () => T): Promise<T & { readonly connection: number }>;
  /** A watch is set at the servers. */
  protected abstract watching(path: string, stat: ZkStat): void;

  onWatch(listener: (path: string) => void): void {
    this.#watchListeners.push(listener);
  }

  protected tellWatch(path: string): void {
    for (const listener of this.#watchListeners) listener(path);
  }

  get(path: string, { watch = false } = {}) {
    return this.ask('get', () => {
      if (watch) {
        this.onceBeforeWatch?.();
        this.onceBeforeWatch = null;
      }
      const stat = this.ensemble.stat(path);
      if (watch) this.watching(path, stat);
      return { data: this.ensemble.nodes.get(path)?.data ?? new Uint8Array(), stat };
    });
  }

  exists(path: string) {
    return this.ask('exists', () => ({ stat: this.ensemble.nodes.has(path) ? this.ensemble.stat(path) : null }));
  }

  children(path: string) {
    return this.ask('children', () => {
      this.ensemble.stat(path);
      return { names: this.ensemble.children(path) };
    });
  }

  create(path: string, data: Uint8Array, kind: ZkNodeKind) {
    const owner = kind === 'persistent' ? '0' : this.session.id;
    return this.ask('create', () => ({ path: this.ensemble.create(path, data, owner, kind === 'ephemeral_sequential') }));
  }

  set(path: string, data: Uint8Array, version: number) {
    return this.ask('set', () => ({ stat: this.ensemble.set(path, data, version) }));
  }

  remove(path: string, version: number | null) {
    return this.ask('remove', () => {
      this.ensemble.remove(path, version);
      return {};
    });
  }

  sync(_path: string) {
    return this.ask('sync', () => ({}));
  }
}
