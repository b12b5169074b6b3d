import { randomUUID } from 'node:crypto';
import { Administration } from './administration.ts';
import { callable, checkOptions, resources, someText, text, wrongKind } from './call-checks.ts';
import { guarded } from './client-events.ts';
import type { BreakOptions, Cancellable, FencegateClientOptions, WatchOptions, WatchTarget } from './client-options.ts';
import { SystemClientClock } from './clock.ts';
import type { AuditChain, AuditRecord, BreakReport, Lock, Operation, Volume } from './contract/answers.ts';
import { BOUNDS } from './contract/bounds.ts';
import { FencegateError } from './errors.ts';
import { FileCalls } from './file-calls.ts';
import { FileReads } from './file-reads.ts';
import { FileWrites } from './file-writes.ts';
import { InheritedLease } from './inherited-lease.ts';
import { LeaseDesk } from './lease-desk.ts';
import type { LeaseHandle } from './lease-handle.ts';
import { checkMargin } from './lease-margin.ts';
import type { LeaseOptions } from './lease-options.ts';
import {
  AUDIT_FILTER,
  BREAK_OPTIONS,
  CANCELLABLE,
  CLIENT_OPTIONS,
  checkOperationKey,
  checkTarget,
  LEASE_OPTIONS,
  LOCK_FILTER,
  WATCH_OPTIONS,
} from './option-checks.ts';
import { fetchWith, unheldFetchWith } from './own-fetch.ts';
import { type AuditFilter, type LockFilter, type OperationKey, Queries } from './queries.ts';
import { resourceUrlPath } from './resource-path.ts';
import { SessionKeeper } from './session-keeper.ts';
import { Transport } from './transport.ts';
import { UnattendedLeases } from './unattended-leases.ts';
import { type WatchEvent, watching } from './watching.ts';

const URL_DEFAULT = 'http://127.0.0.1:8080';

/**
 * A client of one gateway. It has one session, which one heartbeat keeps alive for all its leases; it knows when a lease must count as
 * over without asking. All durations are in milliseconds, sizes in bytes, resources `volume/path` in plain text. Every method
 * rejects with a `FencegateError`, or with the reason of the signal it was given. Answers have the names of the HTTP contract.
 *
 * @example
 * const client = new FencegateClient({ url: 'http://127.0.0.1:8080', clientId: 'quarter-end' });
 * await client.withLease('ledger/q3.csv', { waitMs: 30_000 }, async (lease) => {
 *   const text = await (await client.get('ledger/q3.csv')).text();
 *   await lease.put('ledger/q3.csv', close(text));
 * });
 * await client.close();
 */
export class FencegateClient extends FileCalls {
  /** Leases that outlive this process. */
  readonly unattended: UnattendedLeases;
  /** What administrators ask and order. */
  readonly administration: Administration;
  readonly #transport: Transport;
  readonly #keeper: SessionKeeper;
  readonly #writes: FileWrites;
  readonly #queries: Queries;
  readonly #leases: LeaseDesk;

  /** Throws `TypeError` or `RangeError` for an option that cannot be meant. */
  constructor(options: FencegateClientOptions = {}) {
    checkOptions(options, CLIENT_OPTIONS);
    if (options.tls !== undefined && !(options.url ?? URL_DEFAULT).startsWith('https:'))
      throw wrongKind('url', 'an https URL, as tls is given', options.url);
    const clientId = options.clientId ?? null;
    const onEvent = guarded(options.onEvent);
    const { tls } = options;
    const transport = new Transport({
      url: options.url ?? URL_DEFAULT,
      tls: tls ?? {},
      authToken: options.authToken ?? null,
      clientId,
      fetch: options.fetch ?? (tls === undefined ? globalThis.fetch : fetchWith(tls)),
      unheldFetch: options.fetch ?? unheldFetchWith(tls ?? {}),
      clock: options.clock ?? new SystemClientClock(),
      random: options.random ?? Math.random,
      requestId: options.requestId ?? (() => randomUUID()),
    });
    const keeper = new SessionKeeper(transport, { sessionTtlMs: options.sessionTtlMs ?? null, clientId, onEvent });
    const writes = new FileWrites(transport);
    const inherited = options.inheritedLease === undefined ? null : new InheritedLease(transport, options.inheritedLease);
    const leases = new LeaseDesk({ transport, keeper, writes, inherited, onEvent });
    super({ writes, reads: new FileReads(transport), leases });
    this.unattended = new UnattendedLeases(transport, clientId);
    this.administration = new Administration(transport);
    this.#transport = transport;
    this.#keeper = keeper;
    this.#writes = writes;
    this.#queries = new Queries(transport);
    this.#leases = leases;
  }

  /**
   * Takes a lease on one resource, or on up to 100 at once, all or nothing. Stands in line until `waitMs` is over (0: tries once).
   * Rejects with `lock_not_acquired`, `deadlock`, `queue_full`, `ttl_out_of_range`, `overlapping_lease`, `too_many_leases`, or the
   * signal's reason; the line is then left. The lease is renewed until it is released, lost, or the client is closed.
   * Tasks of one client wait for each other like strangers; code inside `withLease` gets the lease that it already has.
   *
   * @example
   * const lease = await client.lease('ledger/q3.csv', { ttlMs: 10_000, waitMs: 0 });
   * try {
   *   await lease.append('ledger/q3.csv', 'b,2\n');
   * } finally {
   *   await lease.release();
   * }
   */
  async lease(resource: string | readonly string[], options: LeaseOptions = {}): Promise<LeaseHandle> {
    resources(resource, 'resource');
    checkOptions(options, LEASE_OPTIONS);
    checkMargin(options, this.#keeper.defaultTtlMs ?? BOUNDS.leaseTtlMsDefault);
    return this.#leases.lease(typeof resource === 'string' ? [resource] : resource, options);
  }

  /**
   * Takes a lease, runs `work` under it, and releases it whatever happens. Resolves with what `work` returns. Rejects with what `work`
   * throws; as `lease` does; and with `lease_lost` when the lease was lost while `work` ran, even if it did not notice.
   *
   * @example
   * await client.withLease(['ledger/a.csv', 'ledger/b.csv'], { waitMs: 30_000 }, async (lease) => {
   *   await lease.move('ledger/a.csv', 'ledger/b.csv', { overwrite: true });
   * });
   */
  async withLease<T>(resource: string | readonly string[], options: LeaseOptions, work: (lease: LeaseHandle) => Promise<T> | T): Promise<T> {
    callable(work, 'work');
    const lease = await this.lease(resource, options);
    try {
      const result = await lease.run(() => work(lease));
      lease.assertHeld();
      return result;
    } finally {
      // An unconfirmed release is told to `onEvent` and made up for; it must not hide what `work` did.
      await lease.release().catch(() => undefined);
    }
  }

  /**
   * Who holds a resource and who waits for it; empty lists for a name that was never locked. Times that are left are in ms. Rejects with `volume_not_found`.
   *
   * @example
   * const { holders, queue_length: inLine } = await client.lock('ledger/q3.csv');
   * for (const { client_id: holder, expires_in_ms: leftMs } of holders) console.log(holder, leftMs, inLine);
   */
  async lock(resource: string, options: Cancellable = {}): Promise<Lock> {
    text(resource, 'resource');
    checkOptions(options, CANCELLABLE);
    return this.#queries.lock(resource, options.signal);
  }

  /**
   * All current locks that fit, over all pages. Rejects with `volume_not_found`.
   *
   * @example
   * for await (const { resource, holders } of client.locks({ volume: 'ledger', olderThanMs: 300_000 })) console.log(resource, holders.length);
   */
  locks(filter: LockFilter = {}): AsyncIterable<Lock> {
    checkOptions(filter, LOCK_FILTER, 'filter');
    return this.#queries.locks(filter);
  }

  /**
   * Ends somebody's lease: fences first. With `graceMs` its holder is told before and may finish. Resolves with what the broken lease had written. For
   * administrators. Rejects with `forbidden`, `not_found` when nobody holds the resource, and of `leaseRefs` with `lease_not_held` when they ended otherwise,
   * `lease_not_found`. With `leaseRefs` it may be asked for again and again; without it is sent once, so that after `gateway_unreachable` its outcome is not known.
   *
   * @example
   * await client.lease('ledger/q3.csv');
   * const { holders } = await client.lock('ledger/q3.csv');
   * const leaseRefs = holders.map(({ lease_ref: ref }) => ref);
   * const { state, leases } = await client.breakLock('ledger/q3.csv', { reason: 'its host is gone', leaseRefs });
   * for (const { client_id: holder, committed } of leases) console.log(state, holder, committed.length);
   */
  async breakLock(resource: string, options: BreakOptions): Promise<BreakReport> {
    text(resource, 'resource');
    checkOptions(options, BREAK_OPTIONS);
    someText(options.reason, 'reason');
    const { reason, graceMs = 0, leaseRefs, signal } = options;
    return this.#queries.breakLock({ resource, reason, grace_ms: graceMs, ...(leaseRefs === undefined ? {} : { lease_refs: leaseRefs }) }, signal);
  }

  /**
   * Audit records, newest first unless `order` is `asc`, over all pages. Rejects with `forbidden`, `invalid_request` for a filter that cannot be meant.
   *
   * @example
   * for await (const record of client.audit({ volume: 'ledger', outcome: 'rejected' })) console.log(record.code, record.client_id);
   */
  audit(filter: AuditFilter = {}): AsyncIterable<AuditRecord> {
    checkOptions(filter, AUDIT_FILTER, 'filter');
    return this.#queries.audit(filter);
  }

  /**
   * Recomputes the chain of the audit log at the gateway. Rejects with `forbidden`.
   *
   * @example
   * const { valid, records, first_bad_seq: firstBad } = await client.verifyAudit();
   * if (!valid) console.error('the log was changed at', firstBad, 'of', records);
   */
  async verifyAudit(options: Cancellable = {}): Promise<AuditChain> {
    checkOptions(options, CANCELLABLE);
    return this.#queries.verifyAudit(options.signal);
  }

  /**
   * The volumes, and what writes to each must carry. Rejects with `unauthenticated`.
   *
   * @example
   * for (const { name, require_token: requireToken } of await client.volumes()) console.log(name, requireToken);
   */
  async volumes(options: Cancellable = {}): Promise<readonly Volume[]> {
    checkOptions(options, CANCELLABLE);
    return this.#queries.volumes(options.signal);
  }

  /**
   * What became of a write; kept for seven days. Rejects with `operation_not_found` when it was never begun.
   *
   * @example
   * await client.put('ledger/q3.csv', bytes, { idempotencyKey: 'close-q3' });
   * const { outcome, etag } = await client.operation({ idempotencyKey: 'close-q3' });
   */
  async operation(key: OperationKey, options: Cancellable = {}): Promise<Operation> {
    checkOperationKey(key);
    checkOptions(options, CANCELLABLE);
    return this.#queries.operation(key, options.signal);
  }

  /**
   * Follows what happens to locks. A stream that is cut goes on where it broke off; when that is not possible, the first event is a
   * `reset` with the present state. Ends by leaving the loop; throws the signal's reason, or `session_not_found`, in it.
   *
   * @example
   * for await (const event of client.watch({ resource: 'ledger/q3.csv' }, { signal })) {
   *   if (event.type === 'released') break;
   * }
   */
  watch(target: WatchTarget, options: WatchOptions = {}): AsyncIterable<WatchEvent> {
    checkTarget(target);
    checkOptions(options, WATCH_OPTIONS);
    return watching(this.#transport, { ...this.#watched(target), ...options });
  }

  /**
   * Ends the session, and with it every lease, and cuts what is under way: it rejects with `client_closed`, as every call does from then on. Idempotent. Rejects with `gateway_unreachable` when it was not confirmed; the leases then end by themselves.
   *
   * @example
   * const client = new FencegateClient({ url: 'http://127.0.0.1:8080' });
   * try {
   *   await client.withLease('ledger/q3.csv', { waitMs: 30_000 }, (lease) => lease.append('ledger/q3.csv', 'b,2\n'));
   * } finally {
   *   await client.close();
   * }
   */
  async close(): Promise<void> {
    const ended = this.#keeper.close();
    this.#writes.close();
    await ended;
  }

  #watched(target: WatchTarget): { readonly path: string; readonly query?: Record<string, string | undefined> } {
    if ('resource' in target) return { path: resourceUrlPath('/v1/watch', target.resource) };
    if (!('session' in target)) return { path: '/v1/watch', query: { volume: target.volume, path_prefix: target.pathPrefix } };
    this.#transport.closing.throwIfAborted();
    const { sessionId } = this.#keeper;
    if (sessionId === null) throw new FencegateError('session_not_found', { detail: 'The client has no session before its first lease.' });
    return { path: `/v1/sessions/${encodeURIComponent(sessionId)}/watch` };
  }
}
