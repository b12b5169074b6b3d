import { ZkError, type ZkFailure, type ZkSession, type ZkSessionState, type ZkStat } from '../../src/locks/zookeeper/zk-client.ts';
import { type Call, EnsembleClient } from './ensemble-client.ts';

interface Node {
  data: Uint8Array;
  czxid: bigint;
  mzxid: bigint;
  mtimeMs: number;
  version: number;
  /** The counter of sequential children. */
  cversion: number;
  owner: string;
}

/** A ZooKeeper ensemble in memory, with the semantics that the recipe relies on. Time is the caller's. */
export class FakeEnsemble {
  readonly nodes = new Map<string, Node>();
  readonly clients: FakeZk[] = [];
  readonly #watching: { fire(path: string): void }[] = [];
  readonly #children = new Map<string, Set<string>>();
  readonly #over = new Set<string>();
  readonly #wallMs: () => number;
  zxid = 0x1_0000_0000n;
  reachable = true;

  constructor(wallMs: () => number) {
    this.#wallMs = wallMs;
    this.nodes.set('/', this.#node(new Uint8Array(), '0'));
  }

  /** A new session, or one that is resumed. While no server is reachable it goes on trying. */
  open(sessionMs = 15_000, resume: ZkSession | null = null): FakeZk {
    const session = resume ?? { id: `0x${(this.clients.length + 1).toString(16)}`, password: 'p', timeoutMs: sessionMs };
    const known = this.#over.has(session.id) ? 'over' : 'connected';
    const client = new FakeZk(this, session, this.reachable ? known : 'connecting');
    this.clients.push(client);
    this.tell(client);
    return client;
  }

  /** From now on it is told of changes. */
  tell(client: { fire(path: string): void }): void {
    this.#watching.push(client);
  }

  children(path: string): string[] {
    return [...(this.#children.get(path) ?? [])];
  }

  create(path: string, data: Uint8Array, owner: string, sequential: boolean): string {
    const parentPath = path.slice(0, path.lastIndexOf('/')) || '/';
    const parent = this.nodes.get(parentPath);
    if (parent === undefined) throw failure('no_node');
    const name = sequential ? `${path}${String(parent.cversion).padStart(10, '0')}` : path;
    if (this.nodes.has(name)) throw failure('node_exists');
    if (parent.cversion < 2_147_483_647) parent.cversion += 1;
    this.zxid += 1n;
    this.nodes.set(name, this.#node(data, owner));
    const siblings = this.#children.get(parentPath) ?? new Set();
    this.#children.set(parentPath, siblings.add(name.slice(name.lastIndexOf('/') + 1)));
    return name;
  }

  set(path: string, data: Uint8Array, version: number): ZkStat {
    const node = this.nodes.get(path);
    if (node === undefined) throw failure('no_node');
    if (node.version !== version) throw failure('bad_version');
    this.zxid += 1n;
    Object.assign(node, { data, mzxid: this.zxid, mtimeMs: this.#wallMs(), version: node.version + 1 });
    this.#fire(path);
    return this.stat(path);
  }

  remove(path: string, version: number | null): void {
    const node = this.nodes.get(path);
    if (node === undefined) throw failure('no_node');
    if (version !== null && node.version !== version) throw failure('bad_version');
    if ((this.#children.get(path)?.size ?? 0) > 0) throw failure('not_empty');
    this.zxid += 1n;
    this.nodes.delete(path);
    this.#children.get(path.slice(0, path.lastIndexOf('/')) || '/')?.delete(path.slice(path.lastIndexOf('/') + 1));
    this.#fire(path);
  }

  stat(path: string): ZkStat {
    const node = this.nodes.get(path);
    if (node === undefined) throw failure('no_node');
    const { czxid, mzxid, mtimeMs, version, cversion, owner } = node;
    return { czxid, mzxid, mtimeMs, version, cversion, ephemeralOwner: owner, numChildren: this.#children.get(path)?.size ?? 0 };
  }

  /** The session's time is up: its ephemeral nodes go. */
  expire(session: string): void {
    this.#over.add(session);
    for (const [path, { owner }] of [...this.nodes]) if (owner === session) this.remove(path, null);
  }

  #fire(path: string): void {
    for (const client of this.#watching) client.fire(path);
  }

  #node(data: Uint8Array, owner: string): Node {
    return { data, czxid: this.zxid, mzxid: this.zxid, mtimeMs: this.#wallMs(), version: 0, cversion: 0, owner };
  }
}

/** One client of it, whose link can be cut and whose replies can be lost. */
export class FakeZk extends EnsembleClient {
  /** Requests that reached the server, by kind. */
  readonly counts = new Map<Call, number>();
  /** Wake-ups by a watch. */
  wakes = 0;
  readonly #watches = new Set<string>();
  readonly #stateListeners: ((state: ZkSessionState) => void)[] = [];
  /** Replies come when it resolves; what was asked is carried out all the same. */
  #replies: Promise<void> = Promise.resolve();
  #connection = 1;
  #lose: { readonly call: Call; readonly carriedOut: boolean } | null = null;

  onState(listener: (state: ZkSessionState) => void): void {
    this.#stateListeners.push(listener);
  }

  protected watching(path: string): void {
    this.#watches.add(path);
  }

  /** Without a connection no server hears of it: the session goes on. */
  async close(): Promise<void> {
    if (this.state === 'over') return;
    if (this.state === 'connected') this.ensemble.expire(this.session.id);
    this.#become('over');
  }

  fire(path: string): void {
    if (!this.#watches.delete(path)) return;
    this.wakes += 1;
    queueMicrotask(() => {
      if (this.state === 'connected') this.tellWatch(path);
    });
  }

  /** From now on what is asked is carried out, and answered when that is called; with a failure, each reply is that. */
  holdReplies(): (lost?: ZkFailure) => void {
    let answer: (lost?: ZkFailure) => void = () => undefined;
    this.#replies = new Promise((resolve, reject) => {
      answer = (lost) => (lost === undefined ? resolve() : reject(failure(lost)));
    });
    return answer;
  }

  /** The reply of the next call of this kind is lost with the connection: it was carried out. */
  loseReply(call: Call): void {
    this.#lose = { call, carriedOut: true };
  }

  /** The next call of this kind, and what is asked in the same breath, is lost with the connection: no server hears of it. */
  loseRequest(call: Call): void {
    this.#lose = { call, carriedOut: false };
  }

  cut(): void {
    this.#become('disconnected');
  }

  heal(): void {
    this.#connection += 1;
    this.#become('connected');
    for (const path of [...this.#watches]) if (!this.ensemble.nodes.has(path)) this.fire(path);
  }

  /** The ensemble gives the session up; the client learns of it. */
  expire(): void {
    this.ensemble.expire(this.session.id);
    this.#become('over');
  }

  protected async ask<T extends object>(call: Call, work: () => T): Promise<T & { readonly connection: number }> {
    if (this.state === 'over') throw failure('session_over');
    if (this.state !== 'connected') throw failure('unknown');
    const lost = this.#lose?.call === call ? this.#lose : null;
    if (lost !== null) this.#lose = null;
    if (lost?.carriedOut === false) {
      this.cut();
      setImmediate(() => this.heal());
      throw failure('unknown');
    }
    this.counts.set(call, (this.counts.get(call) ?? 0) + 1);
    const connection = this.#connection;
    const answer = answerOf(work);
    if (lost !== null) {
      this.cut();
      this.heal();
      throw failure('unknown');
    }
    await this.#replies;
    return { ...answer(), connection };
  }

  #become(state: ZkSessionState): void {
    if (this.state === state) return;
    this.state = state;
    for (const listener of this.#stateListeners) listener(state);
  }
}

/** Carried out now; what came of it, a refusal too, is told later. */
export function answerOf<T>(work: () => T): () => T {
  try {
    const result = work();
    return () => result;
  } catch (thrown) {
    return () => {
      throw thrown;
    };
  }
}

export function failure(kind: ZkFailure): ZkError {
  return new ZkError(kind, kind);
}
