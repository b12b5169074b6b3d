import { type CamelKeys, queryOf } from './camel-keys.ts';
import { CLIENT_LIMITS } from './client-limits.ts';
import type {
  AuditChain,
  AuditPage,
  AuditQuery,
  AuditRecord,
  BreakLock,
  BreakReport,
  Lock,
  LockPage,
  LocksQuery,
  Operation,
  Volume,
  VolumeList,
} from './contract/answers.ts';
import { pages } from './pages.ts';
import { resourceUrlPath } from './resource-path.ts';
import type { Transport } from './transport.ts';

interface Following {
  /** How many come with one request, at most 1000; the iteration goes on over all pages. */
  readonly limit?: number;
  readonly signal?: AbortSignal;
}

/** Which audit records; all of what is named must fit. `since` is included, `until` is not (RFC 3339). */
export type AuditFilter = CamelKeys<Omit<AuditQuery, 'cursor' | 'limit'>> & Following;
/** Which locks. */
export type LockFilter = CamelKeys<Omit<LocksQuery, 'cursor' | 'limit'>> & Following;

/** One of them names the operation. */
export type OperationKey = { readonly operationId: string } | { readonly idempotencyKey: string } | { readonly requestId: string };

/** Questions, and the one order that an administrator gives: all from the gateway's authoritative state. */
export class Queries {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  lock(resource: string, signal: AbortSignal | undefined): Promise<Lock> {
    return this.#transport.repeated({ method: 'GET', path: resourceUrlPath('/v1/locks', resource), signal }, { keyed: true });
  }

  locks(filter: LockFilter): AsyncIterable<Lock> {
    return this.#paged<LockPage, Lock>('/v1/locks', filter, (page) => page.locks);
  }

  audit(filter: AuditFilter): AsyncIterable<AuditRecord> {
    return this.#paged<AuditPage, AuditRecord>('/v1/audit', filter, (page) => page.records);
  }

  verifyAudit(signal: AbortSignal | undefined): Promise<AuditChain> {
    return this.#transport.repeated({ method: 'GET', path: '/v1/audit/verify', signal }, { keyed: true });
  }

  async volumes(signal: AbortSignal | undefined): Promise<readonly Volume[]> {
    return (await this.#transport.repeated<VolumeList>({ method: 'GET', path: '/v1/volumes', signal }, { keyed: true })).volumes;
  }

  operation(key: OperationKey, signal: AbortSignal | undefined): Promise<Operation> {
    const named =
      'operationId' in key ? { path: `/v1/operations/${encodeURIComponent(key.operationId)}` } : { path: '/v1/operations', query: queryOf(key) };
    return this.#transport.repeated({ method: 'GET', ...named, signal }, { keyed: true });
  }

  /** Repeated after an unknown outcome only where it names whom it is of: another break would end the lease of whoever came next. */
  breakLock(json: BreakLock, signal: AbortSignal | undefined): Promise<BreakReport> {
    return this.#transport.repeated(
      { method: 'POST', path: '/v1/admin/locks/break', json, signal, limitMs: CLIENT_LIMITS.requestMsMax },
      { keyed: json.lease_refs !== undefined },
    );
  }

  #paged<P extends { readonly next_cursor: string | null }, T>(
    path: string,
    filter: Following,
    itemsOf: (page: P) => readonly T[],
  ): AsyncIterable<T> {
    const { signal, ...members } = filter;
    const query = queryOf(members);
    return pages((cursor) => this.#transport.repeated<P>({ method: 'GET', path, query: { ...query, cursor }, signal }, { keyed: true }), itemsOf);
  }
}
