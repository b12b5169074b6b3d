import type { Socket } from 'node:net';

const LINE_BYTES_MAX = 16_777_216;

/** One JSON object a line over a socket; what is sent in one turn of the loop leaves in one write. */
export class LineChannel<Sent, Received> {
  readonly #socket: Socket;
  #outgoing = '';
  #incoming = '';
  #closed = false;

  constructor(socket: Socket, listeners: { readonly onMessage: (message: Received) => void; readonly onClose: () => void }) {
    this.#socket = socket;
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => {
      for (const line of this.#lines(text)) listeners.onMessage(JSON.parse(line) as Received);
    });
    // Every error is followed by `close`.
    socket.on('error', () => undefined);
    socket.on('end', () => this.close());
    socket.on('close', () => {
      this.#closed = true;
      listeners.onClose();
    });
  }

  /** False when the other side is gone. */
  send(message: Sent): boolean {
    if (this.#closed) return false;
    if (this.#outgoing === '') process.nextTick(() => this.#flush());
    this.#outgoing += `${JSON.stringify(message)}\n`;
    return true;
  }

  close(): void {
    this.#closed = true;
    this.#socket.destroy();
  }

  #flush(): void {
    const text = this.#outgoing;
    this.#outgoing = '';
    if (!this.#socket.destroyed) this.#socket.write(text);
  }

  #lines(text: string): string[] {
    const lines = (this.#incoming + text).split('\n');
    this.#incoming = lines.pop() ?? '';
    if (this.#incoming.length > LINE_BYTES_MAX) this.close();
    return lines;
  }
}
