/** The body of a request on its way to the write protocol: step 3 asks for nothing, step 4 opens it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../domain/clock.ts';
import { type GatewayError, refuse } from '../domain/errors.ts';
import type { Body } from '../domain/write.ts';
import { announcesBody, declaredBytesOf, exchangeOf } from './exchange.ts';
import { TrailingFields } from './trailing-fields.ts';

export interface BodyLimits {
  /** Largest body; `null`: none. */
  readonly bytesMax: number | null;
  /** An upload that sends nothing for so long is ended. */
  readonly idleMs: number;
  /** Least rate over the time spent waiting for the client; 0: none. Time that *we* take to store bytes does not count. */
  readonly minBytesPerSecond: number;
}

const MS_PER_SECOND = 1_000;

export class RequestBody implements Body {
  readonly declaredBytes: number | null;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #clock: Clock;
  readonly #limits: BodyLimits;
  readonly #signal: AbortSignal;
  readonly #trailing: TrailingFields;

  /** Throws `invalid_request` for what must not stand behind a body. */
  constructor(request: IncomingMessage, response: ServerResponse, clock: Clock, limits: BodyLimits, signal: AbortSignal) {
    this.#request = request;
    this.#trailing = new TrailingFields(request);
    this.#response = response;
    this.#clock = clock;
    this.#limits = limits;
    this.#signal = signal;
    this.declaredBytes = declaredBytesOf(request);
  }

  /** Throws `body_too_large` for a declared length over the limit: before a byte is asked for. */
  assertDeclaredLength(): void {
    const { bytesMax } = this.#limits;
    if (bytesMax !== null && this.declaredBytes !== null && this.declaredBytes > bytesMax) throw tooLarge(bytesMax);
  }

  open(): AsyncIterable<Uint8Array> {
    return this.#chunks();
  }

  async *#chunks(): AsyncGenerator<Uint8Array> {
    this.assertDeclaredLength();
    if (!announcesBody(this.#request)) return;
    this.#sendContinue();
    const arrival = new Arrival(this.#request, this.#signal);
    const pace = new Pace(this.#limits);
    let received = 0;
    try {
      for (;;) {
        arrival.assertWhole();
        const chunk = this.#request.read() as Buffer | null;
        if (chunk === null) {
          if (arrival.ended) break;
          await this.#wait(arrival, pace);
          continue;
        }
        received += chunk.byteLength;
        pace.bytes(chunk.byteLength);
        const { bytesMax } = this.#limits;
        if (bytesMax !== null && received > bytesMax) throw tooLarge(bytesMax);
        this.#trailing.update(chunk);
        yield chunk;
      }
      this.#trailing.assertEqual();
    } finally {
      arrival.stop();
    }
  }

  #sendContinue(): void {
    const exchange = exchangeOf(this.#request);
    if (!exchange.owesContinue) return;
    exchange.owesContinue = false;
    this.#response.writeContinue();
  }

  async #wait(arrival: Arrival, pace: Pace): Promise<void> {
    const startMs = this.#clock.monotonicMs();
    let idle = false;
    const timer = this.#clock.after(this.#limits.idleMs, () => {
      idle = true;
      arrival.wake();
    });
    await arrival.next();
    timer.cancel();
    if (idle) throw refuse('upload_timeout', `No byte of the body arrived for ${this.#limits.idleMs} ms.`);
    pace.waited(this.#clock.monotonicMs() - startMs);
  }
}

/** The least rate, judged over windows of `idleMs` of waiting: a client that sends a byte now and then does not hold a slot for ever. */
class Pace {
  readonly #limits: BodyLimits;
  #waitedMs = 0;
  #bytes = 0;

  constructor(limits: BodyLimits) {
    this.#limits = limits;
  }

  bytes(count: number): void {
    this.#bytes += count;
  }

  waited(ms: number): void {
    this.#waitedMs += ms;
    const { idleMs, minBytesPerSecond } = this.#limits;
    if (this.#waitedMs < idleMs) return;
    if (this.#bytes * MS_PER_SECOND < minBytesPerSecond * this.#waitedMs) {
      throw refuse('upload_timeout', `The body arrives slower than ${minBytesPerSecond} bytes per second.`);
    }
    this.#waitedMs = 0;
    this.#bytes = 0;
  }
}

/** Follows the stream of one body without owning it: leaving early does not destroy the connection, which still carries the answer. */
class Arrival {
  ended = false;
  #cut = false;
  #woken = false;
  #wake: (() => void) | undefined;
  readonly #request: IncomingMessage;
  readonly #signal: AbortSignal;
  readonly #onReadable = (): void => this.wake();
  readonly #onEnd = (): void => {
    this.ended = true;
    this.wake();
  };
  readonly #onCut = (): void => {
    this.#cut = true;
    this.wake();
  };

  constructor(request: IncomingMessage, signal: AbortSignal) {
    this.#request = request;
    this.#signal = signal;
    const exchange = exchangeOf(request);
    exchange.whenBroken = this.#onCut;
    this.#cut = exchange.broken || request.destroyed;
    this.ended = request.readableEnded;
    request.on('readable', this.#onReadable).on('end', this.#onEnd).on('error', this.#onCut).on('close', this.#onCut);
    signal.addEventListener('abort', this.#onReadable);
  }

  /** Ends normally only when every announced byte came (case B1): `complete` is set by the parser at the last one. */
  assertWhole(): void {
    if (this.#signal.aborted) throw this.#signal.reason;
    if (this.ended ? !this.#request.complete : this.#cut && this.#request.readableLength === 0) throw broken(this.#request);
  }

  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      if (this.#woken) this.wake();
    });
  }

  wake(): void {
    this.#woken = this.#wake === undefined;
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  stop(): void {
    exchangeOf(this.#request).whenBroken = undefined;
    this.#signal.removeEventListener('abort', this.#onReadable);
    this.#request.off('readable', this.#onReadable).off('end', this.#onEnd).off('close', this.#onCut);
    // The error listener stays: a connection that breaks while the answer is on its way is nobody's uncaught error.
  }
}

function broken(request: IncomingMessage): GatewayError {
  const { malformed } = exchangeOf(request);
  if (malformed !== null) return refuse('invalid_request', malformed);
  return refuse('incomplete_body', 'The connection ended before the whole body had arrived.');
}

function tooLarge(bytesMax: number): GatewayError {
  return refuse('body_too_large', `The body is over ${bytesMax} bytes.`, { body_bytes_max: bytesMax });
}
