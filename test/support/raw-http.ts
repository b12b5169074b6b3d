import { connect, type Socket } from 'node:net';

/** A raw connection: what a client really sends and gets, without a library in between. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export class RawConnection {
  readonly socket: Socket;
  received = '';
  ended = false;
  error: Error | null = null;
  #changed: () => void = () => undefined;

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    this.socket.on('data', (chunk: Buffer) =>
      this.#note(() => {
        this.received += chunk.toString('latin1');
      }),
    );
    this.socket.on('end', () =>
      this.#note(() => {
        this.ended = true;
      }),
    );
    this.socket.on('error', (error) =>
      this.#note(() => {
        this.error = error;
      }),
    );
    this.socket.on('close', () =>
      this.#note(() => {
        this.ended = true;
      }),
    );
  }

  send(text: string | Uint8Array): void {
    this.socket.write(text);
  }

  /** Resolves once `done` holds, judged at every event of the socket. */
  async until(done: () => boolean): Promise<void> {
    while (!done()) {
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }

  /** The next whole answer (by its Content-Length), skipping interim ones; takes it off what was received. */
  async answer(): Promise<RawAnswer> {
    for (;;) {
      const parsed = takeAnswer(this.received);
      if (parsed !== null) {
        this.received = parsed.rest;
        if (parsed.answer.status >= 200) return parsed.answer;
        continue;
      }
      if (this.ended || this.error !== null)
        throw new Error(`no answer: ${this.error?.message ?? 'the connection ended'} after ${JSON.stringify(this.received)}`);
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }

  close(): void {
    this.socket.destroy();
  }

  #note(change: () => void): void {
    change();
    this.#changed();
  }
}

function takeAnswer(text: string): { answer: RawAnswer; rest: string } | null {
  const end = text.indexOf('\r\n\r\n');
  if (end === -1) return null;
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  const status = Number(statusLine.split(' ')[1]);
  const length = status < 200 || status === 204 || status === 304 ? 0 : Number(headers['content-length'] ?? 0);
  const start = end + 4;
  if (text.length < start + length) return null;
  return { answer: { status, headers, body: text.slice(start, start + length) }, rest: text.slice(start + length) };
}
