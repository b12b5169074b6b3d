import { newDirectory } from './gateway.ts';
import { GatewayProcess, type GatewayProcessOptions } from './gateway-process.ts';
import { until } from './until.ts';

/** Long enough for a busy machine: a third of it without an answer is SUSPENDED. */
const GATEWAY_SESSION_MS = 12_000;

export interface HeldLease {
  readonly lease_id: string;
  readonly state: string;
  readonly fencing_token: string;
  readonly reason: string | null;
}

export interface Answer {
  readonly status: number;
  readonly code: string | null;
  readonly ms: number;
}

/** A gateway process whose tokens come from the servers of `connect`. */
export class ZooKeeperGateway {
  readonly process: GatewayProcess;

  private constructor(process: GatewayProcess) {
    this.process = process;
  }

  static async start(connect: string, options: GatewayProcessOptions & { readonly directory?: string } = {}): Promise<ZooKeeperGateway> {
    const { directory = await newDirectory(), ...rest } = options;
    const environment = { FENCEGATE_COORDINATOR: 'zookeeper', FENCEGATE_ZOOKEEPER_CONNECT: connect, ...options.environment };
    return new ZooKeeperGateway(await GatewayProcess.start(directory, { zookeeperSessionMs: GATEWAY_SESSION_MS, ...rest, environment }));
  }

  /** As clients do: tried again while the coordinator is not in contact. Rejects when it is refused. */
  acquire(resource: string, waitMs = 30_000): Promise<HeldLease> {
    return until(async () => {
      const answer = await this.tryAcquire(resource, waitMs);
      return typeof answer === 'number' ? null : answer;
    });
  }

  /** Once: the lease, or the status 503. */
  async tryAcquire(resource: string, waitMs: number): Promise<HeldLease | 503> {
    const answer = await this.#post('/v1/leases', { resource, wait_ms: waitMs, ttl_ms: 120_000 });
    if (answer.status === 503) return 503;
    if (!answer.ok) throw new Error(await answer.text());
    return (await answer.json()) as HeldLease;
  }

  async lease({ lease_id: id }: HeldLease, waitMs = 0): Promise<HeldLease> {
    return (await (await fetch(`${this.process.url}/v1/leases/${id}?wait_ms=${waitMs}`)).json()) as HeldLease;
  }

  async release({ lease_id: id }: HeldLease): Promise<void> {
    await fetch(`${this.process.url}/v1/leases/${id}`, { method: 'DELETE' });
  }

  /** A write under a lease, or without one. */
  async put(path: string, body: string, lease: HeldLease | null = null, waitMs = 500): Promise<Answer> {
    const headers: Record<string, string> = { 'x-lock-wait-ms': String(waitMs) };
    if (lease !== null) headers['x-fencing-token'] = lease.fencing_token;
    const begun = performance.now();
    const answer = await fetch(`${this.process.url}/v1/files/v/${path}`, { method: 'PUT', body, headers });
    const { code = null } = (await answer.json()) as { code?: string };
    return { status: answer.status, code, ms: performance.now() - begun };
  }

  async get(path: string): Promise<string> {
    return (await fetch(`${this.process.url}/v1/files/v/${path}`)).text();
  }

  /** What `/readyz` says of the coordinator. */
  async coordinatorState(): Promise<string> {
    const ready = (await (await fetch(`${this.process.url}/readyz`)).json()) as { coordinator: { state: string } };
    return ready.coordinator.state;
  }

  #post(path: string, body: object): Promise<Response> {
    return fetch(this.process.url + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  }
}
