import { type ClientRequest, request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { BodySource } from './body-source.ts';
import type { CertificateDrops } from './certificate-drops.ts';
import { CLIENT_LIMITS } from './client-limits.ts';
import type { ClientClock, ClientTimer } from './clock.ts';
import { FencegateError } from './errors.ts';
import { REQUEST_ID } from './transport.ts';
import { reasonOf, unreachable } from './unreachable.ts';

export interface Progress {
  readonly transferredBytes: number;
  /** `null` when the length is not known. */
  readonly totalBytes: number | null;
}

export interface UploadParts {
  readonly url: string;
  readonly method: 'PUT' | 'PATCH' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly agent: RequestOptions['agent'];
  readonly drops: CertificateDrops | null;
  readonly source: BodySource;
  readonly clock: ClientClock;
  /** How long the connection may be silent. */
  readonly silenceMs: number;
  readonly signal: AbortSignal | undefined;
  readonly onProgress: ((progress: Progress) => void) | undefined;
}

export interface UploadAnswer {
  readonly status: number;
  readonly header: (name: string) => string | null;
  readonly text: string;
}

/**
 * One request with a body, over Node's own HTTP client: `fetch` knows no `Expect: 100-continue`, and with it a writer who is refused
 * sends not one byte. An answer that comes while the body is being sent ends the sending.
 */
export class UploadExchange {
  readonly #parts: UploadParts;
  readonly #request: ClientRequest;
  #timer: ClientTimer | null = null;
  #started = false;
  #answering = false;
  #over = false;
  #sentBytes = 0;
  #wake: () => void = () => undefined;
  #resolve: (answer: UploadAnswer) => void = () => undefined;
  #reject: (error: unknown) => void = () => undefined;

  constructor(parts: UploadParts) {
    this.#parts = parts;
    const { url, method, headers, agent, source, silenceMs } = parts;
    const { sizeBytes } = source;
    const framing: Record<string, string> = sizeBytes === null ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(sizeBytes) };
    const expect: Record<string, string> = sizeBytes === 0 ? {} : { expect: '100-continue' };
    const options = { method, headers: { ...headers, ...framing, ...expect }, agent, timeout: silenceMs };
    this.#request = url.startsWith('https:') ? httpsRequest(url, options) : httpRequest(url, options);
  }

  /** Resolves with whatever the gateway answers. Rejects with the signal's reason, the body's own error, or `gateway_unreachable` (`bytes_sent`). */
  async run(): Promise<UploadAnswer> {
    const { signal, source, clock } = this.#parts;
    try {
      return await new Promise<UploadAnswer>((resolve, reject) => {
        this.#resolve = resolve;
        this.#reject = reject;
        const request = this.#request;
        const judged = this.#parts.drops?.follow(request);
        request.on('error', (thrown) => {
          const error = judged?.(thrown) ?? thrown;
          this.#broke(this.#unreachable(reasonOf(error), error));
        });
        request.on('timeout', () => this.#fail(this.#unreachable('no answer in time', undefined)));
        request.on('response', (response) => this.#answered(response));
        request.on('continue', () => this.#start());
        request.on('drain', () => this.#wake());
        signal?.addEventListener('abort', this.#onAbort, { once: true });
        if (signal?.aborted === true) this.#onAbort();
        else if (source.sizeBytes === 0) this.#start();
        else {
          request.flushHeaders();
          this.#timer = clock.after(CLIENT_LIMITS.continueMs, () => this.#start(), true);
        }
      });
    } finally {
      this.#timer?.cancel();
      signal?.removeEventListener('abort', this.#onAbort);
    }
  }

  readonly #onAbort = (): void => this.#fail(this.#parts.signal?.reason);

  #start(): void {
    this.#timer?.cancel();
    if (this.#started || this.#over) return;
    this.#started = true;
    // Whatever the body itself throws is its reader's to know; the request is cut, so that nothing of it counts as whole.
    this.#sendAll().catch((error: unknown) => this.#broke(error));
  }

  async #sendAll(): Promise<void> {
    this.#report();
    for await (const chunk of this.#parts.source.open()) {
      if (this.#over) return;
      if (!this.#request.write(chunk)) await this.#drained();
      if (this.#over) return;
      this.#sentBytes += chunk.byteLength;
      this.#report();
    }
    this.#request.end();
  }

  #report(): void {
    this.#parts.onProgress?.({ transferredBytes: this.#sentBytes, totalBytes: this.#parts.source.sizeBytes });
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #answered(response: IncomingMessage): void {
    this.#timer?.cancel();
    this.#answering = true;
    this.#over = true;
    this.#wake();
    const chunks: Buffer[] = [];
    let length = 0;
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      length += chunk.byteLength;
      if (length > CLIENT_LIMITS.answerBytesMax) this.#fail(new FencegateError('unexpected_answer', { detail: 'The answer is far too long.' }));
    });
    response.on('error', (error) => this.#reject(this.#unreachable(reasonOf(error), error)));
    response.on('end', () => {
      // A body that was not sent to its end leaves the connection in the middle of a request.
      if (!this.#request.writableFinished) this.#request.destroy();
      const header = (name: string): string | null => response.headers[name]?.toString() ?? null;
      this.#resolve({ status: response.statusCode ?? 0, header, text: Buffer.concat(chunks).toString('utf8') });
    });
  }

  /** Of the sending: once an answer has begun, only that counts. */
  #broke(error: unknown): void {
    if (!this.#answering) this.#fail(error);
  }

  #fail(error: unknown): void {
    this.#over = true;
    this.#wake();
    this.#reject(error);
    this.#request.destroy();
  }

  #unreachable(why: string, cause: unknown): FencegateError {
    return unreachable(why, cause, { members: { bytes_sent: this.#sentBytes }, requestId: this.#parts.headers[REQUEST_ID] ?? null });
  }
}
