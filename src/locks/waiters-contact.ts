import type { GatewayError } from '../domain/errors.ts';
import type { Coordination } from './coordination.ts';
import type { Lease } from './lease-record.ts';
import type { LeaseTable } from './lease-table.ts';
import { notLookedYet, sessionLost } from './lock-refusals.ts';

/** The contact with the coordinator, for whoever waits: without it nobody can be told that somebody else holds (R12). */
export class WaitersContact {
  readonly #coordination: Coordination;
  readonly #table: LeaseTable;

  constructor(coordination: Coordination, table: LeaseTable) {
    this.#coordination = coordination;
    this.#table = table;
    coordination.onState((state) => {
      if (state === 'suspended') this.#wakeUnlooked();
    });
  }

  /** For who begins. Throws `coordinator_suspended`, `coordinator_unavailable`. */
  assert(): void {
    const refusal = this.#coordination.refusal();
    if (refusal !== null) throw refusal;
  }

  /** For who began with contact: that there is no session now means that it was lost meanwhile. Judged at this moment, and so may be what ends the wait. */
  refusal(): GatewayError | null {
    const refusal = this.#coordination.refusal();
    return refusal === null || refusal.code === 'coordinator_suspended' ? refusal : sessionLost();
  }

  /** Why nobody can tell whoever waited with this lease that somebody else holds. */
  unknown(lease: Lease): GatewayError | null {
    return this.refusal() ?? (lease.looked ? null : notLookedYet());
  }

  /** A try waits until the coordinator has looked, and no longer than there is contact. */
  #wakeUnlooked(): void {
    for (const lease of [...this.#table.live()]) if (lease.phase === 'waiting' && !lease.stands) lease.changed();
  }
}
