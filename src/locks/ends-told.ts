import type { Clock } from '../domain/clock.ts';
import { Later } from '../domain/later.ts';
import { LIMITS } from '../domain/limits.ts';
import type { EventRing } from './event-ring.ts';
import { firstOf } from './first-of.ts';
import type { LeaseLedger } from './lease-ledger.ts';
import type { Lease } from './lease-record.ts';
import type { LeaseTable } from './lease-table.ts';

export interface EndsToldDeps {
  readonly clock: Clock;
  readonly table: LeaseTable;
  readonly ledger: LeaseLedger;
  readonly events: EventRing;
}

/**
 * From an end that has taken effect to the one that may be told (I2): by an answer, an event, a refused write, a list. An end whose unit
 * the journal refused stays in effect, for nobody knows who has acted on it; it is tried again by whoever asks, and by itself, until the
 * journal has it.
 */
export class EndsTold {
  readonly #deps: EndsToldDeps;
  readonly #refused = new Set<Lease>();
  /** Their ends are in the journal; the record of one may still be on its way there. */
  readonly #toldOf = new WeakSet<Lease>();
  readonly #retry: Later;

  constructor(deps: EndsToldDeps) {
    this.#deps = deps;
    this.#retry = new Later(deps.clock, LIMITS.endRetryMs, () => void this.#tryAll());
  }

  /** The units go to the journal within this call. */
  begin(leases: readonly Lease[]): void {
    for (const lease of leases) if (lease.terms.session !== null && !this.#toldOf.has(lease)) this.#deps.table.keepUntold(lease);
    this.#deps.ledger.ended(leases, (lease) => this.#mayBeTold(lease));
    for (const lease of leases) void this.#tell(lease);
  }

  /** Resolves when the end may be told; rejects when the journal refused it, and tries again at the next call. Throws `outcome_unknown` of a grant in doubt. */
  async told(lease: Lease): Promise<void> {
    const asksAgain = lease.phase === 'over';
    while (lease.phase !== 'over') await lease.nextChange();
    const { decided, told, failure } = lease;
    // Over here, while the next start may find its grant.
    if (told === null && failure?.code === 'outcome_unknown') throw failure;
    if (asksAgain && this.#refused.has(lease)) this.#again([lease]);
    await decided?.durable;
  }

  /** Resolves when the journal has taken or refused each of them once more. */
  async lastTry(): Promise<void> {
    await this.#tryAll();
    await Promise.allSettled([...this.#deps.table.untold()].map(({ decided }) => decided?.durable));
  }

  stop(): void {
    this.#retry.stop();
  }

  async #tell(lease: Lease): Promise<void> {
    const { decided } = lease;
    if (decided === null) return;
    try {
      await decided.durable;
    } catch {
      this.#refused.add(lease);
      this.#retry.ask();
      lease.changed();
      return;
    }
    this.#mayBeTold(lease);
    lease.changed();
  }

  /** With its own unit, or with that of the next grant, which carries the end; its record may still be owed then. */
  #mayBeTold(lease: Lease): void {
    const { table, clock, events } = this.#deps;
    const { session, leaseId } = lease.terms;
    if (session === null || lease.decided === null || !table.isUntold(lease)) return;
    table.told(lease);
    this.#toldOf.add(lease);
    if (session.losing.delete(lease)) session.noteLost(leaseId, clock.monotonicMs());
    events.ended(lease, lease.decided.end);
  }

  #again(leases: readonly Lease[]): void {
    for (const lease of leases) this.#refused.delete(lease);
    this.begin(leases);
  }

  /** One unit after the other, for as long as the journal takes them. */
  async #tryAll(): Promise<void> {
    while (this.#refused.size > 0 && !this.#retry.stopped) {
      const unit = firstOf(this.#refused, LIMITS.endsPerUnitMax);
      this.#again(unit);
      try {
        await unit[0]?.decided?.durable;
      } catch {
        return;
      }
    }
  }
}
