import { request } from 'undici';
import { type Answer, eventually, type GatewayClient, type Headers, type Json, jsonOf, type LeaseJson } from './gateway-client.ts';

export interface LockJson {
  readonly resource: string;
  readonly mode: string | null;
  readonly high_water_mark: string | null;
  readonly holders: readonly Readonly<Record<string, unknown>>[];
  readonly waiters: readonly Readonly<Record<string, unknown>>[];
  readonly queue_length: number;
  readonly [other: string]: unknown;
}

export interface EventJson {
  readonly type: string;
  readonly id: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Short forms for what a client of the lock service asks. */
export class LockClient {
  readonly client: GatewayClient;

  constructor(client: GatewayClient) {
    this.client = client;
  }

  acquire(resource: string | readonly string[], more: Json = {}): Promise<Answer> {
    return this.client.post('/v1/leases', { ...(typeof resource === 'string' ? { resource } : { resources: resource }), ...more });
  }

  async lease({ lease_id: id }: Pick<LeaseJson, 'lease_id'>, waitMs = 0): Promise<LeaseJson> {
    return jsonOf<LeaseJson>(await this.client.send('GET', `/v1/leases/${id}`, { query: { wait_ms: waitMs } }));
  }

  renew({ lease_id: id }: Pick<LeaseJson, 'lease_id'>): Promise<Answer> {
    return this.client.send('POST', `/v1/leases/${id}/renew`);
  }

  convert({ lease_id: id }: Pick<LeaseJson, 'lease_id'>, mode: string): Promise<Answer> {
    return this.client.post(`/v1/leases/${id}/convert`, { mode });
  }

  release({ lease_id: id }: Pick<LeaseJson, 'lease_id'>, query: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.client.send('DELETE', `/v1/leases/${id}`, { query });
  }

  async session(more: Json = {}): Promise<{ readonly session_id: string; readonly session_ref: string }> {
    return jsonOf(await this.client.post('/v1/sessions', more));
  }

  heartbeat({ session_id: id }: { readonly session_id: string }): Promise<Answer> {
    return this.client.send('POST', `/v1/sessions/${id}/heartbeat`);
  }

  async lock(resource: string): Promise<LockJson> {
    return jsonOf<LockJson>(await this.client.send('GET', `/v1/locks/${resource}`));
  }

  /** Resolves once so many wait for it. */
  async queued(resource: string, length: number): Promise<LockJson> {
    return eventually(
      () => this.lock(resource),
      ({ queue_length: now }) => now === length,
    );
  }

  break(resource: string, more: Json = {}): Promise<Answer> {
    return this.client.post('/v1/admin/locks/break', { resource, reason: 'test', ...more });
  }

  /** Server-sent events of `target`; resolves when the gateway has begun to send. */
  watch(target: string, headers: Headers = {}): Promise<Watching> {
    return Watching.open(this.client.url, target, headers);
  }
}

/** A stream of events as they come. */
export class Watching {
  readonly comments: string[] = [];
  readonly #leave: AbortController;
  readonly #frames: AsyncGenerator<EventJson, void>;

  private constructor(chunks: AsyncIterable<Buffer>, leave: AbortController) {
    this.#leave = leave;
    this.#frames = this.#parse(chunks);
  }

  static async open(url: string, target: string, headers: Headers): Promise<Watching> {
    const leave = new AbortController();
    const { statusCode, body } = await request(`${url}${target}`, {
      headers: headers as Record<string, string>,
      signal: leave.signal,
      bodyTimeout: 0,
    });
    if (statusCode !== 200) throw new Error(`no stream: ${statusCode} ${await body.text()}`);
    body.on('error', () => undefined);
    return new Watching(body, leave);
  }

  /** The next event; waits for it. */
  async next(): Promise<EventJson> {
    const { value } = await this.#frames.next();
    if (value === undefined) throw new Error('the stream has ended');
    return value;
  }

  /** The types of the next events. */
  async types(count: number): Promise<readonly string[]> {
    const types: string[] = [];
    for (let i = 0; i < count; i += 1) types.push((await this.next()).type);
    return types;
  }

  close(): void {
    this.#leave.abort();
  }

  async *#parse(chunks: AsyncIterable<Buffer>): AsyncGenerator<EventJson, void> {
    let text = '';
    for await (const chunk of chunks) {
      text += chunk.toString('utf8');
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const frame = text.slice(0, end);
        text = text.slice(end + 2);
        if (frame.startsWith(':')) this.comments.push(frame);
        else yield eventOf(frame);
      }
    }
  }
}

function eventOf(frame: string): EventJson {
  const fields = new Map(frame.split('\n').map((line): [string, string] => [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)]));
  return { type: fields.get('event') ?? '', id: fields.get('id') ?? '', data: JSON.parse(fields.get('data') ?? '{}') as EventJson['data'] };
}
