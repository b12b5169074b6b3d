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
  /** Over, while the journal does not have it yet, by ref, by told token and by resource key: what nobody may be told. As many as were live. */
  readonly #untold = new Map<string, Lease>();
  readonly #untoldByToken = new Map<FencingToken, Lease>();
  readonly #untoldByKey = new Map<string, Set<Lease>>();
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

  /** Its end has taken effect, and may not be told before `told`. */
  keepUntold(lease: Lease): void {
    this.#untold.set(lease.leaseRef, lease);
    lease.terms.session?.untold.add(lease);
    if (lease.told === null) return;
    this.#untoldByToken.set(lease.told.token, lease);
    for (const { key } of lease.resources) this.#untoldByKey.set(key, (this.#untoldByKey.get(key) ?? new Set()).add(lease));
  }

  /** Its end is in the journal. */
  told(lease: Lease): void {
    this.#untold.delete(lease.leaseRef);
    lease.terms.session?.untold.delete(lease);
    if (lease.told === null) return;
    this.#untoldByToken.delete(lease.told.token);
    for (const { key } of lease.resources) {
      const there = this.#untoldByKey.get(key);
      there?.delete(lease);
      if (there?.size === 0) this.#untoldByKey.delete(key);
    }
  }

  isUntold({ leaseRef }: Lease): boolean {
    return this.#untold.has(leaseRef);
  }

  /** Whoever held the resource as far as others may know, although the end has taken effect. */
  untoldOn(resourceKey: string): readonly Lease[] {
    return [...(this.#untoldByKey.get(resourceKey) ?? [])];
  }

  untold(): Iterable<Lease> {
    return this.#untold.values();
  }

  /** All of them that were held. */
  untoldHolders(): Iterable<Lease> {
    return this.#untoldByToken.values();
  }

  /** Live, or ended within the hour. */
  byRef(leaseRef: string): Lease | null {
    return this.#live.get(leaseRef) ?? this.#untold.get(leaseRef) ?? this.#ended.byRef(leaseRef, this.#clock.monotonicMs());
  }

  liveByToken(token: FencingToken): Lease | null {
    return this.#byToken.get(token) ?? null;
  }

  endedByToken(token: FencingToken): Lease | null {
    return this.#untoldByToken.get(token) ?? this.#ended.byToken(token);
  }

  live(): Iterable<Lease> {
    return this.#live.values();
  }
}
