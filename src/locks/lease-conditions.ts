import type { LeaseCondition } from '../domain/administration.ts';
import type { Clock, Random } from '../domain/clock.ts';
import { type GatewayError, refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Caller } from '../domain/principal.ts';
import { within } from '../domain/within.ts';
import type { BrokenWrites } from './broken-writes.ts';
import { endKinds } from './end-kinds.ts';
import type { LeaseDesk } from './lease-desk.ts';
import type { End } from './lease-end.ts';
import type { Lease } from './lease-record.ts';
import type { LeaseTable } from './lease-table.ts';
import { breakAbandoned, endInDoubt } from './lock-refusals.ts';
import { newBreakId } from './secret-id.ts';

export interface LeaseConditionsDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly table: LeaseTable;
  readonly desk: LeaseDesk;
  readonly writes: BrokenWrites;
}

/** Live leases as a diagnosis sees them, and the end of one whose client is gone for certain (R22). */
export class LeaseConditions {
  readonly #deps: LeaseConditionsDeps;
  /** Ended from here, while the journal refused it: whoever asks again asks for that end. */
  readonly #inDoubt = new WeakSet<Lease>();

  constructor(deps: LeaseConditionsDeps) {
    this.#deps = deps;
  }

  /** After everything that is over was ended: whoever is still there although its client is gone should not be. */
  *all(): Generator<LeaseCondition, void> {
    const nowMs = this.#deps.desk.now();
    for (const lease of this.#deps.table.live()) yield conditionOf(lease, nowMs);
  }

  /**
   * Fences, then ends a lease: of a client that is gone, which is judged again here, or, for a reason that an administrator gives, of any.
   * Rejects with `not_found` when it ended meanwhile, or without a reason when its client is not proven gone;
   * with `coordinator_suspended` when the session with the coordinator was lost before it could be fenced.
   * @returns `pending` when a commit section still pins it: its end is decided and takes effect when the section leaves.
   */
  async end(caller: Caller, leaseRef: string, reason: string | null): Promise<'ended' | 'pending'> {
    const { clock, table, desk } = this.#deps;
    const lease = table.byRef(leaseRef);
    if (lease === null) throw endedByItself();
    const nowMs = desk.now();
    if (!this.#inDoubt.has(lease)) {
      if (lease.phase === 'over') await desk.endTold(lease);
      if (lease.phase === 'over') throw endedByItself();
      if (reason === null && conditionOf(lease, nowMs).gone === null)
        throw refuse('not_found', 'Nothing proves any more that the client of this lease is gone.');
      const why = reason ?? 'doctor: its client is gone';
      desk.end(lease, lease.phase === 'held' ? this.#broken(caller, lease, why) : endKinds.cancelledFor(caller, why));
    }
    const ended = desk.endTold(lease).then(
      () => {
        this.#inDoubt.delete(lease);
        if (lease.decided?.abandoned != null) throw breakAbandoned([lease], {});
      },
      (thrown: unknown) => {
        this.#inDoubt.add(lease);
        throw endInDoubt(thrown, { lease_ref: leaseRef, operation_id: lease.decided?.end.operationId ?? null });
      },
    );
    // After that nobody is left to hear of a refusal of the journal; the end is tried again by whoever asks next.
    return (await within(clock, LIMITS.breakAnswerMs, ended)) === 'late' ? 'pending' : 'ended';
  }

  #broken(caller: Caller, lease: Lease, reason: string): End {
    const { random, writes } = this.#deps;
    return endKinds.broken(caller, () => writes.detail(lease, reason), { operationId: newBreakId(random) });
  }
}

function endedByItself(): GatewayError {
  return refuse('not_found', 'The lease has ended by itself.');
}

function conditionOf(lease: Lease, nowMs: number): LeaseCondition {
  const { ttlMs } = lease;
  const { session, principal, createdMs } = lease.terms;
  const heardMs = session === null ? null : Math.max(lease.renewedMs, session.renewedMs);
  const silentMs = heardMs === null ? null : nowMs - heardMs;
  const overdue = silentMs !== null && (silentMs >= ttlMs || nowMs >= (session?.deadlineMs ?? Number.POSITIVE_INFINITY));
  return {
    leaseRef: lease.leaseRef,
    clientId: lease.clientId,
    principal,
    resources: lease.resources,
    state: lease.phase !== 'held' ? 'waiting' : lease.decided === null ? 'held' : 'ending',
    sessionRef: session?.terms.sessionRef ?? null,
    ageMs: nowMs - (lease.phase === 'held' ? lease.grantedMs : createdMs),
    silentMs,
    ttlMs,
    gone: session?.ended === true ? 'session_ended' : overdue ? 'silent' : null,
  };
}
