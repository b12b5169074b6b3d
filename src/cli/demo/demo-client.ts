import type { AuditLine } from './narration.ts';

export interface DemoLease {
  readonly leaseId: string;
  readonly fencingToken: string;
}

/** Plain requests with nothing hidden, as any HTTP client makes them. */
export class DemoClient {
  readonly #url: string;
  readonly #clientId: string;
  readonly #signal: AbortSignal;

  constructor(url: string, clientId: string, signal: AbortSignal) {
    this.#url = url;
    this.#clientId = clientId;
    this.#signal = signal;
  }

  async acquire(resource: string, times: { readonly ttlMs: number; readonly waitMs: number }): Promise<DemoLease> {
    const body = JSON.stringify({ resource, ttl_ms: times.ttlMs, wait_ms: times.waitMs, client_id: this.#clientId });
    const response = await this.#ok('/v1/leases', { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    const lease = (await response.json()) as { state: string; lease_id: string; fencing_token: string | null };
    if (lease.fencing_token === null) throw new Error(`the lease is ${lease.state}, not held`);
    return { leaseId: lease.lease_id, fencingToken: lease.fencing_token };
  }

  async release(leaseId: string): Promise<void> {
    await this.#ok(`/v1/leases/${encodeURIComponent(leaseId)}`, { method: 'DELETE' });
  }

  async write(resource: string, fencingToken: string, text: string): Promise<{ readonly status: number; readonly etag: string | null }> {
    const headers = { 'x-fencing-token': fencingToken, 'x-client-id': this.#clientId };
    const response = await this.#ok(`/v1/files/${resource}`, { method: 'PUT', headers, body: text });
    await response.arrayBuffer();
    return { status: response.status, etag: response.headers.get('etag') };
  }

  async read(resource: string): Promise<string> {
    return (await this.#ok(`/v1/files/${resource}`, {})).text();
  }

  /** Oldest first. */
  async audit(resource: string): Promise<readonly AuditLine[]> {
    const slash = resource.indexOf('/');
    const query = new URLSearchParams({ volume: resource.slice(0, slash), path: resource.slice(slash + 1), order: 'asc' });
    return ((await (await this.#ok(`/v1/audit?${query}`, {})).json()) as { records: AuditLine[] }).records;
  }

  async #ok(path: string, init: RequestInit): Promise<Response> {
    const response = await fetch(this.#url + path, { ...init, signal: this.#signal });
    if (!response.ok) throw new Error(`${init.method ?? 'GET'} ${path.split('?')[0]}: ${response.status} ${await response.text()}`);
    return response;
  }
}
