import type { BreakReport } from '../domain/administration.ts';
import type { Clock } from '../domain/clock.ts';
import { refuse } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Caller } from '../domain/principal.ts';
import type { Resource } from '../domain/resource.ts';
import { within } from '../domain/within.ts';
import { bounded, checkText } from './acquire-terms.ts';
import type { BrokenWrites } from './broken-writes.ts';
import type { Coordinator } from './coordinator.ts';
import type { BreakRequest, Graces } from './graces.ts';
import type { LeaseDesk } from './lease-desk.ts';
import type { Lease } from './lease-record.ts';
import type { LeaseTable } from './lease-table.ts';
import { endInDoubt } from './lock-refusals.ts';

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
   * Rejects with `not_found` when nobody holds the resource, `invalid_request`, `outcome_unknown` while the journal does not have the break;
   * whoever asks again meanwhile asks for that one.
   */
  async breakLock(caller: Caller, request: BreakRequest): Promise<BreakReport> {
    const { resource, reason, graceMs } = request;
    bounded('grace_ms', graceMs, 0, LIMITS.breakGraceMsMax);
    checkText('reason', reason, LIMITS.breakReasonBytesMax);
    const { desk, writes, graces, table } = this.#deps;
    desk.now();
    const untold = table.untoldOn(resource.key);
    const broken = untold.filter(({ decided }) => decided?.end.operationId != null);
    if (broken.length > 0 && this.#holders(resource).length === 0) return this.#report(resource, broken);
    // That nobody holds it, or somebody else does, is told by the answer.
    for (const lease of untold) await desk.endTold(lease);
    const details = await writes.details(graceMs === 0 ? [] : this.#holders(resource), reason);
    const holders = this.#holders(resource).filter((lease) => lease.phase !== 'over' && (graceMs === 0 || details.has(lease)));
    if (holders.length === 0) throw refuse('not_found', 'Nobody holds this resource.', { resource: resource.name });
    if (graceMs === 0) {
      graces.breakNow(caller, request, holders);
      return this.#report(resource, holders);
    }
    const meant = new Map(holders.map((lease) => [lease, details.get(lease) ?? '']));
    const { deadline, operations } = await graces.announce(caller, request, meant);
    return {
      resource,
      state: 'breaking',
      highWaterMark: null,
      deadline,
      leases: await writes.broken(holders, (lease) => operations.get(lease) ?? null),
    };
  }

  /** Waits a moment for a commit section that still pins a lease; then the answer is that it is pending. */
  async #report(resource: Resource, holders: readonly Lease[]): Promise<BreakReport> {
    const done = Promise.all(holders.map((lease) => this.#deps.desk.endTold(lease))).then(
      () => undefined,
      (thrown: unknown) => {
        throw endInDoubt(thrown, { resource: resource.name, ...operationsOf(holders) }, 'its operation');
      },
    );
    // A later refusal of the journal has nobody to go to; the end is tried again by whoever asks next.
    const finished = (await within(this.#deps.clock, LIMITS.breakAnswerMs, done)) !== 'late';
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
      // Of one that was being ended already: what ends it.
      leases: await this.#deps.writes.broken(holders, ({ decided }) => decided?.end.operationId ?? null),
    };
  }

  #holders(resource: Resource): readonly Lease[] {
    return this.#deps.coordinator.look(resource.key)?.holders ?? [];
  }
}

/** What each of them may be asked for by. `operation_id`, as every outcome that is not known has it, is the first. */
function operationsOf(holders: readonly Lease[]): { readonly operation_id: string | null; readonly operation_ids: readonly string[] } {
  const operations = holders.flatMap(({ decided }) => decided?.end.operationId ?? []);
  return { operation_id: operations[0] ?? null, operation_ids: operations };
}
