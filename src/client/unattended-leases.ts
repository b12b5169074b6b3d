import { randomUUID } from 'node:crypto';
import { notAcquired } from './acquiring.ts';
import { checkOptions, someText, text } from './call-checks.ts';
import { CLIENT_LIMITS } from './client-limits.ts';
import type { Cancellable } from './client-options.ts';
import type { AcquireLease, Lease, LeaseMode } from './contract/answers.ts';
import { BOUNDS } from './contract/bounds.ts';
import type { FencegateError } from './errors.ts';
import { CANCELLABLE, RENEW_OPTIONS, UNATTENDED_OPTIONS } from './option-checks.ts';
import { retrying, ruleOf } from './retrying.ts';
import type { Transport } from './transport.ts';
import { ttlOf } from './ttl-of.ts';
import { wasNeverSent } from './unreachable.ts';

export interface UnattendedLeaseOptions {
  /** Default `exclusive`. */
  readonly mode?: LeaseMode;
  /** How long the lease lives unless `renew` is called, ms; default 30 000. */
  readonly ttlMs?: number;
  /** How long to stand in line, ms; default 0: tries once. */
  readonly waitMs?: number;
  /** Up to 4 096 bytes of JSON, yours to read again. A text `reason` in it is shown with the lock: what the lease is for. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly signal?: AbortSignal;
}

export interface RenewOptions {
  /** How long the lease lives from now on, ms; default: as it was. */
  readonly ttlMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * Leases that outlive this process: each has a session of its own, nobody renews them in the background, and closing the client leaves them.
 * For scripts in which one command takes a lease and another one gives it back. A program that goes on running takes `client.lease`.
 */
export class UnattendedLeases {
  readonly #transport: Transport;
  readonly #clientId: string | null;

  constructor(transport: Transport, clientId: string | null) {
    this.#transport = transport;
    this.#clientId = clientId;
  }

  /**
   * Rejects with `lock_not_acquired`, `deadlock`, `queue_full`, `ttl_out_of_range`, or the signal's reason; the line is then left. After
   * `gateway_unreachable` it may have been granted to nobody, and ends when its time to live is over.
   *
   * @example
   * const { lease_id: id, fencing_token: token } = await client.unattended.acquire('ledger/q3.csv', { ttlMs: 60_000 });
   * console.log('write with', token);
   * await client.unattended.release(id);
   */
  async acquire(resource: string, options: UnattendedLeaseOptions = {}): Promise<Lease> {
    text(resource, 'resource');
    checkOptions(options, UNATTENDED_OPTIONS);
    const { clock } = this.#transport;
    const { signal, waitMs = 0, ttlMs, mode = 'exclusive', metadata = null } = options;
    const untilMs = clock.monotonicMs() + waitMs;
    const restMs = (): number => Math.max(0, Math.ceil(untilMs - clock.monotonicMs()));
    const firstMs = Math.ceil(Math.min(CLIENT_LIMITS.firstWaitMs, waitMs));
    const json: AcquireLease = {
      resource,
      mode,
      ttl_ms: ttlMs ?? BOUNDS.leaseTtlMsDefault,
      wait_ms: firstMs,
      max_wait_ms: waitMs > 0 ? Math.ceil(waitMs) : null,
      client_id: this.#clientId,
      hold_id: randomUUID(),
      metadata,
    };
    // Without a session the gateway does not know a repeated request again, and would let it wait for the lease that the first one got.
    const repeatable = (error: FencegateError): boolean => ruleOf(error) === 'unchanged' || wasNeverSent(error);
    const request = { method: 'POST', path: '/v1/leases', json, waitMs: firstMs, signal } as const;
    let lease = await this.#transport.repeated<Lease>(request, { keyed: true, repeatable });
    try {
      while (lease.state === 'waiting' && restMs() > 0) lease = await this.#poll(lease, restMs(), signal);
    } catch (thrown) {
      await this.#leave(lease.lease_id);
      throw thrown;
    }
    if (lease.state === 'held') return lease;
    if (lease.state === 'waiting') await this.#leave(lease.lease_id);
    throw notAcquired(lease);
  }

  /**
   * Starts its time anew, with another time to live when `ttlMs` (ms) is given. Rejects with `lease_not_held` when it has ended,
   * `lease_not_found`, `ttl_out_of_range` (`min_ms`, `max_ms`).
   *
   * @example
   * const { lease_id: id } = await client.unattended.acquire('ledger/q3.csv');
   * const { expires_in_ms: leftMs } = await client.unattended.renew(id, { ttlMs: 120_000 });
   * console.log('renewed for', leftMs);
   * await client.unattended.release(id);
   */
  async renew(leaseId: string, options: RenewOptions = {}): Promise<Lease> {
    someText(leaseId, 'leaseId');
    checkOptions(options, RENEW_OPTIONS);
    const { ttlMs, signal } = options;
    const json = ttlMs === undefined ? {} : { ttl_ms: ttlMs };
    return this.#transport.repeated({ method: 'POST', path: `${pathOf(leaseId)}/renew`, json, signal }, { keyed: true });
  }

  /**
   * Ends it, whatever holds it has. Idempotent. Rejects with `lease_not_found`.
   *
   * @example
   * const { lease_id: id } = await client.unattended.acquire('ledger/q3.csv');
   * await client.unattended.release(id);
   */
  async release(leaseId: string, options: Cancellable = {}): Promise<void> {
    someText(leaseId, 'leaseId');
    checkOptions(options, CANCELLABLE);
    const { signal } = options;
    await this.#transport.repeated({ method: 'DELETE', path: pathOf(leaseId), query: { all: true }, signal }, { keyed: true });
  }

  /** Keeps the place in line over cut connections, for as long as it can still be there. */
  #poll(lease: Lease, restMs: number, signal: AbortSignal | undefined): Promise<Lease> {
    const { clock } = this.#transport;
    const { lease_id: id } = lease;
    const ttlMs = ttlOf(lease);
    const waitMs = Math.min(CLIENT_LIMITS.pollWaitMs, ttlMs / 2, restMs);
    const query = { wait_ms: Math.ceil(waitMs) };
    const attempt = (): Promise<Lease> => this.#transport.json<Lease>({ method: 'GET', path: pathOf(id), query, waitMs, signal });
    return retrying(this.#transport, attempt, { keyed: true, signal, untilMs: clock.monotonicMs() + ttlMs });
  }

  /** With a limit of its own, and never rejects: the first error stands, and a place that is not polled ends by itself. */
  async #leave(leaseId: string): Promise<void> {
    const request = { method: 'DELETE', path: pathOf(leaseId), limitMs: CLIENT_LIMITS.cleanUpMs, outlivesClose: true } as const;
    await this.#transport.json(request).catch(() => undefined);
  }
}

function pathOf(leaseId: string): string {
  return `/v1/leases/${encodeURIComponent(leaseId)}`;
}
