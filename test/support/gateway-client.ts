import { Readable } from 'node:stream';
import { Agent, request } from 'undici';
import { until } from './until.ts';

/** An answer, read to its end. */
export interface Answer {
  readonly status: number;
  /** Names in lower case; repeated ones joined with a comma. */
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Buffer;
}

/** `whole`: it ended as its length said; otherwise the connection was cut, and `bytes` is what came before. */
export interface BegunAnswer {
  readonly status: number;
  rest(): Promise<{ readonly bytes: Buffer; readonly whole: boolean }>;
}

export type Headers = Readonly<Record<string, string | readonly string[]>>;
export type Json = Readonly<Record<string, unknown>>;

export interface RequestParts {
  readonly headers?: Headers | undefined;
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array> | null;
  readonly query?: Readonly<Record<string, string | number>>;
}

export interface LeaseJson {
  readonly lease_id: string;
  readonly lease_ref: string;
  readonly fencing_token: string;
  readonly signed_token: string | null;
  readonly session_id: string;
  readonly state: string;
  readonly reason: string | null;
  readonly [other: string]: unknown;
}

export interface RecordJson {
  readonly seq: number;
  readonly action: string;
  readonly outcome: string;
  readonly code: string | null;
  readonly status: number | null;
  readonly path: string | null;
  readonly count: number;
  readonly [other: string]: unknown;
}

/** A client over undici that sends targets as they are given and throws on nothing: a refusal is an answer like any other. */
export class GatewayClient {
  readonly url: string;
  readonly #agent: Agent;
  readonly #headers: Headers;

  constructor(url: string, headers: Headers = {}, agent: Agent = new Agent({ keepAliveTimeout: 1_000, headersTimeout: 60_000 })) {
    this.url = url;
    this.#headers = headers;
    this.#agent = agent;
  }

  /** The same client with further headers on every request. */
  with(headers: Headers): GatewayClient {
    return new GatewayClient(this.url, { ...this.#headers, ...headers }, this.#agent);
  }

  as(token: string): GatewayClient {
    return this.with({ authorization: `Bearer ${token}` });
  }

  async send(method: string, target: string, { headers = {}, body = null, query = {} }: RequestParts = {}): Promise<Answer> {
    const search = new URLSearchParams(Object.entries(query).map(([name, value]): [string, string] => [name, String(value)])).toString();
    const answer = await request(`${this.url}${target}${search === '' ? '' : `?${search}`}`, {
      dispatcher: this.#agent,
      method: method as 'GET',
      headers: mutable({ ...this.#headers, ...headers }),
      body: body !== null && typeof body !== 'string' && !(body instanceof Uint8Array) ? asStream(body) : (body as string | Buffer | null),
    });
    const bytes = Buffer.from(await answer.body.arrayBuffer());
    const names = Object.entries(answer.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : (value ?? '')]);
    return { status: answer.statusCode, headers: Object.fromEntries(names) as Record<string, string>, bytes };
  }

  /** A GET whose body is not read yet: the gateway can send no more of it than the buffers of both sides take. */
  async begin(name: string): Promise<BegunAnswer> {
    const { statusCode: status, body } = await request(`${this.url}${fileTarget(name)}`, {
      dispatcher: this.#agent,
      headers: mutable(this.#headers),
    });
    const rest = async (): Promise<{ readonly bytes: Buffer; readonly whole: boolean }> => {
      const chunks: Uint8Array[] = [];
      try {
        for await (const chunk of body) chunks.push(chunk as Uint8Array);
        return { bytes: Buffer.concat(chunks), whole: true };
      } catch {
        return { bytes: Buffer.concat(chunks), whole: false };
      }
    };
    return { status, rest };
  }

  get(name: string, headers?: Headers): Promise<Answer> {
    return this.send('GET', fileTarget(name), { headers });
  }

  put(name: string, body: string | Uint8Array | AsyncIterable<Uint8Array>, headers?: Headers): Promise<Answer> {
    return this.send('PUT', fileTarget(name), { headers, body });
  }

  /** `range` as in X-Update-Range. */
  patch(name: string, range: string, body: string | Uint8Array, headers: Headers = {}): Promise<Answer> {
    return this.send('PATCH', fileTarget(name), {
      headers: { 'content-type': 'application/octet-stream', 'x-update-range': range, ...headers },
      body,
    });
  }

  delete(name: string, headers?: Headers): Promise<Answer> {
    return this.send('DELETE', fileTarget(name), { headers });
  }

  post(target: string, body: unknown, headers: Headers = {}): Promise<Answer> {
    return this.send('POST', target, { headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) });
  }

  /** Takes a lease that must be held at once. */
  async lease(resource: string | readonly string[], more: Json = {}): Promise<LeaseJson> {
    const named = typeof resource === 'string' ? { resource } : { resources: resource };
    const answer = await this.post('/v1/leases', { ...named, ...more });
    if (answer.status !== 201 && answer.status !== 200) throw new Error(`no lease: ${answer.status} ${answer.bytes}`);
    return jsonOf<LeaseJson>(answer);
  }

  async release({ lease_id: id }: Pick<LeaseJson, 'lease_id'>): Promise<void> {
    const { status } = await this.send('DELETE', `/v1/leases/${id}`);
    if (status !== 204) throw new Error(`not released: ${status}`);
  }

  /** One page of records, newest first unless asked otherwise. */
  async audit(query: Readonly<Record<string, string | number>> = {}): Promise<readonly RecordJson[]> {
    const answer = await this.send('GET', '/v1/audit', { query });
    if (answer.status !== 200) throw new Error(`no records: ${answer.status} ${answer.bytes}`);
    return jsonOf<{ records: readonly RecordJson[] }>(answer).records;
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }
}

/** `volume/path` in plain text, as a target below `/v1/files`; a trailing slash stays. */
export function fileTarget(name: string): string {
  return `/v1/files/${name.split('/').map(encodeURIComponent).join('/')}`;
}

export function textOf(answer: Answer): string {
  return answer.bytes.toString('utf8');
}

export function jsonOf<T = Json>(answer: Pick<Answer, 'bytes'>): T {
  return JSON.parse(answer.bytes.toString('utf8')) as T;
}

/** Status, and the code of the problem document if it is one: what most tests want to compare. */
export function verdictOf(answer: Answer): string {
  return answer.status < 400 ? String(answer.status) : `${answer.status} ${jsonOf<{ code: string }>(answer).code}`;
}

/** Waits for a state that comes by itself, as `until` does. */
export async function eventually<T>(ask: () => Promise<T> | T, holds: (value: T) => boolean): Promise<T> {
  const { value } = await until(async () => {
    const value = await ask();
    return holds(value) ? { value } : null;
  });
  return value;
}

function mutable(headers: Headers): Record<string, string | string[]> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, typeof value === 'string' ? value : [...value]]));
}

function asStream(chunks: AsyncIterable<Uint8Array>): Readable {
  return Readable.from(chunks, { objectMode: false });
}
