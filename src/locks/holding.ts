import { holdDetail } from '../domain/audit-record.ts';
import type { Caller } from '../domain/principal.ts';
import type { Converting } from './converting.ts';
import { endKinds } from './end-kinds.ts';
import type { LeaseDesk } from './lease-desk.ts';
import type { LeaseLedger } from './lease-ledger.ts';
import type { Lease } from './lease-record.ts';

export interface HoldingDeps {
  readonly desk: LeaseDesk;
  readonly ledger: LeaseLedger;
  readonly converting: Pick<Converting, 'holdGone'>;
}

/** How the holds of a lease come off, one by one, while it waits as well as while it is held (R4). */
export class Holding {
  readonly #deps: HoldingDeps;
  /** Changes of holds that are not in the journal yet, by lease and hold: whoever repeats one is answered no sooner than the first. */
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(deps: HoldingDeps) {
    this.#deps = deps;
  }

  /**
   * Takes the named hold off, or any. `null` when it is the last: then the lease is to be ended. Otherwise the lease goes on, also when the
   * named hold was gone already (a retry).
   */
  takeOff(caller: Caller, lease: Lease, holdId: string | null): Promise<void> | null {
    const taken = holdId ?? [...lease.holds].at(-1);
    if (taken !== undefined && !lease.holds.has(taken)) return this.#earlier(lease, taken);
    if (taken === undefined || lease.holds.size === 1) return null;
    lease.holds.delete(taken);
    this.#deps.converting.holdGone(caller, lease, taken);
    // Whoever waits with it is answered.
    if (lease.phase !== 'held' || lease.upgrading) lease.changed();
    return this.#begun(lease, taken, this.#takenOff(caller, lease, taken));
  }

  /** Another hold of a lease that is held; `known`: a request that is repeated. Rejects when the journal refuses, and the lease goes on as it was. */
  add(caller: Caller, lease: Lease, holdId: string, known: boolean): Promise<void> {
    const { session } = lease.terms;
    if (known) return this.#earlier(lease, holdId);
    if (session === null || lease.told === null) return Promise.resolve();
    const granted = this.#deps.ledger.kept(lease, session, lease.told, 'lease_grant', caller).then(() => lease.holds.granted(holdId));
    return this.#begun(lease, holdId, granted);
  }

  /** A request is over without an answer: nobody knows of its hold, and a lease that nobody knows of ends. */
  unanswered(caller: Caller, lease: Lease, holdId: string): void {
    const granted = lease.holds.wasGranted(holdId);
    if (lease.holds.unanswered(holdId)) this.#unknown(caller, lease, { holdId, granted });
  }

  /** The same for one whose answer did not get to its client. */
  undelivered(caller: Caller, lease: Lease, holdId: string): void {
    if (lease.open && lease.holds.undelivered(holdId)) this.#unknown(caller, lease, { holdId, granted: true });
  }

  /** @param hold `granted`: there is a record of it, and will be one of its end. */
  #unknown(caller: Caller, lease: Lease, { holdId, granted }: { readonly holdId: string; readonly granted: boolean }): void {
    this.#deps.converting.holdGone(caller, lease, holdId);
    if (lease.holds.size === 0) this.#deps.desk.end(lease, endKinds.cancelled(caller));
    // Should the journal refuse now, the change travels with the next grant of the resource; after a restart the lease ends with its time.
    else void this.#kept(caller, lease, granted ? 'lease_cancel' : null).catch(() => undefined);
  }

  async #takenOff(caller: Caller, lease: Lease, holdId: string): Promise<void> {
    try {
      await this.#kept(caller, lease, 'lease_release');
    } catch (thrown) {
      // With the lease its last holds have gone, and this one with them.
      if (!lease.open) return this.#deps.desk.endTold(lease);
      lease.holds.add(holdId);
      throw thrown;
    }
  }

  #earlier({ leaseRef }: Lease, holdId: string): Promise<void> {
    return this.#underWay.get(`${leaseRef} ${holdId}`) ?? Promise.resolve();
  }

  #begun({ leaseRef }: Lease, holdId: string, change: Promise<void>): Promise<void> {
    const name = `${leaseRef} ${holdId}`;
    this.#underWay.set(name, change);
    const over = (): void => {
      if (this.#underWay.get(name) === change) this.#underWay.delete(name);
    };
    change.then(over, over);
    return change;
  }

  /** The journal has the holds of what is held, of a waiter nothing. */
  async #kept(caller: Caller, lease: Lease, action: 'lease_release' | 'lease_cancel' | null): Promise<void> {
    // The unit of the grant is under way with the holds as they were.
    while (lease.phase === 'granting') await changeOf(lease);
    const { told, terms } = lease;
    if (lease.phase !== 'held' || terms.session === null || told === null) return;
    await this.#deps.ledger.kept(lease, terms.session, told, action, caller, { detail: holdDetail(lease.holds.size) });
  }
}

function changeOf(lease: Lease): Promise<void> {
  return new Promise((resolve) => {
    const off = lease.onChange(() => {
      off();
      resolve();
    });
  });
}
