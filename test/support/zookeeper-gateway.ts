import { readFileSync } from 'node:fs';
import { GatewayProcess, type GatewayProcessOptions } from './gateway-process.ts';
import { newDirectory } from './gateway-settings.ts';
import { type LockJson, Watching } from './lock-client.ts';
import { until } from './until.ts';

/** As short as a busy machine can keep: a third of it without an answer is SUSPENDED, two thirds are LOST. */
export const GATEWAY_SESSION_MS = 9_000;

export interface HeldLease {
  readonly lease_id: string;
  readonly lease_ref: string;
  readonly state: string;
  readonly fencing_token: string;
  readonly reason: string | null;
  readonly acquired_znode_path?: string;
}

export interface Answer {
  readonly status: number;
  readonly code: string | null;
  readonly detail: string | null;
  readonly ms: number;
}

export interface AcquireTerms {
  readonly waitMs?: number;
  readonly ttlMs?: number;
  readonly mode?: 'exclusive' | 'shared';
  readonly clientId?: string;
}

export type ZooKeeperGatewayOptions = GatewayProcessOptions & { readonly directory?: string };

/** A gateway process whose tokens come from the servers of `connect`. */
export class ZooKeeperGateway {
  readonly process: GatewayProcess;

  private constructor(process: GatewayProcess) {
    this.process = process;
  }

  static async start(connect: string, { directory, ...rest }: ZooKeeperGatewayOptions = {}): Promise<ZooKeeperGateway> {
    const environment = { FENCEGATE_COORDINATOR: 'zookeeper', FENCEGATE_ZOOKEEPER_CONNECT: connect, ...rest.environment };
    const options = { zookeeperSessionMs: GATEWAY_SESSION_MS, ...rest, environment };
    return new ZooKeeperGateway(await GatewayProcess.start(directory ?? (await newDirectory()), options));
  }

  get url(): string {
    return this.process.url;
  }

  /** As clients do: tried again while the coordinator is not in contact. Rejects when it is refused. */
  acquire(resource: string, terms: AcquireTerms = {}): Promise<HeldLease> {
    return until(async () => {
      const answer = await this.tryAcquire(resource, terms);
      return typeof answer === 'number' ? null : answer;
    });
  }

  /** Once: the lease, or the status 503. */
  async tryAcquire(
    resource: string,
    { waitMs = 30_000, ttlMs = 120_000, mode = 'exclusive', clientId }: AcquireTerms = {},
  ): Promise<HeldLease | 503> {
    const answer = await this.post('/v1/leases', { resource, wait_ms: waitMs, ttl_ms: ttlMs, mode, client_id: clientId });
    if (answer.status === 503) {
      await answer.arrayBuffer();
      return 503;
    }
    if (!answer.ok) throw new Error(await answer.text());
    return (await answer.json()) as HeldLease;
  }

  async lease({ lease_id: id }: Pick<HeldLease, 'lease_id'>, waitMs = 0): Promise<HeldLease> {
    return (await (await fetch(`${this.url}/v1/leases/${id}?wait_ms=${waitMs}`)).json()) as HeldLease;
  }

  async release({ lease_id: id }: Pick<HeldLease, 'lease_id'>): Promise<number> {
    return (await fetch(`${this.url}/v1/leases/${id}`, { method: 'DELETE' })).status;
  }

  /** A write under a lease, or without one; once more when a busy machine makes the gateway shed load. */
  async put(path: string, body: string, lease: Pick<HeldLease, 'fencing_token'> | null = null, waitMs = 500): Promise<Answer> {
    const headers: Record<string, string> = { 'x-lock-wait-ms': String(waitMs) };
    if (lease !== null) headers['x-fencing-token'] = lease.fencing_token;
    return until(async () => {
      const begun = performance.now();
      const answer = await fetch(`${this.url}/v1/files/${path}`, { method: 'PUT', body, headers });
      const { code = null, detail = null } = (await answer.json()) as { code?: string; detail?: string };
      return code === 'overloaded' ? null : { status: answer.status, code, detail, ms: performance.now() - begun };
    });
  }

  async get(path: string): Promise<string> {
    return (await fetch(`${this.url}/v1/files/${path}`)).text();
  }

  async lock(resource: string): Promise<LockJson> {
    return (await (await fetch(`${this.url}/v1/locks/${resource}`)).json()) as LockJson;
  }

  /** What the audit log has for a query, newest first. */
  async audit(query: string): Promise<readonly Record<string, unknown>[]> {
    return until(async () => {
      const answer = await fetch(`${this.url}/v1/audit?${query}`);
      // A busy gateway (many tests on few processors) may ask to be asked again.
      if (answer.status === 503) return null;
      if (!answer.ok) throw new Error(`the audit log: ${answer.status} ${await answer.text()}`);
      return ((await answer.json()) as { records: Record<string, unknown>[] }).records;
    });
  }

  /** The events of one resource, from now on. */
  watch(resource: string): Promise<Watching> {
    return Watching.open(this.url, `/v1/watch/${resource}`, {});
  }

  async findings(): Promise<readonly { readonly code: string; readonly resource: string | null }[]> {
    const report = (await (await fetch(`${this.url}/v1/admin/doctor`)).json()) as { findings: { code: string; resource: string | null }[] };
    return report.findings;
  }

  /** @returns the new base. */
  async rebase(): Promise<bigint> {
    const answer = await this.post('/v1/admin/fences/rebase', { reason: 'the ensemble was made anew' });
    if (!answer.ok) throw new Error(await answer.text());
    return BigInt(((await answer.json()) as { base: string }).base);
  }

  /** What `/readyz` says of the coordinator. */
  async coordinatorState(): Promise<string> {
    const ready = (await (await fetch(`${this.url}/readyz`)).json()) as { coordinator: { state: string } };
    return ready.coordinator.state;
  }

  /** Resolves when `/readyz` says one of these. */
  inState(...states: string[]): Promise<string> {
    return until(async () => {
      const state = await this.coordinatorState();
      return states.includes(state) ? state : null;
    });
  }

  /** The supervisor, and the process with the native client that it has now. */
  clientProcesses(): { readonly supervisor: number; readonly client: number } {
    const supervisor = childOf(this.process.pid);
    return { supervisor, client: childOf(supervisor) };
  }

  post(path: string, body: object): Promise<Response> {
    return fetch(this.url + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  }
}

/** The one child of a process; 0 when it has none now. */
function childOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0] ?? 0);
}
