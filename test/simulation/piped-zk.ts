import type { ZkStat } from '../../src/locks/zookeeper/zk-client.ts';
import { type Call, EnsembleClient } from '../support/ensemble-client.ts';
import { answerOf, type FakeEnsemble, failure } from '../support/fake-ensemble.ts';

interface Asked {
  readonly kind: 'call';
  readonly work: () => object;
  readonly resolve: (answer: object) => void;
  readonly reject: (error: Error) => void;
  outcome: (() => object) | null;
}

interface Event {
  readonly kind: 'watch';
  readonly path: string;
}

/**
 * A client of an ensemble in memory whose requests and replies lie in the pipe until somebody lets them go on, in their order: so others come in
 * between. What lies there when the connection breaks was carried out or not, and is told as unknown.
 */
export class PipedZk extends EnsembleClient {
  /** The first `#carried` of it are on their way back. */
  readonly #pipe: (Asked | Event)[] = [];
  /** With the number of the data that was told when the watch was set. */
  readonly #watched = new Map<string, bigint>();
  readonly #armed = new Set<string>();
  #carried = 0;
  #connection = 1;

  constructor(ensemble: FakeEnsemble, id: string) {
    super(ensemble, { id, password: 'p', timeoutMs: 15_000 }, 'connected');
    ensemble.tell(this);
  }

  /** The next request reaches the servers. False: there is none. */
  carry(): boolean {
    const next = this.#pipe[this.#carried];
    if (next?.kind !== 'call') return false;
    // What it changes may be told to this very client, before its own reply.
    next.outcome = answerOf(next.work);
    this.#carried += 1;
    return true;
  }

  /** The next reply, or event, reaches the client. False: there is none. */
  deliver(): boolean {
    if (this.#carried === 0) return false;
    this.#carried -= 1;
    const item = this.#pipe.shift();
    if (item?.kind === 'watch') this.#tell(item.path);
    else if (item?.outcome !== undefined && item.outcome !== null) this.#answer(item, item.outcome);
    return true;
  }

  cut(): void {
    this.state = 'disconnected';
    this.#carried = 0;
    this.#armed.clear();
    for (const item of this.#pipe.splice(0)) if (item.kind === 'call') item.reject(failure('unknown'));
  }

  /** The same session, over another connection; what has changed meanwhile is told. */
  heal(): void {
    this.#connection += 1;
    this.state = 'connected';
    for (const [path, mzxid] of [...this.#watched]) {
      if (this.ensemble.nodes.get(path)?.mzxid === mzxid) this.#armed.add(path);
      else this.#tell(path);
    }
  }

  fire(path: string): void {
    if (!this.#armed.delete(path)) return;
    this.#pipe.splice(this.#carried, 0, { kind: 'watch', path });
    this.#carried += 1;
  }

  onState(): void {
    // Whoever cuts and heals says so to the coordinator.
  }

  protected watching(path: string, { mzxid }: ZkStat): void {
    this.#armed.add(path);
    this.#watched.set(path, mzxid);
  }

  async close(): Promise<void> {
    this.cut();
    this.state = 'over';
    this.ensemble.expire(this.session.id);
  }

  protected ask<T extends object>(_call: Call, work: () => T): Promise<T & { readonly connection: number }> {
    if (this.state === 'over') return Promise.reject(failure('session_over'));
    if (this.state !== 'connected') return Promise.reject(failure('unknown'));
    const connection = this.#connection;
    return new Promise<object>((resolve, reject) => {
      this.#pipe.push({ kind: 'call', work: () => ({ ...work(), connection }), resolve, reject, outcome: null });
    }) as Promise<T & { readonly connection: number }>;
  }

  #answer({ resolve, reject }: Asked, outcome: () => object): void {
    try {
      resolve(outcome());
    } catch (thrown) {
      reject(thrown as Error);
    }
  }

  #tell(path: string): void {
    this.#watched.delete(path);
    this.tellWatch(path);
  }
}
