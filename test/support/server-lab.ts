import type { ZkClient, ZkNodeKind, ZkSession, ZkSessionState } from '../../src/locks/zookeeper/zk-client.ts';
import { linuxTime, SystemClock } from '../../src/observability/system-clock.ts';
import { Ensemble } from '../../src/zookeeper/connect-ensemble.ts';
import { settleAlso } from './fake-clock.ts';
import { type LabOptions, LockLab } from './lock-lab.ts';
import { inState } from './zookeeper-client.ts';
import { TestEnsemble } from './zookeeper-ensemble.ts';
import { coordinationOver } from './zookeeper-lab.ts';

const SESSION_MS = 20_000;
const NOTHING = new Uint8Array();

/** A real ZooKeeper server and one session with it, through which all labs of a file ask, each below a node of its own. */
export class LabServer {
  readonly #ensemble: TestEnsemble;
  readonly #adapter: Ensemble;
  readonly client: ZkClient;
  readonly #endClock: () => void;
  readonly #endSettling: () => void;
  #labs = 0;
  #asked = 0;
  #pending = 0;

  private constructor(ensemble: TestEnsemble, adapter: Ensemble, client: ZkClient, endClock: () => void) {
    this.#ensemble = ensemble;
    this.#adapter = adapter;
    this.client = client;
    this.#endClock = endClock;
    this.#endSettling = settleAlso(() => this.#rest());
  }

  /** From now on `settle` waits until nothing is under way between the labs and the server. Whoever starts it stops it. */
  static async start(): Promise<LabServer> {
    const ensemble = await TestEnsemble.start();
    const time = linuxTime();
    const clock = new SystemClock(time);
    const settings = { servers: ensemble.addresses, chroot: '', sessionMs: SESSION_MS, auth: null, clock, log: () => undefined };
    const adapter = await Ensemble.start(settings);
    const client = adapter.open();
    await inState(client, 'connected');
    return new LabServer(ensemble, adapter, client, () => {
      clock.stop();
      time.close();
    });
  }

  async stop(): Promise<void> {
    this.#endSettling();
    await this.#adapter.stop();
    this.#endClock();
    await this.#ensemble.stop();
  }

  /** A client that sees only what lies below a new node, with the volumes of a lab in it. */
  below(): ZkClient {
    this.#labs += 1;
    const client = new ClientBelow(this, `/lab${this.#labs}`);
    // Requests go down one pipe: these come before whatever the lab asks.
    for (const path of ['', '/locks', '/locks/.gateways', '/locks/vol', '/locks/other']) void client.create(path, NOTHING, 'persistent');
    return client;
  }

  async ask<T>(call: (client: ZkClient) => Promise<T>): Promise<T> {
    this.#asked += 1;
    this.#pending += 1;
    try {
      return await call(this.client);
    } finally {
      this.#pending -= 1;
    }
  }

  /** Every answer has come, what it led to was asked and answered, and no watch is on its way: those come before the answer to a `sync`. */
  async #rest(): Promise<void> {
    for (let seen = -1; seen !== this.#asked || this.#pending > 0; ) {
      seen = this.#asked;
      await this.client.sync('/');
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

class ClientBelow implements ZkClient {
  readonly #server: LabServer;
  readonly #prefix: string;

  constructor(server: LabServer, prefix: string) {
    this.#server = server;
    this.#prefix = prefix;
  }

  get session(): ZkSession | null {
    return this.#server.client.session;
  }

  get state(): ZkSessionState {
    return this.#server.client.state;
  }

  onState(listener: (state: ZkSessionState) => void): void {
    this.#server.client.onState(listener);
  }

  onWatch(listener: (path: string) => void): void {
    this.#server.client.onWatch((path) => {
      if (path.startsWith(`${this.#prefix}/`)) listener(path.slice(this.#prefix.length));
    });
  }

  get(path: string, options?: { readonly watch?: boolean }) {
    return this.#server.ask((client) => client.get(this.#prefix + path, options));
  }

  exists(path: string) {
    return this.#server.ask((client) => client.exists(this.#prefix + path));
  }

  children(path: string) {
    return this.#server.ask((client) => client.children(this.#prefix + path));
  }

  async create(path: string, data: Uint8Array, kind: ZkNodeKind) {
    const made = await this.#server.ask((client) => client.create(this.#prefix + path, data, kind));
    return { ...made, path: made.path.slice(this.#prefix.length) };
  }

  set(path: string, data: Uint8Array, version: number) {
    return this.#server.ask((client) => client.set(this.#prefix + path, data, version));
  }

  remove(path: string, version: number | null) {
    return this.#server.ask((client) => client.remove(this.#prefix + path, version));
  }

  sync(path: string) {
    return this.#server.ask((client) => client.sync(this.#prefix + path));
  }

  /** The session is everybody's. */
  async close(): Promise<void> {}
}

let current: LabServer | null = null;

/** The labs of this file ask this one from now on. */
export function labsAsk(server: LabServer): void {
  current = server;
}

/** A lock service over a real ZooKeeper server, whose own time is still the test's. */
export class ServerLab extends LockLab {
  constructor(options: Omit<LabOptions, 'coordination'> = {}) {
    const server = current;
    if (server === null) throw new Error('no server was started for the labs');
    super({ ...options, coordination: (clock, queueMax) => coordinationOver({ client: server.below(), clock, queueMax }) });
  }
}
