import type { Clock, Timer } from '../domain/clock.ts';
import { LIMITS } from '../domain/limits.ts';
import type { ZkAnswer, ZkClient, ZkData, ZkNodeKind, ZkSession, ZkSessionState, ZkStat } from '../locks/zookeeper/zk-client.ts';
import { ZkError } from '../locks/zookeeper/zk-client.ts';
import type { CallOrder, FromChild, SessionOrder, ToChild, WireResult, WireStat } from './child-protocol.ts';

/** The end of the channel to a child that is ready. */
export interface ChildLine {
  send(message: ToChild): boolean;
}

interface Pending {
  readonly resolve: (answer: { readonly connection: number; readonly result: WireResult }) => void;
  readonly reject: (error: ZkError) => void;
  readonly op: string;
  readonly dueMs: number;
}

export interface ProcessZkClientOptions {
  readonly order: Omit<SessionOrder, 'last'>;
  readonly clock: Clock;
  /** The child does not answer any more. */
  readonly onHung: () => void;
}

/** Permits left unanswered before the child counts as hung; counted, not timed, so that a pause of the gateway accuses nobody. */
const UNANSWERED_MAX = 5;
/** How often a server's silence is looked at before it counts; counted for the same reason. */
const SILENT_LOOKS = 5;
const CLOSE_MS = 3_000;
const PATH = /^\/$|^(\/[^/\p{Cc}]+)+$/u;

/** One session, over whichever child process there is. What a child that died was doing is `unknown`; the next one resumes the session. */
export class ProcessZkClient implements ZkClient {
  readonly #order: Omit<SessionOrder, 'last'>;
  readonly #clock: Clock;
  readonly #onHung: () => void;
  readonly #pending = new Map<number, Pending>();
  readonly #watched = new Set<string>();
  readonly #stateListeners: ((state: ZkSessionState) => void)[] = [];
  readonly #watchListeners: ((path: string) => void)[] = [];
  #line: ChildLine | null = null;
  #session: ZkSession | null;
  #server: string | null = null;
  #state: ZkSessionState = 'connecting';
  #connection = 0;
  #nextId = 1;
  #unanswered = 0;
  /** Looks since a server answered anything, or was asked first. */
  #silentLooks = 0;
  #silence: Timer | null = null;
  #onClosed: () => void = () => undefined;

  constructor({ order, clock, onHung }: ProcessZkClientOptions) {
    this.#order = order;
    this.#session = order.resume;
    this.#clock = clock;
    this.#onHung = onHung;
    this.#beat();
  }

  get session(): ZkSession | null {
    return this.#session;
  }

  get state(): ZkSessionState {
    return this.#state;
  }

  onState(listener: (state: ZkSessionState) => void): void {
    this.#stateListeners.push(listener);
  }

  onWatch(listener: (path: string) => void): void {
    this.#watchListeners.push(listener);
  }

  async get(path: string, options: { readonly watch?: boolean } = {}): Promise<ZkData> {
    const watch = options.watch ?? false;
    const { connection, result } = await this.#call({ op: 'get', path, watch });
    if (watch) this.#watched.add(path);
    return { connection, data: Buffer.from(result.data ?? '', 'base64'), stat: statOf(result.stat) };
  }

  async exists(path: string): Promise<ZkAnswer & { readonly stat: ZkStat | null }> {
    const { connection, result } = await this.#call({ op: 'exists', path });
    return { connection, stat: result.stat == null ? null : statOf(result.stat) };
  }

  async children(path: string): Promise<ZkAnswer & { readonly names: readonly string[] }> {
    const { connection, result } = await this.#call({ op: 'children', path });
    return { connection, names: result.names ?? [] };
  }

  async create(path: string, data: Uint8Array, kind: ZkNodeKind): Promise<ZkAnswer & { readonly path: string }> {
    const { connection, result } = await this.#call({ op: 'create', path, data: base64(data), node: kind });
    return { connection, path: result.path ?? path };
  }

  async set(path: string, data: Uint8Array, version: number): Promise<ZkAnswer & { readonly stat: ZkStat }> {
    if (version < 0) throw new ZkError('bad_arguments', 'set: a version is needed');
    const { connection, result } = await this.#call({ op: 'set', path, data: base64(data), version });
    return { connection, stat: statOf(result.stat) };
  }

  async remove(path: string, version: number | null): Promise<ZkAnswer> {
    const { connection } = await this.#call({ op: 'remove', path, version: version ?? -1 });
    return { connection };
  }

  async sync(path: string): Promise<ZkAnswer> {
    const { connection } = await this.#call({ op: 'sync', path });
    return { connection };
  }

  async close(): Promise<void> {
    if (this.#state === 'over') return;
    const sent = this.#line?.send({ kind: 'close' }) ?? false;
    if (sent) {
      await new Promise<void>((resolve) => {
        this.#onClosed = resolve;
        this.#clock.after(CLOSE_MS, resolve);
      });
    }
    this.end();
  }

  /** It is never used again. */
  end(): void {
    if (this.#state === 'over') return;
    this.#detach('session_over', 'the session is over');
    this.#turn('over');
    this.#fireAll();
  }

  /** A child is there: it makes the session, or resumes it. */
  attach(line: ChildLine): void {
    this.#line = line;
    this.#unanswered = 0;
    // Whichever it was may be why there is another child.
    line.send({ kind: 'open', ...this.#order, resume: this.#session, last: this.#server });
  }

  /** The child is gone. */
  detach(): void {
    this.#line = null;
    this.#lost('the client process ended');
    // Its watches died with it.
    this.#fireAll();
  }

  receive(message: FromChild): void {
    switch (message.kind) {
      case 'answer':
        this.#answered(message.id)?.resolve({ connection: this.#connection, result: message.result });
        return;
      case 'failure':
        this.#answered(message.id)?.reject(new ZkError(message.failure, message.detail));
        return;
      case 'watch':
        this.#watched.delete(message.path);
        for (const listener of this.#watchListeners) listener(message.path);
        return;
      case 'connected':
        this.#session = message.session;
        this.#server = message.server;
        this.#connection += 1;
        this.#turn('connected');
        return;
      case 'disconnected':
        this.#lost('the connection was lost');
        return;
      case 'over':
        this.end();
        return;
      case 'closed':
        this.#onClosed();
        return;
      case 'alive':
        this.#unanswered = 0;
    }
  }

  #call(order: CallOrder): Promise<{ readonly connection: number; readonly result: WireResult }> {
    if (!PATH.test(order.path)) return Promise.reject(new ZkError('bad_arguments', `${order.op}: not a path of a node`));
    if (this.#state === 'over') return Promise.reject(new ZkError('session_over', `${order.op}: the session is over`));
    const id = this.#nextId++;
    if (this.#state !== 'connected' || this.#line?.send({ kind: 'call', id, ...order }) !== true) {
      return Promise.reject(new ZkError('unknown', `${order.op}: not connected`));
    }
    if (this.#pending.size === 0) this.#silentLooks = 0;
    this.#listen();
    const dueMs = this.#clock.monotonicMs() + this.#sessionMs / 3;
    return new Promise((resolve, reject) => this.#pending.set(id, { resolve, reject, op: order.op, dueMs }));
  }

  /**
   * A server that hangs, or whose host lost its power, is silent, and the native client notices that after two thirds of the session only: when the
   * session can be proven no more, wherever it goes. So its process is ended well before (which closes the connection and not the session), and
   * the next one goes on with the session at whichever server answers. One that answers slowly is not silent.
   */
  #listen(): void {
    if (this.#silence !== null) return;
    const silentMs = Math.max(LIMITS.zookeeperSilentMsMin, this.#sessionMs * LIMITS.zookeeperSilentShare);
    this.#silence = this.#clock.after(silentMs / SILENT_LOOKS, () => {
      this.#silence = null;
      if (this.#pending.size === 0 || this.#line === null) return;
      this.#silentLooks += 1;
      if (this.#silentLooks > SILENT_LOOKS) this.#onHung();
      else this.#listen();
    });
  }

  get #sessionMs(): number {
    return this.#session?.timeoutMs ?? this.#order.sessionMs;
  }

  /** Ten times in a session: renews the child's permit, gives up on calls that are due. */
  #beat(): void {
    if (this.#state === 'over') return;
    this.#clock.after(this.#sessionMs / 10, () => this.#beat());
    for (const [id, { dueMs, op }] of this.#pending) {
      if (this.#clock.monotonicMs() < dueMs) break;
      this.#take(id)?.reject(new ZkError('unknown', `${op}: no answer in time`));
    }
    if (this.#line === null) return;
    this.#line.send({ kind: 'permit' });
    this.#unanswered += 1;
    if (this.#unanswered <= UNANSWERED_MAX) return;
    this.#unanswered = 0;
    this.#onHung();
  }

  #answered(id: number): Pending | undefined {
    this.#silentLooks = 0;
    return this.#take(id);
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }

  #lost(detail: string): void {
    this.#failAll('unknown', detail);
    if (this.#state === 'connected') this.#turn('disconnected');
  }

  #detach(failure: 'session_over', detail: string): void {
    this.#line = null;
    this.#failAll(failure, detail);
  }

  #failAll(failure: 'unknown' | 'session_over', detail: string): void {
    for (const [id, { op }] of this.#pending) this.#take(id)?.reject(new ZkError(failure, `${op}: ${detail}`));
  }

  #fireAll(): void {
    const paths = [...this.#watched];
    this.#watched.clear();
    for (const path of paths) for (const listener of this.#watchListeners) listener(path);
  }

  #turn(state: ZkSessionState): void {
    this.#state = state;
    for (const listener of this.#stateListeners) listener(state);
  }
}

function base64(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
}

function statOf(stat: WireStat | null | undefined): ZkStat {
  if (stat == null) throw new ZkError('unknown', 'the answer has no stat');
  return { ...stat, czxid: BigInt(stat.czxid), mzxid: BigInt(stat.mzxid) };
}
