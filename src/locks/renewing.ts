import type { Clock } from '../domain/clock.ts';
import type { Caller } from '../domain/principal.ts';
import type { VolumePolicy } from '../domain/volume.ts';
import { leaseTtl } from './acquire-terms.ts';
import type { LeaseLedger } from './lease-ledger.ts';
import type { Lease } from './lease-record.ts';
import type { LeaseTable } from './lease-table.ts';
import type { ReconnectGate } from './reconnect-gate.ts';
import type { Session } from './session.ts';

export interface RenewingDeps {
  readonly clock: Clock;
  readonly table: LeaseTable;
  readonly ledger: LeaseLedger;
  readonly gate: ReconnectGate;
  readonly policy: (volume: string) => VolumePolicy;
}

/** Starts the time of a live lease again, with another time to live when one is asked for. */
export class Renewing {
  readonly #deps: RenewingDeps;

  constructor(deps: RenewingDeps) {
    this.#deps = deps;
  }

  /** Rejects with `ttl_out_of_range`, and nothing is renewed; `overloaded` with when to come again, `journal_unavailable`. */
  async renew(caller: Caller, lease: Lease, ttlMs: number | null): Promise<void> {
    const wantedMs = ttlMs === null ? lease.ttlMs : leaseTtl(ttlMs, lease.resources, this.#deps.policy);
    lease.renew(this.#deps.clock.monotonicMs());
    if (lease.terms.session !== null) this.#deps.gate.pass(lease.terms.session);
    if (wantedMs !== lease.ttlMs || (ttlMs !== null && isShorter(lease.terms.session, ttlMs))) await this.#retime(caller, lease, wantedMs);
  }

  /** Renewals are not in the journal, but the time to live is: a lease comes back with it after a restart. */
  async #retime(caller: Caller, lease: Lease, ttlMs: number): Promise<void> {
    const { told, terms, ttlMs: beforeMs } = lease;
    const sessionBeforeMs = terms.session?.ttlMs ?? beforeMs;
    this.#set(lease, ttlMs, alone(lease) ? ttlMs : Math.max(sessionBeforeMs, ttlMs));
    // Of a waiter the journal knows nothing.
    if (told === null || terms.session === null) return;
    try {
      await this.#deps.ledger.kept(lease, terms.session, told, null, caller);
    } catch (thrown) {
      if (lease.ttlMs === ttlMs) this.#set(lease, beforeMs, sessionBeforeMs);
      throw thrown;
    }
  }

  /** A session that a lease made lives as long as it; one of several makes it live longer, and never cuts the others short. */
  #set(lease: Lease, ttlMs: number, sessionTtlMs: number): void {
    const { deadlines } = this.#deps.table;
    const { session } = lease.terms;
    lease.ttlMs = ttlMs;
    if (session?.terms.implied === true) session.ttlMs = sessionTtlMs;
    if (lease.open) deadlines.set(lease, lease.nextCheckMs);
  }
}

/** A session that another of its leases made, with a shorter time. */
function isShorter(session: Session | null, ttlMs: number): boolean {
  return session?.terms.implied === true && session.ttlMs < ttlMs;
}

function alone({ terms: { session } }: Lease): boolean {
  return session === null || session.leases.size === 1;
}
