import type { AddressInfo } from 'node:net';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** Numbers of the requests as they stand in the protocol's headers. */
export const ZK_OP = { create: 1, remove: 2, exists: 3, get: 4, set: 5, children: 8, sync: 9, ping: 11 } as const;
export type ZkOp = keyof typeof ZK_OP;

const WATCH_EVENT_XID = -1;

/** The link between a client and one server of an ensemble: it counts what passes, and can cut, silence, delay and lose one reply. */
export class ZooKeeperProxy {
  readonly #server: Server;
  readonly #target: number;
  readonly #sockets = new Set<Socket>();
  readonly #held: (() => void)[] = [];
  #mode: 'open' | 'cut' | 'silent' = 'open';
  #delayMs = 0;
  #lose: { op: ZkOp; resolve: () => void } | null = null;
  /** Requests by kind, and watch events, since the start. */
  readonly counts = new Map<ZkOp | 'watch_event', number>();

  readonly #looksInside: boolean;

  private constructor(server: Server, target: number, looksInside: boolean) {
    this.#server = server;
    this.#target = target;
    this.#looksInside = looksInside;
    server.on('connection', (socket) => this.#pass(socket));
  }

  /** Ends with the test. */
  static async to(port: number): Promise<ZooKeeperProxy> {
    const proxy = await ZooKeeperProxy.#open(port, true);
    onTestFinished(() => proxy.close());
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
    return new Promise((resolve) => {
      this.#lose = { op, resolve };
    });
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #pass(client: Socket): void {
    if (this.#mode === 'cut') {
      client.destroy();
      return;
    }
    const server = connect(this.#target, '127.0.0.1');
    const losing = new Set<number>();
    const blind = (): boolean => true;
    this.#join(client, server, this.#looksInside ? frames((frame) => this.#request(frame, losing)) : blind);
    this.#join(server, client, this.#looksInside ? frames((frame) => this.#reply(frame, losing)) : blind);
    client.resume();
  }

  #join(from: Socket, to: Socket, inspect: (data: Buffer) => boolean): void {
    this.#sockets.add(from);
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
      else if (this.#delayMs > 0) setTimeout(go, this.#delayMs);
      else go();
    });
  }

  #request(frame: Buffer, losing: Set<number>): boolean {
    const op = OPS.get(frame.readInt32BE(4));
    if (op === undefined) return true;
    this.#count(op);
    if (this.#lose?.op === op) losing.add(frame.readInt32BE(0));
    return true;
  }

  #reply(frame: Buffer, losing: Set<number>): boolean {
    const xid = frame.readInt32BE(0);
    if (xid === WATCH_EVENT_XID) this.#count('watch_event');
    if (!losing.has(xid)) return true;
    this.#lose?.resolve();
    this.#lose = null;
    return false;
  }

  #count(kind: ZkOp | 'watch_event'): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
  }
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
