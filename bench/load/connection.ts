import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type Answer, AnswerReader } from './answer-reader.ts';
import type { RequestPlan } from './plan.ts';

const READ_BYTES = 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;
/** A body up to this goes out together with its head, in one system call. */
const TOGETHER_BYTES = 64 * 1024;
const CONTINUE = 100;

const bodyChunk = Buffer.alloc(CHUNK_BYTES, 'the bytes of a benchmark say nothing. ');

export interface Exchange {
  readonly status: number;
  readonly bodyBytesSent: number;
}

/** One keep-alive connection that sends the same request again and again. Not pipelined. */
export class Connection {
  readonly #port: number;
  readonly #request: RequestPlan;
  readonly #head: Buffer;
  readonly #together: Buffer | null;
  // One connection reads into the same memory again and again: at gigabytes per second allocation would be the driver's main work.
  readonly #readBuffer = Buffer.allocUnsafeSlow(READ_BYTES);
  #socket: Socket | null = null;
  #reader = new AnswerReader();
  #closed = false;
  #bodyLeft = 0;
  #bodyAskedFor = false;
  #settle: ((outcome: Exchange | Error) => void) | null = null;

  constructor(port: number, request: RequestPlan) {
    this.#port = port;
    this.#request = request;
    this.#head = Buffer.from(request.head, 'latin1');
    const together = !request.expectsContinue && request.bodyBytes <= TOGETHER_BYTES;
    this.#together = together ? Buffer.concat([this.#head, bodyChunk.subarray(0, request.bodyBytes)]) : null;
  }

  async open(): Promise<void> {
    this.#reader = new AnswerReader();
    const read = (count: number, buffer: Uint8Array): boolean => this.#read(buffer, count);
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true, onread: { buffer: this.#readBuffer, callback: read } });
    this.#socket = socket;
    await once(socket, 'connect');
    if (this.#closed) return this.#drop();
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail(new Error('the server closed the connection before it answered')));
    socket.on('drain', () => this.#sendBody());
  }

  /** Sends the request and calls back with the final answer, or with why there is none. Callbacks, since promises would cost as much as the driver's own work. */
  send(settle: (outcome: Exchange | Error) => void): void {
    const socket = this.#socket;
    if (socket === null) {
      if (!this.#closed) this.open().then(() => this.send(settle), settle);
      return;
    }
    this.#settle = settle;
    this.#bodyLeft = this.#request.bodyBytes;
    this.#bodyAskedFor = !this.#request.expectsContinue;
    if (this.#together !== null) {
      this.#bodyLeft = 0;
      socket.write(this.#together);
      return;
    }
    socket.write(this.#head);
    this.#sendBody();
  }

  /** For good: a connection that is being made at this moment is dropped too. */
  close(): void {
    this.#closed = true;
    this.#drop();
  }

  #drop(): void {
    const socket = this.#socket;
    this.#socket = null;
    socket?.removeAllListeners('close');
    socket?.destroy();
  }

  #sendBody(): void {
    const socket = this.#socket;
    if (socket === null || !this.#bodyAskedFor) return;
    while (this.#bodyLeft > 0) {
      const length = Math.min(this.#bodyLeft, CHUNK_BYTES);
      this.#bodyLeft -= length;
      if (!socket.write(length === CHUNK_BYTES ? bodyChunk : bodyChunk.subarray(0, length))) return;
    }
  }

  #read(buffer: Uint8Array, count: number): boolean {
    try {
      for (const answer of this.#reader.feed(Buffer.from(buffer.buffer, buffer.byteOffset, count))) this.#take(answer);
    } catch (thrown) {
      this.#fail(thrown instanceof Error ? thrown : new Error(String(thrown)));
    }
    return true;
  }

  #take(answer: Answer): void {
    if (answer.status === CONTINUE) {
      this.#bodyAskedFor = true;
      this.#sendBody();
      return;
    }
    const bodyBytesSent = this.#request.bodyBytes - this.#bodyLeft;
    // A body that the server did not wait for is still due on this connection, so the next request needs a new one.
    if (answer.closes || this.#bodyLeft > 0) this.#drop();
    const settle = this.#settle;
    this.#settle = null;
    settle?.({ status: answer.status, bodyBytesSent });
  }

  #fail(error: Error): void {
    this.#drop();
    const settle = this.#settle;
    this.#settle = null;
    settle?.(error);
  }
}
