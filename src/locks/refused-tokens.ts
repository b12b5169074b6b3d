import type { Clock } from '../domain/clock.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Resource } from '../domain/resource.ts';
import type { EndsTold } from './ends-told.ts';
import type { Lease } from './lease-record.ts';
import type { LeaseTable } from './lease-table.ts';
import { endNotReached, notDurableYet } from './lock-refusals.ts';
import { waitForChange } from './wait-for-change.ts';

export interface RefusedTokensDeps {
  readonly clock: Clock;
  readonly table: LeaseTable;
  readonly ends: EndsTold;
}

/**
 * A 412 about a token is for good: whoever is told it sends the token no more. So what it is about must be durable before, or a start
 * could bring back a lease whose holder was told that it has ended, and let the same token write.
 */
export class RefusedTokens {
  readonly #deps: RefusedTokensDeps;

  constructor(deps: RefusedTokensDeps) {
    this.#deps = deps;
  }

  /** See `WriteLeases.refusalTold`. */
  async told(resource: Resource, token: FencingToken, signal: AbortSignal): Promise<boolean> {
    const lease = this.#deps.table.liveByToken(token) ?? this.#deps.table.endedByToken(token);
    if (lease === null || !lease.covers(resource.key)) return false;
    const { table, ends } = this.#deps;
    const moves = underWay(lease) || table.isUntold(lease);
    await this.#decided(lease, signal);
    // A change to shared that the journal refused was taken back.
    if (lease.decided === null && lease.told?.mode === 'exclusive') throw notDurableYet(lease.failure);
    if (!moves) return false;
    try {
      if (lease.decided !== null) await ends.told(lease);
    } catch (thrown) {
      throw notDurableYet(thrown);
    }
    return true;
  }

  /** Waits while the journal, or a commit section, has an end or a change to shared in hand. */
  async #decided(lease: Lease, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const untilMs = clock.monotonicMs() + LIMITS.commitDeadlineMs;
    while (underWay(lease)) {
      const outcome = await waitForChange(lease, clock, Math.max(0, untilMs - clock.monotonicMs()), signal);
      if (outcome === 'aborted') throw signal.reason;
      if (outcome === 'time') throw endNotReached();
    }
  }
}

function underWay({ phase, downgrade, decided }: Lease): boolean {
  return phase !== 'over' && (downgrade !== null || decided !== null);
}
