import type { AddressInfo } from 'node:net';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import type { WhenFinished } from './gateway-process.ts';

/** Numbers of the requests as they stand in the protocol's headers. */
export const ZK_OP = { create: 1, remove: 2, exists: 3, get: 4, set: 5, children: 8, sync: 9, ping: 11 } as const;
export type ZkOp = keyof typeof ZK_OP;

const WATCH_EVENT_XID = -1;
const TRIES_BETWEEN = 40;
const TRY_AGAIN_MS = 25;

/** The link between a client and one server of an ensemble: it counts what passes, and can cut, silence, delay and lose one request or one reply. */
export class ZooKeeperProxy {
  readonly #server: Server;
  readonly #target: number;
  readonly #sockets = new Set<Socket>();
  readonly #held: (() => void)[] = [];
  #mode: 'open' | 'cut' | 'silent' = 'open';
  #delayMs = 0;
  #lose: { readonly what: 'request' | 'reply'; readonly op: ZkOp; readonly resolve: () => void } | null = null;
  /** Requests by kind, and watch events, since the start. */
  readonly counts = new Map<ZkOp | 'watch_event', number>();

  readonly #looksInside: boolean;

  private constructor(server: Server, target: number, looksInside: boolean) {
    this.#server = server;
    this.#target = target;
    this.#looksInside = looksInside;
    server.on('connection', (socket) => void this.#pass(socket));
  }

  /** Ends with the test; of several that run at once, with the one whose `whenFinished` it is. */
  static async to(port: number, whenFinished: WhenFinished = onTestFinished): Promise<ZooKeeperProxy> {
    const proxy = await ZooKeeperProxy.#open(port, true);
    whenFinished(() => proxy.close());
    return proxy;
  }

  /** Between two servers, who speak another protocol: nothing is counted or lost. Lives until `close`. */
  static between(port: number): Promise<ZooKeeperProxy> {
    return ZooKeeperProxy.#open(port, false);
  }

  static async #open(port: number, looksInside: boolean): Promise<ZooKeeperProxy> {
    const server = createServer({ pauseOnConnect: true });
    const proxy = new ZooKeeperProxy(server, port, looksInside);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** How many connections are open now. */
  get connections(): number {
    return this.#sockets.size / 2;
  }

  /** Breaks every connection and lets no new one in. */
  cut(): void {
    this.#mode = 'cut';
    this.cutOnce();
  }

  cutOnce(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Half-open: every connection stays, no byte passes, in either direction. */
  silence(): void {
    this.#mode = 'silent';
  }

  /** What was held back goes on its way first. */
  mend(): void {
    this.#mode = 'open';
    for (const go of this.#held.splice(0)) go();
  }

  /** Each piece of data takes this much longer, in each direction. */
  delay(ms: number): void {
    this.#delayMs = ms;
  }

  /** The next request of this kind is carried out, its reply is lost and the connection cut. Resolves when that has happened. */
  loseReplyTo(op: ZkOp): Promise<void> {
    return this.#losing('reply', op);
  }

  /** The next request of this kind, and what was sent behind it, reaches no server, and the connection is cut. Resolves when that has happened. */
  loseRequest(op: ZkOp): Promise<void> {
    return this.#losing('request', op);
  }

  #losing(what: 'request' | 'reply', op: ZkOp): Promise<void> {
    return new Promise((resolve) => {
      this.#lose = { what, op, resolve };
    });
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #pass(client: Socket): Promise<void> {
    client.on('error', () => undefined);
    const server = this.#mode === 'cut' ? null : await this.#reach();
    if (server === null || client.destroyed) {
      client.destroy();
      server?.destroy();
      return;
    }
    const losing = new Set<number>();
    const blind = (): boolean => true;
    this.#join(client, server, this.#looksInside ? frames((frame) => this.#request(frame, losing)) : blind);
    this.#join(server, client, this.#looksInside ? frames((frame) => this.#reply(frame, losing)) : blind);
    client.resume();
  }

  /** A new leader opens its port a moment after it was elected: who was let in here and is then closed begins another election. */
  async #reach(): Promise<Socket | null> {
    for (let tries = this.#looksInside ? 1 : TRIES_BETWEEN; tries > 0; tries -= 1) {
      const socket = connect(this.#target, '127.0.0.1');
      const reached = await new Promise<boolean>((resolve) => socket.once('connect', () => resolve(true)).once('error', () => resolve(false)));
      if (reached) return socket;
      await pause(TRY_AGAIN_MS);
    }
    return null;
  }

  #join(from: Socket, to: Socket, inspect: (data: Buffer) => boolean): void {
    this.#sockets.add(from);
    const later = inOrder();
    from.on('error', () => to.destroy());
    from.on('close', () => {
      this.#sockets.delete(from);
      to.destroy();
    });
    from.on('data', (data: Buffer) => {
      const go = (): void => {
        if (inspect(data)) to.write(data);
        else {
          from.destroy();
          to.destroy();
        }
      };
      if (this.#mode === 'silent') this.#held.push(go);
      else later(this.#delayMs, go);
    });
  }

  #request(frame: Buffer, losing: Set<number>): boolean {
    const op = OPS.get(frame.readInt32BE(4));
    if (op === undefined) return true;
    const lost = this.#lose?.op === op ? this.#lose.what : null;
    if (lost === 'request') this.#lost();
    if (lost === 'reply') losing.add(frame.readInt32BE(0));
    if (lost !== 'request') this.#count(op);
    return lost !== 'request';
  }

  #reply(frame: Buffer, losing: Set<number>): boolean {
    const xid = frame.readInt32BE(0);
    if (xid === WATCH_EVENT_XID) this.#count('watch_event');
    if (!losing.has(xid)) return true;
    this.#lost();
    return false;
  }

  #lost(): void {
    this.#lose?.resolve();
    this.#lose = null;
  }

  #count(kind: ZkOp | 'watch_event'): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
  }
}

/** Runs each step after its delay, never before an earlier one. */
function inOrder(): (delayMs: number, step: () => void) => void {
  const queue: { readonly dueMs: number; readonly step: () => void }[] = [];
  const run = (): void => {
    for (let next = queue[0]; next !== undefined; next = queue[0]) {
      const restMs = next.dueMs - performance.now();
      if (restMs > 0) {
        setTimeout(run, restMs);
        return;
      }
      queue.shift();
      next.step();
    }
  };
  return (delayMs, step) => {
    queue.push({ dueMs: performance.now() + delayMs, step });
    if (queue.length === 1) run();
  };
}

const OPS = new Map<number, ZkOp>(Object.entries(ZK_OP).map(([name, number]) => [number, name as ZkOp]));

/** Cuts a stream into the frames of the protocol (a length in 4 bytes, then so many); the first one is the handshake. False: stop here. */
function frames(inspect: (frame: Buffer) => boolean): (data: Buffer) => boolean {
  let rest = Buffer.alloc(0);
  let first = true;
  return (data) => {
    rest = Buffer.concat([rest, data]);
    for (;;) {
      if (rest.length < 4) return true;
      const length = rest.readInt32BE(0);
      if (rest.length < 4 + length) return true;
      const frame = rest.subarray(4, 4 + length);
      rest = rest.subarray(4 + length);
      if (!first && frame.length >= 8 && !inspect(frame)) return false;
      first = false;
    }
  };
}
