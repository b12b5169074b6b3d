import type { Clock } from '../domain/clock.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import { Deadlines } from './deadlines.ts';
import { EndedLeases } from './ended-leases.ts';
import type { Lease } from './lease-record.ts';
import type { Session } from './session.ts';

/** Every lease by its ref and by its told token, and everything that ends by time. No rules: the desk has those. */
export class LeaseTable {
  readonly #clock: Clock;
  readonly #live = new Map<string, Lease>();
  readonly #byToken = new Map<FencingToken, Lease>();
  readonly #ended = new EndedLeases();
  readonly deadlines: Deadlines<Lease | Session>;

  /** @param wake called when something may be due. */
  constructor(clock: Clock, wake: () => void) {
    this.#clock = clock;
    this.deadlines = new Deadlines(clock, wake);
  }

  add(lease: Lease): void {
    this.#live.set(lease.leaseRef, lease);
    const session = lease.terms.session;
    if (session === null) return;
    session.leases.add(lease);
    for (const { key } of lease.resources) session.byKey.set(key, lease);
    this.deadlines.set(lease, lease.nextCheckMs);
  }

  /** The lease is over. It stays known for an hour when it was told to anybody. */
  remove(lease: Lease): void {
    lease.phase = 'over';
    this.#live.delete(lease.leaseRef);
    if (lease.told !== null) this.#byToken.delete(lease.told.token);
    this.deadlines.remove(lease);
    lease.terms.session?.leases.delete(lease);
    this.unkey(lease);
    const known = lease.told !== null || !lease.quiet;
    if (lease.terms.session !== null && known) this.#ended.add(lease, this.#clock.monotonicMs());
  }

  /** Acquiring again finds it no more. */
  unkey(lease: Lease): void {
    const byKey = lease.terms.session?.byKey;
    for (const { key } of lease.resources) if (byKey?.get(key) === lease) byKey.delete(key);
  }

  /** The grant may be told: mode and token are durable. */
  tell(lease: Lease, told: NonNullable<Lease['told']>): void {
    if (lease.told !== null) this.#byToken.delete(lease.told.token);
    lease.told = told;
    this.#byToken.set(told.token, lease);
  }

  /** Live, or ended within the hour. */
  byRef(leaseRef: string): Lease | null {
    return this.#live.get(leaseRef) ?? this.#ended.byRef(leaseRef, this.#clock.monotonicMs());
  }

  liveByToken(token: FencingToken): Lease | null {
    return this.#byToken.get(token) ?? null;
  }

  endedByToken(token: FencingToken): Lease | null {
    return this.#ended.byToken(token);
  }

  live(): Iterable<Lease> {
    return this.#live.values();
  }
}
