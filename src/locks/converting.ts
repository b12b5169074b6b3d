import { type Clock, rfc3339 } from '../domain/clock.ts';
import { GatewayError, refuse } from '../domain/errors.ts';
import type { LeaseMode } from '../domain/lease.ts';
import type { Caller } from '../domain/principal.ts';
import type { Coordinator } from './coordinator.ts';
import type { LeaseDesk } from './lease-desk.ts';
import type { LeaseLedger } from './lease-ledger.ts';
import type { Lease } from './lease-record.ts';
import { waitForChange } from './wait-for-change.ts';

export interface ConvertingDeps {
  readonly clock: Clock;
  readonly coordinator: Coordinator<Lease>;
  readonly desk: LeaseDesk;
  readonly ledger: LeaseLedger;
  /** Throws `coordinator_suspended`, `coordinator_unavailable`. */
  readonly assertContact: () => void;
}

/** Upgrade and downgrade of a held lease (R21). An upgrade is a grant with a new token; a downgrade keeps its number. */
export class Converting {
  readonly #deps: ConvertingDeps;
  #draining = false;

  constructor(deps: ConvertingDeps) {
    this.#deps = deps;
  }

  /** Downgrades, or begins to upgrade and waits only for what is already decided. The lease is held. */
  async convert(caller: Caller, lease: Lease, mode: LeaseMode, signal: AbortSignal): Promise<void> {
    this.#deps.assertContact();
    if (mode === 'shared') await this.#downgrade(caller, lease, signal);
    else if (lease.told?.mode === 'shared' || lease.downgrade !== null) {
      await this.#begin(lease, signal);
      await this.#keepWish(caller, lease);
    }
  }

  /** The upgrade that acquiring again in a stronger mode means: given up when it does not succeed within `waitMs`. */
  async upgradeWithin(lease: Lease, waitMs: number, signal: AbortSignal): Promise<void> {
    const { clock, desk } = this.#deps;
    const untilMs = clock.monotonicMs() + waitMs;
    await this.#begin(lease, signal);
    while (lease.upgrading) {
      const restMs = untilMs - clock.monotonicMs();
      const outcome =
        restMs <= 0 && lease.stands ? 'time' : await waitForChange(lease, clock, lease.stands ? restMs : Number.POSITIVE_INFINITY, signal);
      desk.now();
      if (outcome === 'changed' || !lease.upgrading) continue;
      this.#giveUp(lease, lease.terms.caller);
      if (outcome === 'aborted') throw signal.reason;
      throw notUpgraded(lease, 'Other readers still hold the resource.');
    }
    await this.#settled(lease, signal);
    // Given up by another request of the session, or over because the gateway stops: then it is not what was asked for.
    if (lease.phase === 'held' && lease.told?.mode === 'shared') throw notUpgraded(lease, 'The upgrade was given up.');
  }

  /** The gateway stops: upgrades that wait are over like all waits, and none begins. The journal has the wish, so the next start says so, too. */
  drain(leases: Iterable<Lease>): void {
    this.#draining = true;
    for (const lease of leases) {
      if (!lease.upgrading) continue;
      lease.upgrade = null;
      lease.upgradeLost = true;
      this.#deps.coordinator.cancelUpgrade(lease);
      lease.changed();
    }
  }

  async #begin(lease: Lease, signal: AbortSignal): Promise<void> {
    // What became of the one before is told first.
    if (lease.givingWay) return this.#settled(lease, signal);
    if (lease.upgrading) return;
    if (this.#draining) throw new GatewayError('draining', { detail: 'The gateway is going down.', retryAfterMs: 1_000 });
    const { clock, coordinator } = this.#deps;
    lease.forgetConversion();
    lease.upgrade = { askedMs: clock.monotonicMs(), askedAt: rfc3339(clock.wallMs()) };
    lease.stands = false;
    if (!coordinator.upgrade(lease)) {
      lease.upgrade = null;
      throw refuse('upgrade_conflict', 'Another reader is already becoming the writer: both would wait for each other.', {
        lease_ref: lease.leaseRef,
      });
    }
    await this.#settled(lease, signal);
  }

  async #downgrade(caller: Caller, lease: Lease, signal: AbortSignal): Promise<void> {
    if (lease.upgrading) this.#giveUp(lease, caller);
    // Whoever gives up an upgrade has no use for what became of it.
    lease.forgetConversion();
    if (lease.mode === 'exclusive') this.#deps.desk.downgrade(lease, caller);
    await this.#settled(lease, signal);
  }

  #giveUp(lease: Lease, caller: Caller | null): void {
    lease.upgrade = null;
    this.#deps.coordinator.cancelUpgrade(lease);
    // Should the journal refuse, a lease that comes back says that its upgrade is over: so it is.
    if (lease.upgradeKept) this.#kept(caller, lease).catch(() => undefined);
    lease.changed();
  }

  /** Before it is answered that the upgrade waits: a restart ends it like every wait, and who polls the lease then is to learn that. */
  async #keepWish(caller: Caller, lease: Lease): Promise<void> {
    if (!lease.upgrading || lease.upgradeKept) return;
    try {
      await this.#kept(caller, lease);
    } catch (thrown) {
      if (lease.upgrading) this.#giveUp(lease, caller);
      throw thrown;
    }
  }

  async #kept(caller: Caller | null, lease: Lease): Promise<void> {
    const { told, terms } = lease;
    if (told !== null && terms.session !== null) await this.#deps.ledger.kept(lease, terms.session, told, null, caller);
  }

  /** Until a decided conversion may be told; a failure is thrown once. */
  async #settled(lease: Lease, signal: AbortSignal): Promise<void> {
    while (lease.phase === 'held' && undecided(lease)) {
      if ((await waitForChange(lease, this.#deps.clock, Number.POSITIVE_INFINITY, signal)) === 'aborted') throw signal.reason;
    }
    const { failure } = lease;
    lease.forgetConversion();
    if (failure !== null) throw failure;
  }
}

function notUpgraded({ leaseRef }: Lease, detail: string): GatewayError {
  return refuse('lock_not_acquired', detail, { lease_ref: leaseRef });
}

/** The coordinator has not looked yet, or what it decided may not be told yet. */
function undecided(lease: Lease): boolean {
  if (lease.upgrading) return !lease.stands;
  return lease.givingWay || lease.downgrade !== null || lease.mode !== lease.told?.mode;
}
