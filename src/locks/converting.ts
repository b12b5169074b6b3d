import { type Clock, rfc3339 } from '../domain/clock.ts';
import { GatewayError, refuse } from '../domain/errors.ts';
import type { LeaseMode } from '../domain/lease.ts';
import type { Caller } from '../domain/principal.ts';
import type { Coordinator } from './coordinator.ts';
import type { EventRing } from './event-ring.ts';
import type { LeaseDesk } from './lease-desk.ts';
import type { LeaseLedger } from './lease-ledger.ts';
import type { Lease } from './lease-record.ts';
import type { LeaseTable } from './lease-table.ts';
import { recordUpgradeOver, upgradeOver } from './upgrade-ends.ts';
import { waitForChange } from './wait-for-change.ts';

export interface ConvertingDeps {
  readonly clock: Clock;
  readonly coordinator: Coordinator<Lease>;
  readonly desk: LeaseDesk;
  readonly table: LeaseTable;
  readonly ledger: LeaseLedger;
  readonly events: EventRing;
  /** Throws `coordinator_suspended`, `coordinator_unavailable`. */
  readonly assertContact: () => void;
}

/** Whoever converted and was answered that the upgrade waits, and polls the lease: asks until it is over or given up by name. */
const POLL = {};

/** How long a request asks for an upgrade, ms. */
export interface UpgradeWait {
  /** `null`: for as long as it stays open, and then no more. */
  readonly waitMs: number | null;
  /** Ends the whole wait. */
  readonly maxWaitMs: number | null;
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
      await this.#asking(caller, lease, async () => {
        await this.#begin(lease, { quiet: false, untilMs: Number.POSITIVE_INFINITY }, signal);
        await this.#keepWish(caller, lease);
      });
    }
  }

  /**
   * The upgrade that acquiring again with a hold in a stronger mode means. Whoever is answered that it waits goes on asking with its hold, as a
   * waiter keeps its place; nobody asks for it after a try, or after a request that is the whole wait, unless others of the session do.
   * @returns whether it still waits.
   */
  upgradeWithin(caller: Caller, lease: Lease, holdId: string, { waitMs, maxWaitMs }: UpgradeWait, signal: AbortSignal): Promise<boolean> {
    return this.#asking(caller, lease, async () => {
      const nowMs = this.#deps.clock.monotonicMs();
      const untilMs = waitMs === 0 ? nowMs : nowMs + (maxWaitMs ?? Number.POSITIVE_INFINITY);
      const answerMs = nowMs + (waitMs ?? Number.POSITIVE_INFINITY);
      await this.#begin(lease, { quiet: waitMs === 0, untilMs }, signal);
      for (;;) {
        if (await this.#stillUpgrading(lease, holdId, Math.min(answerMs, untilMs), signal)) {
          // A hold that is known to wait for longer, by an earlier answer, waits on, whatever a repeated request says.
          if (untilMs <= answerMs && !lease.upgradeAskers.has(holdId)) throw notUpgraded(lease, 'Other readers still hold the resource.');
          await this.#keepHoldsWish(caller, lease, holdId);
          if (lease.upgrading) return true;
        }
        await this.#settled(lease, signal);
        // Let in, and put off because the journal took no grant: it waits again.
        if (!lease.upgrading) break;
      }
      // Given up by another request of the session, or over because the gateway stops: then it is not what was asked for.
      if (lease.phase === 'held' && lease.told?.mode === 'shared') throw notUpgraded(lease, 'The upgrade was given up.');
      return false;
    });
  }

  /** A hold came off: with it goes the upgrade that it asked for, unless others do. */
  holdGone(caller: Caller, lease: Lease, holdId: string): void {
    if (lease.upgradeAskers.delete(holdId) && lease.upgradeAskers.size === 0 && lease.upgrading) this.#giveUp(lease, caller);
  }

  /** The gateway stops: upgrades that wait are over like all waits, and none begins. The journal has the wish, so the next start says so, too. */
  drain(leases: Iterable<Lease>): void {
    this.#draining = true;
    for (const lease of leases) {
      if (!lease.upgrading) continue;
      lease.upgradeLost = true;
      upgradeOver(this.#deps, lease, 'upgrade_lost');
      lease.changed();
    }
  }

  /** An upgrade lasts as long as anybody asks for it, and what became of it is known until the last of them was told. */
  async #asking<T>(caller: Caller | null, lease: Lease, wait: () => Promise<T>): Promise<T> {
    const asker = {};
    lease.upgradeAskers.add(asker);
    try {
      return await wait();
    } finally {
      lease.upgradeAskers.delete(asker);
      if (lease.upgradeAskers.size === 0) {
        if (lease.upgrading) this.#giveUp(lease, caller);
        lease.forgetFailure();
      }
    }
  }

  /** Waits while it waits. Resolves with true when `untilMs` is over before. */
  async #stillUpgrading(lease: Lease, holdId: string, untilMs: number, signal: AbortSignal): Promise<boolean> {
    const { clock, desk } = this.#deps;
    while (lease.upgrading) {
      const restMs = untilMs - clock.monotonicMs();
      const outcome =
        restMs <= 0 && lease.stands ? 'time' : await waitForChange(lease, clock, lease.stands ? restMs : Number.POSITIVE_INFINITY, signal);
      desk.now();
      if (!lease.upgrading) break;
      if (!lease.holds.has(holdId)) throw notUpgraded(lease, 'The hold was released.');
      if (outcome === 'aborted') throw signal.reason;
      if (outcome === 'time') return true;
    }
    return false;
  }

  /** @param asked `quiet`: who only tries stands in no line that others are told of, as with a lease. `untilMs`: of several the last. */
  async #begin(lease: Lease, { quiet, untilMs }: { readonly quiet: boolean; readonly untilMs: number }, signal: AbortSignal): Promise<void> {
    const { upgrade } = lease;
    if (upgrade !== null) {
      if (!quiet) upgrade.quiet = false;
      upgrade.untilMs = Math.max(upgrade.untilMs, untilMs);
      this.#deps.table.deadlines.set(lease, lease.nextCheckMs);
      if (lease.stands) this.#deps.desk.waits(lease);
      return;
    }
    // What became of the one before is told first; one that is decided is the one that is asked for.
    if (lease.givingWay || lease.becomesExclusive) return this.#settled(lease, signal);
    if (this.#draining) throw new GatewayError('draining', { detail: 'The gateway is going down.', retryAfterMs: 1_000 });
    const { clock, coordinator, table } = this.#deps;
    lease.forgetConversion();
    for (const asker of lease.upgradeAskers) if (asker === POLL || typeof asker === 'string') lease.upgradeAskers.delete(asker);
    lease.upgrade = { askedMs: clock.monotonicMs(), askedAt: rfc3339(clock.wallMs()), quiet, untilMs };
    lease.stands = false;
    if (!coordinator.upgrade(lease)) {
      lease.upgrade = null;
      throw refuse('upgrade_conflict', 'Another reader is already becoming the writer: both would wait for each other.', {
        lease_ref: lease.leaseRef,
      });
    }
    await this.#settled(lease, signal);
    if (lease.upgrading && lease.open) table.deadlines.set(lease, lease.nextCheckMs);
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
    lease.upgradeAskers.delete(POLL);
    upgradeOver(this.#deps, lease, 'upgrade_given_up');
    void recordUpgradeOver(this.#deps.ledger, lease, caller, 'upgrade_given_up');
    lease.changed();
  }

  /** Before it is answered that the upgrade waits: a restart ends it like every wait, and who polls the lease then is to learn that. */
  async #keepWish(caller: Caller, lease: Lease): Promise<void> {
    if (!lease.upgrading) return;
    if (!lease.upgradeKept) await this.#kept(caller, lease);
    if (lease.upgrading) lease.upgradeAskers.add(POLL);
  }

  /** The same for a hold, which counts from that answer on. */
  async #keepHoldsWish(caller: Caller, lease: Lease, holdId: string): Promise<void> {
    await this.#kept(caller, lease);
    if (lease.upgrading && lease.holds.has(holdId)) lease.upgradeAskers.add(holdId);
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
