import type { BreakReport, BrokenLease } from '../domain/administration.ts';
import { type AuditDraft, auditDetail, type CommittedWrite } from '../domain/audit-record.ts';
import { type Clock, rfc3339, type Timer } from '../domain/clock.ts';
import { refuse } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import type { Journal, JournalOp } from '../domain/journal.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Caller } from '../domain/principal.ts';
import type { Resource } from '../domain/resource.ts';
import { bounded, checkText } from './acquire-terms.ts';
import type { Coordinator } from './coordinator.ts';
import { endKinds } from './end-kinds.ts';
import type { EventRing } from './event-ring.ts';
import type { LeaseDesk } from './lease-desk.ts';
import type { Lease } from './lease-record.ts';
import type { LockAudit } from './lock-audit.ts';

export interface BreakDeskDeps {
  readonly clock: Clock;
  readonly coordinator: Coordinator<Lease>;
  readonly desk: LeaseDesk;
  readonly journal: Pick<Journal, 'audit' | 'commit'>;
  readonly events: EventRing;
  readonly audit: LockAudit;
}

interface Grace {
  readonly timer: Timer;
  readonly forgetHolders: readonly (() => void)[];
}

export interface BreakRequest {
  readonly resource: Resource;
  readonly reason: string;
  readonly graceMs: number;
}

/** Lock stealing by an administrator (R18): at once, or after a time in which the holder may finish and nobody new gets in. */
export class BreakDesk {
  readonly #deps: BreakDeskDeps;
  readonly #graces = new Map<string, Grace>();

  constructor(deps: BreakDeskDeps) {
    this.#deps = deps;
  }

  /** Rejects with `not_found` when nobody holds the resource, `invalid_request`. */
  async breakLock(caller: Caller, { resource, reason, graceMs }: BreakRequest): Promise<BreakReport> {
    bounded('grace_ms', graceMs, 0, LIMITS.breakGraceMsMax);
    checkText('reason', reason, LIMITS.breakReasonBytesMax);
    this.#deps.desk.now();
    const holders = this.#holders(resource);
    if (holders.length === 0) throw refuse('not_found', 'Nobody holds this resource.', { resource: resource.name });
    if (graceMs > 0) return this.#grace(caller, { resource, reason, graceMs }, holders);
    const details = await this.#details(holders, reason);
    this.#forgetGrace(resource);
    this.#breakNow(caller, resource, details);
    return this.#report(resource, holders);
  }

  stop(): void {
    for (const grace of this.#graces.values()) grace.timer.cancel();
  }

  async #grace(caller: Caller, { resource, reason, graceMs }: BreakRequest, holders: readonly Lease[]): Promise<BreakReport> {
    this.#forgetGrace(resource);
    const untilMs = this.#deps.clock.wallMs() + graceMs;
    this.#deps.coordinator.close(resource, untilMs);
    const deadline = rfc3339(untilMs);
    const finish = (): void => {
      this.#forgetGrace(resource);
      this.#deps.desk.now();
      const left = this.#holders(resource);
      // A journal that cannot be read now costs the record its list, not the waiters their turn.
      void this.#details(left, reason)
        .catch(() => new Map(left.map((lease) => [lease, auditDetail(reason)])))
        .then((details) => this.#breakNow(caller, resource, details));
    };
    for (const lease of holders) lease.breaksAtMs = this.#deps.clock.monotonicMs() + graceMs;
    const timer = this.#deps.clock.after(graceMs, finish);
    // When the last of them has gone by itself there is nothing left to break, and nobody need wait on.
    const left = (): void => {
      if (this.#holders(resource).length === 0) finish();
    };
    this.#graces.set(resource.key, { timer, forgetHolders: holders.map((lease) => lease.onChange(left)) });
    try {
      const details = await this.#details(holders, reason);
      await this.#deps.journal.commit(
        holders.map((lease): JournalOp => ({ op: 'audit', record: this.#announced(caller, resource, lease, details) })),
      );
    } catch (thrown) {
      this.#forgetGrace(resource);
      for (const lease of holders) lease.breaksAtMs = Number.POSITIVE_INFINITY;
      this.#deps.coordinator.reopen(resource);
      throw thrown;
    }
    for (const lease of holders) this.#deps.events.lease('breaking', lease, `${reason} (until ${deadline})`);
    return { resource, state: 'breaking', highWaterMark: null, deadline, leases: await this.#broken(holders) };
  }

  /** Whoever got in meanwhile is not meant. */
  #breakNow(caller: Caller, resource: Resource, details: ReadonlyMap<Lease, string>): void {
    this.#deps.desk.decide([...details].map(([lease, detail]) => ({ lease, end: endKinds.broken(caller, detail) })));
    this.#deps.coordinator.reopen(resource);
  }

  #announced(caller: Caller, resource: Resource, lease: Lease, details: ReadonlyMap<Lease, string>): AuditDraft {
    const { leaseRef, terms, told } = lease;
    return this.#deps.audit.draft({
      action: 'lease_break',
      resource,
      outcome: 'committed',
      caller,
      owner: { principal: terms.principal, clientId: terms.clientId, leaseRef },
      token: told?.token ?? null,
      detail: details.get(lease),
    });
  }

  async #details(holders: readonly Lease[], reason: string): Promise<ReadonlyMap<Lease, string>> {
    return new Map(await Promise.all(holders.map(async (lease) => [lease, auditDetail(reason, await this.#committed(lease.leaseRef))] as const)));
  }

  /** Waits a moment for a commit section that still pins a lease; then the answer is that it is pending. */
  async #report(resource: Resource, holders: readonly Lease[]): Promise<BreakReport> {
    const done = Promise.all(holders.map((lease) => this.#deps.desk.endTold(lease))).then(() => true);
    const late = new Promise<false>((resolve) => this.#deps.clock.after(LIMITS.breakAnswerMs, () => resolve(false)));
    const finished = await Promise.race([done, late]);
    // A later refusal of the journal has nobody to go to; the end is tried again by whoever asks next.
    if (!finished) done.catch(() => undefined);
    let highest: FencingToken | null = null;
    for (const { decided } of holders) {
      const mark = decided?.fencedBy ?? null;
      if (mark !== null && (highest === null || mark > highest)) highest = mark;
    }
    return {
      resource,
      state: finished ? 'broken' : 'breaking',
      highWaterMark: finished ? highest : null,
      deadline: null,
      leases: await this.#broken(holders),
    };
  }

  #holders(resource: Resource): readonly Lease[] {
    return this.#deps.coordinator.look(resource.key)?.holders ?? [];
  }

  #forgetGrace(resource: Resource): void {
    const grace = this.#graces.get(resource.key);
    if (grace === undefined) return;
    this.#graces.delete(resource.key);
    grace.timer.cancel();
    for (const forget of grace.forgetHolders) forget();
  }

  #broken(holders: readonly Lease[]): Promise<readonly BrokenLease[]> {
    return Promise.all(
      holders.flatMap(({ leaseRef, clientId, told }) =>
        told === null
          ? []
          : [this.#committed(leaseRef).then((committed) => ({ leaseRef, clientId, mode: told.mode, fencingToken: told.token, committed }))],
      ),
    );
  }

  /** What the lease wrote, oldest first, so that harm can be judged and undone. */
  async #committed(leaseRef: string): Promise<readonly CommittedWrite[]> {
    const { records } = await this.#deps.journal.audit(
      { leaseRef, outcome: 'committed' },
      { order: 'asc', limit: LIMITS.brokenLeaseWritesMax, cursor: null },
    );
    return records.flatMap(({ operationId, action, volume, path, at, etagBefore, etagAfter }) =>
      operationId === null || volume === null ? [] : [{ operationId, action, resource: `${volume}/${path ?? ''}`, at, etagBefore, etagAfter }],
    );
  }
}
