import { setMaxListeners } from 'node:events';
import { CLIENT_LIMITS } from './client-limits.ts';
import type { ClientClock } from './clock.ts';
import { FencegateError } from './errors.ts';
import { JoinedSignal } from './joined-signal.ts';
import type { ClientTls } from './own-fetch.ts';
import { refusalOf } from './refusal.ts';
import { type RetryDeps, type RetryOptions, retrying } from './retrying.ts';
import { reasonOf, unreachable } from './unreachable.ts';

export type Fetch = typeof globalThis.fetch;
export type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

export const REQUEST_ID = 'x-request-id';

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** From the slash on, encoded. */
  readonly path: string;
  readonly query?: Query;
  readonly json?: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** What the request asks the gateway to wait: comes on top of the limit for an answer. */
  readonly waitMs?: number;
  /** In place of the usual limit for an answer. */
  readonly limitMs?: number;
  /** The connection keeps no process alive. */
  readonly unheld?: boolean;
  /** Gives something back: is sent, and goes on, also when the client is closed. */
  readonly outlivesClose?: boolean;
}

export interface TransportOptions {
  readonly url: string;
  readonly tls: ClientTls;
  readonly authToken: string | null;
  readonly clientId: string | null;
  readonly fetch: Fetch;
  /** For what nobody waits for. */
  readonly unheldFetch: Fetch;
  readonly clock: ClientClock;
  readonly random: () => number;
  readonly requestId: (method: string) => string;
}

/** An answer whose body is still to come; `done` must be called when it was read or is not wanted. */
export interface OpenAnswer {
  readonly response: Response;
  readonly done: () => void;
}

/** The JSON of an answer, and what its headers say beside it. */
export interface Answer<T> {
  readonly json: T;
  readonly headers: Headers;
}

/** Requests with small or no bodies, over `fetch`. Messages never hold a URL: some have the secret id of a lease. */
export class Transport implements RetryDeps {
  readonly base: string;
  readonly tls: ClientTls;
  readonly clock: ClientClock;
  readonly random: () => number;
  readonly headers: Readonly<Record<string, string>>;
  readonly #requestId: (method: string) => string;
  readonly #closing = new AbortController();
  readonly #fetch: Fetch;
  readonly #unheldFetch: Fetch;

  constructor(options: TransportOptions) {
    this.base = options.url.replace(/\/+$/, '');
    this.tls = options.tls;
    this.clock = options.clock;
    this.random = options.random;
    this.#requestId = options.requestId;
    // One listener for each request that is under way.
    setMaxListeners(0, this.#closing.signal);
    this.#fetch = options.fetch;
    this.#unheldFetch = options.unheldFetch;
    this.headers = {
      ...(options.authToken === null ? {} : { authorization: `Bearer ${options.authToken}` }),
      ...(options.clientId === null ? {} : { 'x-client-id': options.clientId }),
    };
  }

  /**
   * With the id of the request, where it has none yet: its name in the log and the audit records of the gateway. What is tried again goes on under it,
   * so that whoever has no answer finds all that became of it.
   */
  named(method: string, headers: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
    return headers[REQUEST_ID] === undefined ? { ...headers, [REQUEST_ID]: this.#requestId(method) } : headers;
  }

  /** Aborts when the client is closed, with `client_closed`. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** From here on nothing is sent, and nothing goes on, but what gives back. */
  close(): void {
    this.#closing.abort(new FencegateError('client_closed', { detail: 'The client is closed.' }));
  }

  /** The answer as JSON; `undefined` members of a 204. Rejects with `FencegateError`, or with the reason of the signal. */
  async json<T>(request: ApiRequest): Promise<T> {
    return (await this.answer<T>(request)).json;
  }

  /** The same with the headers. */
  async answer<T>(asked: ApiRequest): Promise<Answer<T>> {
    const request = { ...asked, headers: this.named(asked.method, asked.headers) };
    const limit = this.#limit(request);
    try {
      const response = await this.#send(request, limitOf(limit));
      const text = await this.#text(response, request, limitOf(limit));
      return { json: (text === '' ? {} : JSON.parse(text)) as T, headers: response.headers };
    } catch (thrown) {
      if (thrown instanceof SyntaxError) throw new FencegateError('unexpected_answer', { detail: 'The answer is not JSON.', cause: thrown });
      throw thrown;
    } finally {
      limit.dispose();
    }
  }

  /** The same, repeated where that is allowed. */
  repeated<T>(request: ApiRequest, retry: Omit<RetryOptions, 'signal'>): Promise<T> {
    const named = { ...request, headers: this.named(request.method, request.headers) };
    return retrying(this, () => this.json<T>(named), { ...retry, signal: request.signal });
  }

  /** An answer that streams: the time limit is for its head only, `signal` for all of it. Statuses of `also` are no errors. */
  async open(asked: ApiRequest, also: readonly number[] = []): Promise<OpenAnswer> {
    const request = { ...asked, headers: this.named(asked.method, asked.headers) };
    const head = this.#limit(request);
    const whole = new JoinedSignal(this.clock, this.#ends(request), null);
    const cut = new AbortController();
    const passOn = (signal: AbortSignal): void => signal.addEventListener('abort', () => cut.abort(signal.reason), { once: true });
    passOn(head.signal);
    passOn(whole.signal);
    try {
      const response = await this.#send(request, { signal: cut.signal, isTimedOut: () => head.timedOut }, also);
      const done = (): void => {
        whole.dispose();
        cut.abort();
      };
      return { response, done };
    } catch (thrown) {
      whole.dispose();
      throw thrown;
    } finally {
      head.dispose();
    }
  }

  /** What a body that broke off, of an answer that streams, is told as. */
  broken(thrown: unknown, signal: AbortSignal | undefined, members: Readonly<Record<string, unknown>> = {}): unknown {
    const ended = this.#ends({ signal }).find((one) => one?.aborted === true);
    if (ended !== undefined) return ended.reason;
    return thrown instanceof FencegateError ? thrown : unreachable(reasonOf(thrown), thrown, { members });
  }

  #limit(request: ApiRequest): JoinedSignal {
    const { waitMs = 0, limitMs = CLIENT_LIMITS.requestMsMax } = request;
    return new JoinedSignal(this.clock, this.#ends(request), limitMs + waitMs);
  }

  #ends({ signal, outlivesClose = false }: Pick<ApiRequest, 'signal' | 'outlivesClose'>): readonly (AbortSignal | undefined)[] {
    return outlivesClose ? [signal] : [signal, this.closing];
  }

  async #send(request: ApiRequest, limit: Limit, also: readonly number[] = []): Promise<Response> {
    for (const end of this.#ends(request)) end?.throwIfAborted();
    const { method, json } = request;
    const fetch = request.unheld === true ? this.#unheldFetch : this.#fetch;
    let response: Response;
    try {
      response = await fetch(`${this.base}${request.path}${queryText(request.query ?? {})}`, {
        method,
        headers: { ...this.headers, ...(json === undefined ? {} : { 'content-type': 'application/json' }), ...request.headers },
        ...(json === undefined ? {} : { body: JSON.stringify(json) }),
        signal: limit.signal,
        redirect: 'manual',
      });
    } catch (thrown) {
      throw this.#unreachable(thrown, request, limit);
    }
    if (response.ok || also.includes(response.status)) return response;
    const text = await this.#text(response, request, limit);
    throw refusalOf({ status: response.status, header: (name) => response.headers.get(name), text });
  }

  async #text(response: Response, request: ApiRequest, limit: Limit): Promise<string> {
    try {
      return await response.text();
    } catch (thrown) {
      throw this.#unreachable(thrown, request, limit);
    }
  }

  #unreachable(thrown: unknown, request: ApiRequest, limit: Limit): unknown {
    const ended = this.#ends(request).find((one) => one?.aborted === true);
    if (ended !== undefined) return ended.reason;
    // What only asks leaves nothing to look for.
    const requestId = request.method === 'GET' ? null : (request.headers?.[REQUEST_ID] ?? null);
    return unreachable(limit.isTimedOut() ? 'no answer in time' : reasonOf(thrown), thrown, { requestId });
  }
}

interface Limit {
  readonly signal: AbortSignal;
  readonly isTimedOut: () => boolean;
}

function limitOf(joined: JoinedSignal): Limit {
  return { signal: joined.signal, isTimedOut: () => joined.timedOut };
}

export function queryText(query: Query): string {
  const pairs = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined || value === null ? [] : [[name, String(value)]],
  );
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`;
}
