import { auditDetail } from '../domain/audit-record.ts';
import type { Caller } from '../domain/principal.ts';
import type { Coordinator } from './coordinator.ts';
import type { EventRing } from './event-ring.ts';
import type { LeaseLedger } from './lease-ledger.ts';
import type { Lease } from './lease-record.ts';

/** Why a lease asks no more to become exclusive, and is held as it was. */
export type UpgradeOver = 'upgrade_given_up' | 'upgrade_lost' | 'max_wait';

export interface UpgradeEndsDeps {
  readonly coordinator: Coordinator<Lease>;
  readonly events: EventRing;
}

/** An upgrade that waits is over without its grant, also one that was let in while the journal did not take it. Watches are told; whoever waits with it is, by `changed`. */
export function upgradeOver({ coordinator, events }: UpgradeEndsDeps, lease: Lease, reason: UpgradeOver): void {
  lease.upgrade = null;
  if (lease.grantPutOff) {
    lease.grantPutOff = false;
    coordinator.downgrade(lease);
  } else {
    coordinator.cancelUpgrade(lease);
  }
  events.upgradeOver(lease, reason);
}

/**
 * The same in the journal, of an upgrade that somebody was told waits: nobody else has a record of its end. Never rejects: should the journal
 * refuse, a lease that comes back says that its upgrade is over, and so it is.
 */
export async function recordUpgradeOver(ledger: LeaseLedger, lease: Lease, caller: Caller | null, reason: UpgradeOver): Promise<void> {
  const { told, terms, upgradeKept } = lease;
  if (!upgradeKept || told === null || terms.session === null) return;
  const about = { outcome: 'aborted', detail: auditDetail(reason) } as const;
  await ledger.kept(lease, terms.session, told, 'lease_convert', caller, about).catch(() => undefined);
}
