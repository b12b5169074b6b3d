import { settle } from './fake-clock.ts';

/** A request that waits for the test to answer it. */
export interface FakeRequest {
  readonly method: string;
  /** With the query. */
  readonly target: string;
  readonly json: Readonly<Record<string, unknown>>;
  readonly headers: Headers;
  readonly signal: AbortSignal | null;
  answer(status: number, json?: object, headers?: Readonly<Record<string, string>>): Promise<void>;
  /** The connection breaks. */
  cut(): Promise<void>;
}

/** A stream of events that the test sends. */
export interface FakeStream extends FakeRequest {
  /** The head of the answer. */
  open(): Promise<void>;
  send(type: string, data: object): Promise<void>;
  /** The gateway ends it. */
  end(): Promise<void>;
  /** The connection breaks in the middle. */
  break(): Promise<void>;
}

/** In place of `fetch`: the test is the gateway. Streams are asked for in the background, and wait apart. */
export class FakeFetch {
  readonly #waiting: FakeRequest[] = [];
  readonly #streams: FakeStream[] = [];
  /** Everything that was ever asked, `METHOD target`. */
  readonly seen: string[] = [];

  readonly fetch = (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const target = String(input).replace(/^https?:\/\/[^/]+/, '');
    const method = init.method ?? 'GET';
    this.seen.push(`${method} ${target}`);
    return new Promise((resolve, reject) => {
      const signal = init.signal ?? null;
      if (signal?.aborted === true) reject(signal.reason);
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
      const body = init.body ?? '{}';
      const request: FakeRequest = {
        method,
        target,
        json: JSON.parse(String(body)) as Readonly<Record<string, unknown>>,
        headers: new Headers(init.headers),
        signal,
        answer: async (status, json, headers = {}) => {
          const text = json === undefined ? null : JSON.stringify(json);
          resolve(new Response(text, { status, headers }));
          await settle();
        },
        cut: async () => {
          reject(cutOff());
          await settle();
        },
      };
      if (request.headers.get('accept') === 'text/event-stream') this.#streams.push(streaming(request, resolve));
      else this.#waiting.push(request);
    });
  };

  /** The oldest stream that nobody took yet. */
  async nextStream(): Promise<FakeStream> {
    await settle();
    const stream = this.#streams.shift();
    if (stream === undefined) throw new Error('nobody asks for a stream');
    return stream;
  }

  get streams(): number {
    return this.#streams.length;
  }

  /** The oldest request that nobody took yet; it must be this one. */
  async next(expected: string): Promise<FakeRequest> {
    await settle();
    const request = this.#waiting.shift();
    const actual = request === undefined ? 'nothing' : `${request.method} ${request.target}`;
    if (request === undefined || !actual.startsWith(expected)) throw new Error(`expected ${expected}, got ${actual}`);
    return request;
  }

  /** Nobody asks for anything now. */
  async quiet(): Promise<boolean> {
    await settle();
    return this.#waiting.length === 0;
  }
}

function cutOff(): TypeError {
  return new TypeError('fetch failed', { cause: Object.assign(new Error('reset'), { code: 'ECONNRESET' }) });
}

function streaming(request: FakeRequest, resolve: (response: Response) => void): FakeStream {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>({
    start: (made) => {
      controller = made;
    },
  });
  let seq = 0;
  const send = async (text: string): Promise<void> => {
    controller?.enqueue(new TextEncoder().encode(text));
    await settle();
  };
  return {
    ...request,
    open: async () => {
      resolve(new Response(body, { status: 200 }));
      await send(': watching\n\n');
    },
    send: (type, data) => {
      seq += 1;
      return send(`id: ${seq}\nevent: ${type}\ndata: ${JSON.stringify({ seq, ...data })}\n\n`);
    },
    end: async () => {
      controller?.close();
      await settle();
    },
    break: async () => {
      controller?.error(cutOff());
      await settle();
    },
  };
}

/** A problem document. */
export function problem(status: number, code: string, members: object = {}): [number, object] {
  return [status, { type: `/docs/problems/${code}`, title: code, status, detail: code, code, request_id: 'req_1', ...members }];
}

const LEASE = {
  lease_id: 'secret',
  lease_ref: 'ref',
  resource: 'v/a',
  resources: ['v/a'],
  mode: 'exclusive',
  state: 'held',
  fencing_token: '7',
  signed_token: null,
  client_id: null,
  session_id: 'session',
  priority: 5,
  hold_count: 1,
  hold_id: null,
  ttl_ms: 10_000,
  expires_in_ms: 10_000,
  hold_expires_in_ms: null,
  lease_expires_at: null,
  granted_at: null,
  queue_position: null,
  acquired_znode_path: null,
  reason: null,
  metadata: null,
} as const;

/** A lease as the gateway answers it. */
export function leaseAnswer(changes: object = {}): typeof LEASE {
  return { ...LEASE, ...changes };
}

export function sessionAnswer(ttlMs = 300_000): object {
  return { session_id: 'session', session_ref: 'session-ref', ttl_ms: ttlMs, expires_in_ms: ttlMs, lease_count: 0 };
}
