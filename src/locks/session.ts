import { LIMITS } from '../domain/limits.ts';
import type { Timed } from './deadlines.ts';
import type { Lease } from './lease-record.ts';

export interface SessionTerms {
  readonly sessionId: string;
  readonly sessionRef: string;
  readonly principal: string;
  readonly clientId: string | null;
  /** At first; that of a session that a lease made changes with the lease's. */
  readonly ttlMs: number;
  readonly createdAt: string;
  /** Made for a lease that named none: renewals of its leases keep it alive, and it ends with the last of them. */
  readonly implied: boolean;
}

/** One client's liveness. One heartbeat renews all its leases, because they count from whichever renewal came last. */
export class Session implements Timed {
  readonly kind = 'session';
  readonly terms: SessionTerms;
  /** Its place in the list of all sessions. */
  readonly place: number;
  renewedMs: number;
  ttlMs: number;
  heapIndex = -1;
  dueMs = 0;
  ended = false;
  /** In the journal, or on its way there. */
  stored = false;
  /** Its end goes with that of its last lease into the journal. */
  endCarried = false;
  /** Came back from the journal and has not been heard of since the restart. */
  returning = false;
  /** When it is let in again, once it was told to wait for that. */
  turnMs: number | null = null;
  readonly leases = new Set<Lease>();
  /** The live lease over each resource: what makes acquiring again re-entrant. */
  readonly byKey = new Map<string, Lease>();
  /** Leases that have ended, while the journal does not have it. */
  readonly untold = new Set<Lease>();
  /** Leases whose end without the client's doing is decided, and may not be told yet. */
  readonly losing = new Set<Lease>();
  /** Leases that ended without the client's doing, for the next heartbeats. */
  #lost: { readonly leaseId: string; readonly atMs: number }[] = [];

  constructor(terms: SessionTerms, place: number, nowMs: number) {
    this.terms = terms;
    this.place = place;
    this.renewedMs = nowMs;
    this.ttlMs = terms.ttlMs;
  }

  /** All whose ends must be told before its own. */
  get notYetOver(): readonly Lease[] {
    return [...this.leases, ...this.untold];
  }

  /** Nothing keeps it any more that a lease made, this one or another: not even a wait. */
  isOverWith(lease: Lease): boolean {
    return this.terms.implied && this.leases.size === (this.leases.has(lease) ? 1 : 0);
  }

  get deadlineMs(): number {
    return this.renewedMs + this.ttlMs;
  }

  noteLost(leaseId: string, nowMs: number): void {
    this.#lost.push({ leaseId, atMs: nowMs });
    if (this.#lost.length > LIMITS.lostPerSessionMax) this.#lost.shift();
  }

  /** Told again by every heartbeat for as long as an ended lease is known: an answer may not have arrived. */
  lostSince(nowMs: number): string[] {
    this.#lost = this.#lost.filter(({ atMs }) => nowMs - atMs <= LIMITS.leaseEndedKeptMs);
    return this.#lost.map(({ leaseId }) => leaseId);
  }
}
