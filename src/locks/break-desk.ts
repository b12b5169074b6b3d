import type { BreakReport, BreakRequest } from '../domain/administration.ts';
import type { Clock } from '../domain/clock.ts';
import { refuse } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Caller } from '../domain/principal.ts';
import type { Resource } from '../domain/resource.ts';
import { within } from '../domain/within.ts';
import { bounded, checkText } from './acquire-terms.ts';
import type { BrokenWrites, PastEnd } from './broken-writes.ts';
import type { Coordinator } from './coordinator.ts';
import { foreignAt } from './foreign-there.ts';
import type { Graces } from './graces.ts';
import type { LeaseDesk } from './lease-desk.ts';
import type { Lease } from './lease-record.ts';
import type { LeaseTable } from './lease-table.ts';
import { breakAbandoned, endInDoubt, nobodyHolds } from './lock-refusals.ts';

export interface BreakDeskDeps {
  readonly clock: Clock;
  readonly coordinator: Coordinator<Lease>;
  readonly desk: LeaseDesk;
  readonly table: LeaseTable;
  readonly writes: BrokenWrites;
  readonly graces: Graces;
}

/** Lock stealing by an administrator (R18): at once, or after a time in which the holder may finish and nobody new gets in. */
export class BreakDesk {
  readonly #deps: BreakDeskDeps;

  constructor(deps: BreakDeskDeps) {
    this.#deps = deps;
  }

  /**
   * Rejects with `not_found` when nobody holds the resource, or only another program, as `Coordinator.refresh` does when that cannot be known;
   * `coordinator_suspended` when the session with the coordinator was lost before anybody was fenced; `lease_not_held` or `lease_not_found` when none of those who are named does and no break has ended one of them; `invalid_request`;
   * `outcome_unknown` while the journal does not have the break: whoever asks again meanwhile asks for that one.
   */
  async breakLock(caller: Caller, request: BreakRequest): Promise<BreakReport> {
    const { resource, reason, graceMs, leaseRefs } = request;
    bounded('grace_ms', graceMs, 0, LIMITS.breakGraceMsMax);
    checkText('reason', reason, LIMITS.breakReasonBytesMax);
    const { desk, writes, graces, table } = this.#deps;
    const meant = ({ leaseRef }: Lease): boolean => leaseRefs?.includes(leaseRef) !== false;
    desk.now();
    const untold = table.untoldOn(resource.key).filter(meant);
    const broken = untold.filter(wasBroken);
    if (broken.length > 0 && this.#holders(resource).filter(meant).length === 0) return this.#report(request, broken);
    // That nobody holds it, or somebody else does, is told by the answer.
    for (const lease of untold) await desk.endTold(lease);
    const details = await writes.details(graceMs === 0 ? [] : this.#holders(resource).filter(meant), reason);
    const holders = this.#holders(resource).filter((lease) => meant(lease) && lease.phase !== 'over' && (graceMs === 0 || details.has(lease)));
    if (holders.length === 0) {
      if (leaseRefs !== undefined) return this.#ended(request, leaseRefs);
      throw nobodyHolds(resource, await foreignAt(this.#deps.coordinator, resource));
    }
    if (graceMs === 0) {
      graces.breakNow(caller, request, holders);
      return this.#report(request, holders);
    }
    const announced = new Map(holders.map((lease) => [lease, details.get(lease) ?? '']));
    const repeated = leaseRefs === undefined ? null : graces.repeated(caller, request, holders);
    const { deadline, operations } = repeated ?? (await graces.announce(caller, request, announced));
    return {
      resource,
      state: 'breaking',
      highWaterMark: null,
      deadline,
      leases: await writes.broken(holders, (lease) => operations.get(lease) ?? null),
    };
  }

  /** None of those who are named holds it any more. The answer to whoever broke them may not have arrived. */
  async #ended(request: BreakRequest, leaseRefs: readonly string[]): Promise<BreakReport> {
    const { resource } = request;
    const { table, writes } = this.#deps;
    const known = leaseRefs.flatMap((leaseRef) => table.byRef(leaseRef) ?? []).filter((lease) => lease.covers(resource.key));
    const past = (await Promise.all(leaseRefs.map((leaseRef) => (table.byRef(leaseRef) === null ? writes.past(leaseRef, resource) : null)))).flatMap(
      (end) => end ?? [],
    );
    const before = past.flatMap(({ broken }) => broken ?? []);
    const broken = known.filter(wasBroken);
    if (broken.length > 0 || before.length > 0) return this.#report(request, broken, before);
    const [lease] = known;
    const [end] = lease === undefined ? past : [{ leaseRef: lease.leaseRef, state: lease.state, ...endOf(lease) }];
    if (end === undefined) throw refuse('lease_not_found', 'There is no such lease on this resource.', { resource: resource.name });
    throw refuse('lease_not_held', 'The lease does not hold this resource, and no break has ended it.', {
      resource: resource.name,
      lease_ref: end.leaseRef,
      state: end.state,
      reason: end.reason,
      ended_at: end.endedAt,
    });
  }

  /** Waits a moment for a commit section that still pins a lease; then the answer is that it is pending. */
  async #report({ resource, leaseRefs }: BreakRequest, holders: readonly Lease[], before: readonly PastBreak[] = []): Promise<BreakReport> {
    const done = Promise.all(holders.map((lease) => this.#deps.desk.endTold(lease))).then(
      () => undefined,
      (thrown: unknown) => {
        throw endInDoubt(thrown, { resource: resource.name, ...namesOf(holders) }, leaseRefs === undefined ? 'its operation' : 'the same request');
      },
    );
    // A later refusal of the journal has nobody to go to; the end is tried again by whoever asks next.
    const finished = (await within(this.#deps.clock, LIMITS.breakAnswerMs, done)) !== 'late';
    const meant = holders.filter(({ decided }) => decided?.abandoned == null);
    if (meant.length === 0 && before.length === 0) throw breakAbandoned(holders, { resource: resource.name });
    let highest: FencingToken | null = null;
    for (const mark of [...meant.map(({ decided }) => decided?.fencedBy ?? null), ...before.map(({ highWaterMark }) => highWaterMark)]) {
      if (mark !== null && (highest === null || mark > highest)) highest = mark;
    }
    // Of one that was being ended already: what ends it.
    const broken = await this.#deps.writes.broken(meant, ({ decided }) => decided?.end.operationId ?? null);
    return {
      resource,
      state: finished ? 'broken' : 'breaking',
      highWaterMark: finished ? highest : null,
      deadline: null,
      leases: [...broken, ...before.map(({ lease }) => lease)],
    };
  }

  #holders(resource: Resource): readonly Lease[] {
    return this.#deps.coordinator.look(resource.key)?.holders ?? [];
  }
}

type PastBreak = NonNullable<PastEnd['broken']>;

function wasBroken({ decided }: Lease): boolean {
  return decided?.end.operationId != null;
}

function endOf({ decided }: Lease): { readonly reason: string | null; readonly endedAt: string | null } {
  return { reason: decided?.end.reason ?? null, endedAt: decided?.endedAt ?? null };
}

/** What each of them may be asked for by. `operation_id`, as every outcome that is not known has it, is the first; `lease_refs` makes the break one that may be sent again. */
function namesOf(holders: readonly Lease[]): Readonly<Record<string, string | null | readonly string[]>> {
  const operations = holders.flatMap(({ decided }) => decided?.end.operationId ?? []);
  return { operation_id: operations[0] ?? null, operation_ids: operations, lease_refs: holders.map(({ leaseRef }) => leaseRef) };
}
