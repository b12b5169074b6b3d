import { type Clock, rfc3339 } from '../domain/clock.ts';
import { asGatewayError, type ErrorCode, type GatewayError, refuse } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import { Later } from '../domain/later.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Resource } from '../domain/resource.ts';
import type { TokenCeilings } from '../domain/token-ceilings.ts';
import type { Coordinator } from './coordinator.ts';
import type { EventRing } from './event-ring.ts';
import { firstOf } from './first-of.ts';
import type { LeaseLedger } from './lease-ledger.ts';
import type { Lease } from './lease-record.ts';
import type { LeaseTable } from './lease-table.ts';
import { grantInDoubt } from './lock-refusals.ts';

export interface GrantingDeps {
  readonly clock: Clock;
  readonly coordinator: Coordinator<Lease>;
  readonly table: LeaseTable;
  readonly ledger: LeaseLedger;
  readonly ceilings: TokenCeilings;
  readonly events: EventRing;
}

/** Nothing was changed, and the same may go through later. In the grace of a break it is not acquired yet. */
const PASSING: ReadonlySet<ErrorCode> = new Set(['journal_unavailable', 'overloaded', 'volume_unavailable', 'lock_not_acquired']);

/**
 * From the decision to the answer (I2): the resource is taken and its mark raised, but nobody is told before the volume's ceiling
 * covers the token and the journal has the grant. While that is under way the lease is pinned, so an end waits for it.
 */
export class Granting {
  readonly #deps: GrantingDeps;
  /** Grants to waiters that were refused, oldest first. */
  readonly #putOff = new Set<() => void>();
  readonly #retry: Later;

  constructor(deps: GrantingDeps) {
    this.#deps = deps;
    this.#retry = new Later(deps.clock, LIMITS.grantRetryMs, () => this.#retrySome());
  }

  /**
   * Resolves when the lease is held, or over. A refused grant costs whoever is known to stand in line nothing: it is first there, keeps
   * everybody else out, and is tried again for as long as it waits. A new request is told, and its place given up: it did not happen,
   * or only the next start knows (`failure`). So it is with who gets the last of several names in the grace of a break of another one.
   * @returns why a waiter gets what it was let in for never.
   */
  async grant(lease: Lease, token: FencingToken): Promise<GatewayError | null> {
    for (;;) {
      const error = await this.#try(lease, token);
      if (error === null) return null;
      const known = lease.waitTold || (lease.announced && !lease.quiet) || (lease.terms.session === null && error.code === 'lock_not_acquired');
      if (!known || error.code === 'outcome_unknown') {
        this.#failed(lease, error);
        return null;
      }
      if (!PASSING.has(error.code)) return error;
      lease.phase = 'waiting';
      lease.grantPutOff = true;
      lease.changed();
      if (lease.open) await this.#later();
      lease.grantPutOff = false;
      if (!lease.open) return null;
    }
  }

  /** Grants that were put off are not tried any more. */
  stop(): void {
    this.#retry.stop();
  }

  /** At a bounded rate: so many leases that were put off are tried each time. */
  #later(): Promise<void> {
    return new Promise((resolve) => {
      this.#putOff.add(resolve);
      this.#retry.ask();
    });
  }

  #retrySome(): void {
    for (const again of firstOf(this.#putOff, LIMITS.grantRetriesMax)) {
      this.#putOff.delete(again);
      again();
    }
    if (this.#putOff.size > 0) this.#retry.ask();
  }

  /** @returns why it is not held. */
  async #try(lease: Lease, token: FencingToken): Promise<GatewayError | null> {
    const { clock, coordinator, table, ledger, events } = this.#deps;
    lease.phase = 'granting';
    lease.pins += 1;
    try {
      this.#assertNoGrace(lease);
      await this.reserve(lease.resources, token);
      lease.grantedAt = rfc3339(clock.wallMs());
      if (lease.terms.session !== null) await ledger.granted(lease, token, 'lease_grant');
    } catch (thrown) {
      lease.pins -= 1;
      lease.grantedAt = null;
      return asGatewayError(thrown);
    }
    lease.pins -= 1;
    lease.phase = 'held';
    table.tell(lease, { mode: lease.mode, token });
    coordinator.tellMark(lease, token);
    lease.grantedMs = clock.monotonicMs();
    lease.renew(lease.grantedMs);
    if (lease.terms.session === null) return null;
    if (lease.decided === null) table.deadlines.set(lease, lease.nextCheckMs);
    events.lease('granted', lease, null);
    return null;
  }

  /**
   * A shared lease becomes exclusive with a new token; one that never does stays what it was. A refused grant costs whoever stands in line
   * nothing, as with a lease that waits.
   */
  async upgrade(lease: Lease, token: FencingToken): Promise<null> {
    const wish = lease.upgrade;
    const { coordinator, events } = this.#deps;
    for (;;) {
      const error = await this.#tryUpgrade(lease, token);
      if (error === null) return null;
      const inLine = wish !== null && !wish.quiet && lease.upgradeAnnounced && lease.open && lease.downgrade === null;
      if (!inLine || !PASSING.has(error.code)) {
        lease.failure = error;
        events.upgradeOver(lease, error.code);
        coordinator.downgrade(lease);
        return null;
      }
      lease.upgrade = wish;
      lease.grantPutOff = true;
      lease.changed();
      await this.#later();
      // Given up meanwhile, or over with the lease.
      if (lease.upgrade !== wish) return null;
      lease.grantPutOff = false;
      lease.upgrade = null;
    }
  }

  /** @returns why it is not exclusive. */
  async #tryUpgrade(lease: Lease, token: FencingToken): Promise<GatewayError | null> {
    const { coordinator, table, ledger, events } = this.#deps;
    const kept = lease.upgradeKept;
    lease.pins += 1;
    try {
      this.#assertNoGrace(lease);
      await this.reserve(lease.resources, token);
      await ledger.granted(lease, token, 'lease_convert');
      table.tell(lease, { mode: 'exclusive', token });
      coordinator.tellMark(lease, token);
      events.upgraded(lease);
      return null;
    } catch (thrown) {
      lease.upgradeKept = kept;
      return asGatewayError(thrown);
    } finally {
      lease.pins -= 1;
    }
  }

  /**
   * An exclusive lease becomes shared in place, once that is durable: when the journal refuses, it stays what it was. Readers in line
   * come in afterwards.
   */
  async downgrade(lease: Lease): Promise<void> {
    const { coordinator, table, ledger, events } = this.#deps;
    const { session } = lease.terms;
    const { told, downgrade } = lease;
    if (session === null || told === null || downgrade === null) return;
    lease.pins += 1;
    const shared = { mode: 'shared', token: told.token } as const;
    try {
      await ledger.kept(lease, session, shared, 'lease_convert', downgrade.caller);
      table.tell(lease, shared);
      events.lease('converted', lease, null);
      coordinator.downgrade(lease);
    } catch (thrown) {
      lease.failure = asGatewayError(thrown);
    } finally {
      lease.downgrade = null;
      lease.pins -= 1;
    }
  }

  /** Resolves when the token may be used on every volume it is for. */
  async reserve(resources: readonly Resource[], token: FencingToken): Promise<void> {
    const volumes = new Set(resources.map(({ volume }) => volume));
    await Promise.all([...volumes].map((volume) => this.#deps.ceilings.reserve(volume, token)));
  }

  /** An administrator breaks one of its names: nobody new is granted there, the lease that is broken included. */
  #assertNoGrace({ resources, leaseRef }: Lease): void {
    const closed = resources.find(({ key }) => this.#deps.coordinator.look(key)?.closed === true);
    if (closed === undefined) return;
    throw refuse('lock_not_acquired', 'An administrator is breaking the lock.', { resource: closed.name, lease_ref: leaseRef });
  }

  #failed(lease: Lease, error: GatewayError): void {
    lease.failure = error.code === 'outcome_unknown' ? grantInDoubt(lease.terms.leaseId, error) : error;
    // Only the journal knows what became of such a lease, and is to be asked.
    if (error.code === 'outcome_unknown') lease.quiet = true;
    this.#deps.table.remove(lease);
    this.#deps.coordinator.leave(lease, 0);
  }
}
