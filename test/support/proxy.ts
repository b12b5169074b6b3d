import type { AddressInfo } from 'node:net';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** A connection between a client and a gateway that a test can cut, silence, and count the bytes of. */
export class TestProxy {
  readonly #server: Server;
  readonly #target: number;
  readonly #sockets = new Set<Socket>();
  /** From clients towards the gateway, since the last reset. */
  sentBytes = 0;
  connections = 0;
  lostReplies = 0;
  #repliesToLose = 0;
  #open = true;

  private constructor(server: Server, target: number) {
    this.#server = server;
    this.#target = target;
    server.on('connection', (socket) => this.#pass(socket));
  }

  static async to(port: number): Promise<TestProxy> {
    const server = createServer();
    const proxy = new TestProxy(server, port);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Breaks every connection; new ones are broken too until `mend`. */
  cut(): void {
    this.#open = false;
    this.cutOnce();
  }

  /** Breaks every connection; new ones pass. */
  cutOnce(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** The gateway does what it is asked next, and nobody hears of it: the connection breaks in front of its answer. */
  loseReply(): void {
    this.#repliesToLose += 1;
  }

  mend(): void {
    this.#open = true;
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #pass(socket: Socket): void {
    this.connections += 1;
    if (!this.#open) {
      socket.destroy();
      return;
    }
    const onward = connect(this.#target, '127.0.0.1');
    // Before the pipe, which then finds nobody to write to. "100 Continue" is no answer yet.
    onward.on('data', (chunk) => {
      if (this.#repliesToLose === 0 || chunk.toString('latin1', 0, 12) === 'HTTP/1.1 100') return;
      this.#repliesToLose -= 1;
      this.lostReplies += 1;
      socket.destroy();
    });
    for (const [from, to] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      this.#sockets.add(from);
      from.on('error', () => to.destroy());
      from.on('close', () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
    socket.on('data', (chunk) => {
      this.sentBytes += chunk.length;
    });
  }
}
