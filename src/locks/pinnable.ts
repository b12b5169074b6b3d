import type { GatewayError } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import type { Resource } from '../domain/resource.ts';
import type { Coordination } from './coordination.ts';
import type { Lease } from './lease-record.ts';
import type { LeaseTable } from './lease-table.ts';
import { leaseEnded, leaseShared, staleToken } from './lock-refusals.ts';

export interface PinnableDeps {
  readonly table: LeaseTable;
  readonly coordination: Coordination;
  /** R28: whether a write under a lease that was held before contact was lost may still go on. */
  readonly finishesHeld: (volume: string) => boolean;
}

type HeldExclusively = Lease & { readonly told: NonNullable<Lease['told']> };

/** Which lease may write with a token, at this very moment (I1, R12). */
export class Pinnable {
  readonly #deps: PinnableDeps;

  constructor(deps: PinnableDeps) {
    this.#deps = deps;
  }

  /** Throws 503 while the coordinator is not in contact, 412 when the lease of `token` may not write here now. */
  lease(resource: Resource, token: FencingToken): HeldExclusively {
    const lease = this.#deps.table.liveByToken(token);
    const mark = this.#deps.coordination.coordinator.look(resource.key)?.mark ?? null;
    if (lease === null || !isTold(lease) || !lease.covers(resource.key) || !lease.open || lease.phase !== 'held') throw this.#notHeld(token, mark);
    if (lease.told.mode !== 'exclusive' || lease.downgrade !== null) throw leaseShared(token);
    if (mark !== token) throw staleToken(token);
    const refusal = this.#deps.coordination.refusal();
    if (refusal !== null && !this.#finishes(lease, resource, refusal)) throw refusal;
    return lease;
  }

  /** Whether a write under `token` goes on in spite of `refusal`. */
  mayFinish(resource: Resource, token: FencingToken, refusal: GatewayError): boolean {
    const lease = this.#deps.table.liveByToken(token);
    return lease !== null && this.#finishes(lease, resource, refusal);
  }

  /** A lease that was told held before contact was lost; a token-less write has none. After LOST there is nothing to finish. */
  #finishes(lease: Lease, { volume }: Resource, refusal: GatewayError): boolean {
    return refusal.code === 'coordinator_suspended' && lease.terms.session !== null && this.#deps.finishesHeld(volume);
  }

  #notHeld(token: FencingToken, mark: FencingToken | null): GatewayError {
    if (mark !== null && mark > token) return staleToken(token);
    return leaseEnded((this.#deps.table.liveByToken(token) ?? this.#deps.table.endedByToken(token))?.decided ?? null);
  }
}

function isTold(lease: Lease): lease is HeldExclusively {
  return lease.told !== null;
}
