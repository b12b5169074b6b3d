import type { ClientEventListener } from './client-events.ts';
import { CLIENT_LIMITS } from './client-limits.ts';
import type { Lease } from './contract/answers.ts';
import type { HeldLease } from './held-lease.ts';
import type { Transport } from './transport.ts';
import type { LockEvent } from './watching.ts';

export interface LeaseNewsParts {
  readonly transport: Transport;
  /** Of this process. */
  readonly leases: ReadonlySet<HeldLease>;
  readonly onEvent: ClientEventListener;
}

/** Events after which a lease that was held is over. */
const ENDS: ReadonlySet<LockEvent['type']> = new Set(['released', 'expired', 'broken', 'lost', 'cancelled']);

/** What an event of the session's stream means for the leases of this process. */
export class LeaseNews {
  readonly #parts: LeaseNewsParts;

  constructor(parts: LeaseNewsParts) {
    this.#parts = parts;
  }

  told({ type, lease_ref: leaseRef, reason }: LockEvent): void {
    const lease = [...this.#parts.leases].find((one) => one.leaseRef === leaseRef);
    // Without holds it is this process that gives it back, and the answer to that is on its way.
    if (lease === undefined || lease.holds.size === 0) return;
    if (type === 'breaking') void this.#look(lease, reason);
    else if (ENDS.has(type)) lease.lose(reason ?? type, 'gateway');
  }

  /** At everything that is held, one after the other: a break with a grace may have been announced before anybody listened. Never rejects. */
  async look(): Promise<void> {
    for (const lease of [...this.#parts.leases]) if (lease.state === 'held' && lease.holds.size > 0) await this.#look(lease, null);
  }

  /** How long it still lives is asked for: the times of an event are of another clock. Never rejects. */
  async #look(lease: HeldLease, reason: string | null): Promise<void> {
    const { transport, onEvent } = this.#parts;
    const sentMs = transport.clock.monotonicMs();
    try {
      const path = `/v1/leases/${encodeURIComponent(lease.leaseId)}`;
      const answer = await transport.json<Lease>({ method: 'GET', path, limitMs: CLIENT_LIMITS.cleanUpMs });
      if (answer.state !== 'held' || answer.reason !== 'breaking') return;
      lease.breaksBy(sentMs + answer.expires_in_ms);
    } catch {
      // Then it is known when it happens: from the stream, or from a heartbeat.
      return;
    }
    const { leaseRef, resources, remainingMs } = lease;
    if (lease.state === 'held') onEvent({ type: 'lease_breaking', leaseRef, resources, reason, remainingMs });
  }
}
