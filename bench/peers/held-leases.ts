/** The longest that the gateway grants: a lease outlives any run, so that no renewal falls into a measured turn. */
const TTL_MS = 3_600_000;

export interface BenchLease {
  readonly leaseId: string;
  readonly fencingToken: string;
}

/** Takes leases over the gateway's HTTP interface and remembers them. */
export class HeldLeases {
  readonly #url: string;
  readonly #volume: string;
  readonly #held = new Map<string, Promise<BenchLease>>();
  readonly #stale = new Map<string, Promise<string>>();

  constructor(port: number, volume: string) {
    this.#url = `http://127.0.0.1:${port}/v1/leases`;
    this.#volume = volume;
  }

  held(file: string): Promise<BenchLease> {
    return remembered(this.#held, file, () => this.#acquire(file));
  }

  staleToken(file: string): Promise<string> {
    return remembered(this.#stale, file, async () => {
      const first = await this.#acquire(file);
      await this.#release(first);
      await this.held(file);
      return first.fencingToken;
    });
  }

  async #acquire(file: string): Promise<BenchLease> {
    const answer = await fetch(this.#url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ resource: `${this.#volume}/${file}`, ttl_ms: TTL_MS, client_id: 'bench' }),
    });
    const text = await answer.text();
    if (answer.status !== 201) throw new Error(`a lease was answered with ${answer.status} ${text.slice(0, 300)}`);
    const body: unknown = JSON.parse(text);
    if (typeof body !== 'object' || body === null || !('lease_id' in body) || !('fencing_token' in body))
      throw new Error('a lease without lease_id or fencing_token');
    return { leaseId: String(body.lease_id), fencingToken: String(body.fencing_token) };
  }

  async #release(lease: BenchLease): Promise<void> {
    const answer = await fetch(`${this.#url}/${encodeURIComponent(lease.leaseId)}?all=true`, { method: 'DELETE' });
    await answer.arrayBuffer();
    if (answer.status !== 204) throw new Error(`a release was answered with ${answer.status}`);
  }
}

function remembered<T>(map: Map<string, Promise<T>>, key: string, make: () => Promise<T>): Promise<T> {
  const value = map.get(key) ?? make();
  map.set(key, value);
  return value;
}
