import type { BreakReport, BrokenLease } from '../domain/administration.ts';
import { auditDetail, type CommittedWrites } from '../domain/audit-record.ts';
import type { EndedLease, Journal } from '../domain/journal.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Resource } from '../domain/resource.ts';
import type { Lease } from './lease-record.ts';

/** A lease on a resource that ended before a restart; `broken` when a break was its end. */
export interface PastEnd extends Pick<EndedLease, 'leaseRef' | 'state' | 'reason' | 'endedAt'> {
  readonly broken: { readonly lease: BrokenLease; readonly highWaterMark: BreakReport['highWaterMark'] } | null;
}

/** What leases that are broken wrote, oldest first, so that harm can be judged and undone. */
export class BrokenWrites {
  readonly #journal: Pick<Journal, 'audit' | 'endedLease'>;

  constructor(journal: Pick<Journal, 'audit' | 'endedLease'>) {
    this.#journal = journal;
  }

  /** For the answer. */
  async broken(holders: readonly Lease[], operationOf: (lease: Lease) => string | null): Promise<readonly BrokenLease[]> {
    const found = holders.map(async (lease): Promise<BrokenLease> => {
      const { leaseRef, clientId, told, mode } = lease;
      const operationId = operationOf(lease);
      return {
        leaseRef,
        clientId,
        mode: told?.mode ?? mode,
        fencingToken: told?.token ?? null,
        operationId,
        committed: await this.#committed(leaseRef),
      };
    });
    return Promise.all(found);
  }

  /** `null`: the journal knows of none within the hour. */
  async past(leaseRef: string, { key, volume, path }: Resource): Promise<PastEnd | null> {
    const ended = await this.#journal.endedLease(leaseRef);
    if (ended?.lease?.resources.some((resource) => resource.key === key) !== true) return null;
    const { state, reason, endedAt } = ended;
    const { records } = await this.#journal.audit(
      { leaseRef, volume, path, action: 'lease_break', outcome: 'committed' },
      { order: 'desc', limit: 1, cursor: null },
    );
    const [record] = records;
    const { mode, token, clientId } = ended.lease;
    const fencingToken = token ?? record?.fencingToken ?? null;
    if (state !== 'broken' || record === undefined) return { leaseRef, state, reason, endedAt, broken: null };
    const committed = await this.#committed(leaseRef);
    const lease = { leaseRef, clientId, mode, fencingToken, operationId: record.operationId, committed };
    return { leaseRef, state, reason, endedAt, broken: { lease, highWaterMark: record.highWaterMark } };
  }

  /** For the record that announces a break. */
  async details(holders: readonly Lease[], reason: string): Promise<ReadonlyMap<Lease, string>> {
    return new Map(await Promise.all(holders.map(async (lease) => [lease, auditDetail(reason, await this.#committed(lease.leaseRef))] as const)));
  }

  /** For the record of the break itself: a journal that cannot be read now costs the record its list, not the waiters their turn. */
  async detail({ leaseRef }: Lease, reason: string): Promise<string> {
    return auditDetail(reason, await this.#committed(leaseRef).catch(() => undefined));
  }

  async #committed(leaseRef: string): Promise<CommittedWrites> {
    const { records, nextCursor } = await this.#journal.audit(
      { leaseRef, outcome: 'committed' },
      { order: 'asc', limit: LIMITS.brokenLeaseWritesMax, cursor: null },
    );
    const writes = records.flatMap(({ operationId, action, volume, path, at, etagBefore, etagAfter }) =>
      operationId === null || volume === null || action === 'lease_break'
        ? []
        : [{ operationId, action, resource: `${volume}/${path ?? ''}`, at, etagBefore, etagAfter }],
    );
    return { writes, truncated: nextCursor !== null };
  }
}
