import { type Clock, rfc3339 } from '../domain/clock.ts';
import { GatewayError, refuse } from '../domain/errors.ts';
import type { LeaseMode } from '../domain/lease.ts';
import type { Caller } from '../domain/principal.ts';
import type { Coordinator } from './coordinator.ts';
import type { EventRing } from './event-ring.ts';
import type { LeaseDesk } from './lease-desk.ts';
import type { LeaseLedger } from './lease-ledger.ts';
import type { Lease } from './lease-record.ts';
import { waitForChange } from './wait-for-change.ts';

export interface ConvertingDeps {
  readonly clock: Clock;
  readonly coordinator: Coordinator<Lease>;
  readonly desk: LeaseDesk;
  readonly ledger: LeaseLedger;
  readonly events: EventRing;
  /** Throws `coordinator_suspended`, `coordinator_unavailable`. */
  readonly assertContact: () => void;
}

/** Whoever was answered that the upgrade waits, and polls the lease: asks until it is over or given up by name. */
const POLL = {};

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
      await this.#asking(caller, lease, async () => {
        await this.#begin(lease, 'waits', signal);
        await this.#keepWish(caller, lease);
      });
    }
  }

  /** The upgrade that acquiring again with a hold in a stronger mode means: nobody asks for it after `waitMs`, unless others of the session do. */
  upgradeWithin(lease: Lease, holdId: string, waitMs: number, signal: AbortSignal): Promise<void> {
    return this.#asking(lease.terms.caller, lease, async () => {
      const untilMs = this.#deps.clock.monotonicMs() + waitMs;
      await this.#begin(lease, waitMs > 0 ? 'waits' : 'tries', signal);
      await this.#whileUpgrading(lease, holdId, untilMs, signal);
      await this.#settled(lease, signal);
      // Given up by another request of the session, or over because the gateway stops: then it is not what was asked for.
      if (lease.phase === 'held' && lease.told?.mode === 'shared') throw notUpgraded(lease, 'The upgrade was given up.');
    });
  }

  /** The gateway stops: upgrades that wait are over like all waits, and none begins. The journal has the wish, so the next start says so, too. */
  drain(leases: Iterable<Lease>): void {
    this.#draining = true;
    for (const lease of leases) {
      if (!lease.upgrading) continue;
      lease.upgrade = null;
      lease.upgradeLost = true;
      this.#deps.coordinator.cancelUpgrade(lease);
      this.#deps.events.upgradeOver(lease, 'upgrade_lost');
      lease.changed();
    }
  }

  /** An upgrade lasts as long as anybody asks for it, and what became of it is known until the last of them was told. */
  async #asking(caller: Caller | null, lease: Lease, wait: () => Promise<void>): Promise<void> {
    const asker = {};
    lease.upgradeAskers.add(asker);
    try {
      await wait();
    } finally {
      lease.upgradeAskers.delete(asker);
      if (lease.upgradeAskers.size === 0) {
        if (lease.upgrading) this.#giveUp(lease, caller);
        lease.forgetFailure();
      }
    }
  }

  async #whileUpgrading(lease: Lease, holdId: string, untilMs: number, signal: AbortSignal): Promise<void> {
    const { clock, desk } = this.#deps;
    while (lease.upgrading) {
      const restMs = untilMs - clock.monotonicMs();
      const outcome =
        restMs <= 0 && lease.stands ? 'time' : await waitForChange(lease, clock, lease.stands ? restMs : Number.POSITIVE_INFINITY, signal);
      desk.now();
      if (!lease.upgrading) continue;
      if (!lease.holds.has(holdId)) throw notUpgraded(lease, 'The hold was released.');
      if (outcome === 'aborted') throw signal.reason;
      if (outcome === 'time') throw notUpgraded(lease, 'Other readers still hold the resource.');
    }
  }

  /** @param asks who only tries stands in no line that others are told of, as with a lease. */
  async #begin(lease: Lease, asks: 'waits' | 'tries', signal: AbortSignal): Promise<void> {
    // What became of the one before is told first; one that is decided is the one that is asked for.
    if (lease.givingWay || lease.becomesExclusive) return this.#settled(lease, signal);
    const { upgrade } = lease;
    if (upgrade !== null) {
      if (asks === 'waits') upgrade.quiet = false;
      if (lease.stands) this.#deps.desk.waits(lease);
      return;
    }
    if (this.#draining) throw new GatewayError('draining', { detail: 'The gateway is going down.', retryAfterMs: 1_000 });
    const { clock, coordinator } = this.#deps;
    lease.forgetConversion();
    lease.upgradeAskers.delete(POLL);
    lease.upgrade = { askedMs: clock.monotonicMs(), askedAt: rfc3339(clock.wallMs()), quiet: asks === 'tries' };
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
    try {
      await this.#settled(lease, signal);
    } finally {
      lease.forgetConversion();
    }
  }

  #giveUp(lease: Lease, caller: Caller | null): void {
    lease.upgrade = null;
    lease.upgradeAskers.delete(POLL);
    this.#deps.coordinator.cancelUpgrade(lease);
    this.#deps.events.upgradeOver(lease, 'upgrade_given_up');
    // Should the journal refuse, a lease that comes back says that its upgrade is over: so it is.
    if (lease.upgradeKept) this.#kept(caller, lease).catch(() => undefined);
    lease.changed();
  }

  /** Before it is answered that the upgrade waits: a restart ends it like every wait, and who polls the lease then is to learn that. */
  async #keepWish(caller: Caller, lease: Lease): Promise<void> {
    if (!lease.upgrading) return;
    if (!lease.upgradeKept) await this.#kept(caller, lease);
    if (lease.upgrading) lease.upgradeAskers.add(POLL);
  }

  async #kept(caller: Caller | null, lease: Lease): Promise<void> {
    const { told, terms } = lease;
    if (told !== null && terms.session !== null) await this.#deps.ledger.kept(lease, terms.session, told, null, caller);
  }

  /** Until a decided conversion may be told; its failure is thrown. */
  async #settled(lease: Lease, signal: AbortSignal): Promise<void> {
    while (lease.phase === 'held' && undecided(lease)) {
      if ((await waitForChange(lease, this.#deps.clock, Number.POSITIVE_INFINITY, signal)) === 'aborted') throw signal.reason;
    }
    if (lease.failure !== null) throw lease.failure;
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
