import { CLIENT_LIMITS } from './client-limits.ts';
import { FencegateError } from './errors.ts';

/** One server-sent event, as the stream has it. */
export interface StreamEvent {
  readonly type: string;
  /** `null` when the stream has named none so far. */
  readonly id: string | null;
  readonly data: string;
}

/** Reads server-sent events (WHATWG HTML, 9.2.6) out of chunks that may be cut anywhere. Comments are dropped. */
export class EventStreamReader {
  readonly #decoder = new TextDecoder();
  #rest = '';
  #type = '';
  #id: string | null = null;
  #data: string[] = [];
  #afterReturn = false;

  /** The events that are complete with this chunk. Throws `unexpected_answer` for a line without end. */
  read(chunk: Uint8Array): StreamEvent[] {
    const events: StreamEvent[] = [];
    const decoded = this.#decoder.decode(chunk, { stream: true });
    // The two halves of one end of a line may come in two chunks.
    const text = this.#afterReturn && decoded.startsWith('\n') ? decoded.slice(1) : decoded;
    if (decoded !== '') this.#afterReturn = text.endsWith('\r');
    const lines = (this.#rest + text).split(/\r\n|\n|\r/);
    this.#rest = lines.pop() ?? '';
    if (this.#rest.length > CLIENT_LIMITS.streamLineMax)
      throw new FencegateError('unexpected_answer', { detail: 'A line of the stream has no end.' });
    for (const line of lines) {
      const event = line === '' ? this.#dispatch() : this.#field(line);
      if (event !== null) events.push(event);
    }
    return events;
  }

  #field(line: string): null {
    const colon = line.indexOf(':');
    if (colon === 0) return null;
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (name === 'event') this.#type = value;
    else if (name === 'data') this.#data.push(value);
    else if (name === 'id' && !value.includes('\0')) this.#id = value;
    return null;
  }

  #dispatch(): StreamEvent | null {
    const event = this.#data.length === 0 ? null : { type: this.#type === '' ? 'message' : this.#type, id: this.#id, data: this.#data.join('\n') };
    this.#type = '';
    this.#data = [];
    return event;
  }
}
