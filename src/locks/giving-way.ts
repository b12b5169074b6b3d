import { cycleMembers, type DeadlockStep } from '../domain/deadlock.ts';
import { asGatewayError, type GatewayError, refuse } from '../domain/errors.ts';
import type { Coordinator } from './coordinator.ts';
import type { EventRing } from './event-ring.ts';
import type { LeaseLedger } from './lease-ledger.ts';
import type { Lease } from './lease-record.ts';
import { recordUpgradeOver, upgradeOver } from './upgrade-ends.ts';

export interface GivingWayDeps {
  readonly coordinator: Coordinator<Lease>;
  readonly ledger: LeaseLedger;
  readonly events: EventRing;
}

/** What costs an upgrade, not the lease: a deadlock (R19), a decision like every other, durable before anybody is told (I4); and its longest wait. */
export class GivingWay {
  readonly #deps: GivingWayDeps;

  constructor(deps: GivingWayDeps) {
    this.#deps = deps;
  }

  /** Other readers were there for longer than whoever asked would wait. */
  waitedOut(lease: Lease): void {
    upgradeOver(this.#deps, lease, 'max_wait');
    void recordUpgradeOver(this.#deps.ledger, lease, null, 'max_wait');
    lease.failure = refuse('lock_not_acquired', 'Other readers still hold the resource.', { lease_ref: lease.leaseRef });
    lease.changed();
  }

  /** Resolves when it may be told. Never rejects: what the journal refuses is what the upgrade failed with. */
  async upgrade(lease: Lease, cycle: readonly DeadlockStep[]): Promise<void> {
    const { coordinator, ledger, events } = this.#deps;
    const durable = ledger.gaveWay(lease, cycle);
    lease.givingWay = true;
    coordinator.cancelUpgrade(lease);
    let failure: GatewayError;
    try {
      await durable;
      lease.upgradeAnnounced = false;
      events.lease('deadlock', lease, 'deadlock', cycle);
      failure = refuse('deadlock', 'The upgrade waits for somebody who waits for this session.', {
        lease_ref: lease.leaseRef,
        cycle: cycleMembers(cycle),
      });
    } catch (thrown) {
      failure = asGatewayError(thrown);
    }
    lease.givingWay = false;
    if (lease.phase !== 'held') return;
    events.upgradeOver(lease, failure.code);
    lease.failure = failure;
    if (failure.code === 'deadlock') lease.cycle = cycle;
    lease.changed();
  }
}
