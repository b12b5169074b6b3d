import type { FencingToken } from '../domain/fencing-token.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Lease } from './lease-record.ts';

/** Leases that ended within the hour, by ref and by token; bounded, the oldest go first (the journal still knows those). */
export class EndedLeases {
  readonly #byRef = new Map<string, { readonly lease: Lease; readonly atMs: number }>();
  readonly #byToken = new Map<FencingToken, Lease>();

  add(lease: Lease, nowMs: number): void {
    this.#byRef.set(lease.leaseRef, { lease, atMs: nowMs });
    if (lease.told !== null) this.#byToken.set(lease.told.token, lease);
    for (const [ref, oldest] of this.#byRef) {
      if (this.#byRef.size <= LIMITS.endedLeasesMax && nowMs - oldest.atMs <= LIMITS.leaseEndedKeptMs) return;
      this.#byRef.delete(ref);
      if (oldest.lease.told !== null) this.#byToken.delete(oldest.lease.told.token);
    }
  }

  byRef(leaseRef: string, nowMs: number): Lease | null {
    const found = this.#byRef.get(leaseRef);
    return found === undefined || nowMs - found.atMs > LIMITS.leaseEndedKeptMs ? null : found.lease;
  }

  byToken(token: FencingToken): Lease | null {
    return this.#byToken.get(token) ?? null;
  }
}
