import { CLIENT_LIMITS } from './client-limits.ts';
import type { AcquireLease, Lease } from './contract/answers.ts';
import { FencegateError, isFencegateError } from './errors.ts';
import type { Transport } from './transport.ts';

interface Leftover {
  readonly giveBack: () => Promise<void>;
  readonly done: () => void;
}

/**
 * What this process no longer uses but the gateway may still keep, because an answer did not arrive. The heartbeat of the session
 * would keep it alive for ever, so it is given back at once, or as soon as the gateway answers again. Bounded: the oldest is dropped.
 */
export class Leftovers {
  readonly #transport: Transport;
  readonly #onAdd: () => void;
  /** By lease id or hold id. */
  readonly #entries = new Map<string, Leftover>();
  #clearing: Promise<void> | null = null;

  constructor(transport: Transport, onAdd: () => void) {
    this.#transport = transport;
    this.#onAdd = onAdd;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** A lease that counts as lost here. `done` is called when nothing more is tried. */
  addLease(leaseId: string, done: () => void): void {
    this.#add(leaseId, () => this.#release(leaseId, { all: true }), done);
  }

  /** A hold whose release was not confirmed. */
  addHold(leaseId: string, holdId: string): void {
    this.#add(holdId, () => this.#release(leaseId, { hold_id: holdId }));
  }

  /** A request for a lease that went unanswered: asked again, under the same hold id, to learn the lease and give it back. */
  addRequest(request: AcquireLease, holdId: string): void {
    this.#add(holdId, async () => {
      // A try would leave a place in line where it is.
      const { lease_id: leaseId } = await this.#transport.json<Lease>({
        method: 'POST',
        path: '/v1/leases',
        json: { ...request, wait_ms: 1, hold_id: holdId },
        limitMs: CLIENT_LIMITS.cleanUpMs,
      });
      await this.#release(leaseId, { hold_id: holdId });
    });
  }

  /** Tries each once; one round at a time. Never rejects; what the gateway refuses is done with. */
  clear(): Promise<void> {
    this.#clearing ??= this.#clear().finally(() => {
      this.#clearing = null;
    });
    return this.#clearing;
  }

  async #clear(): Promise<void> {
    for (const [key, { giveBack }] of this.#entries) {
      try {
        await giveBack();
        this.#drop(key);
      } catch (thrown) {
        if (isFencegateError(thrown, 'gateway_unreachable')) return;
        if (thrown instanceof FencegateError && thrown.status !== null && thrown.status < 500) this.#drop(key);
      }
    }
  }

  #add(key: string, giveBack: () => Promise<void>, done: () => void = () => undefined): void {
    this.#entries.set(key, { giveBack, done });
    const oldest = this.#entries.keys().next().value;
    if (this.#entries.size > CLIENT_LIMITS.leftoversMax && oldest !== undefined) this.#drop(oldest);
    this.#onAdd();
  }

  #drop(key: string): void {
    const dropped = this.#entries.get(key);
    this.#entries.delete(key);
    dropped?.done();
  }

  async #release(leaseId: string, query: { readonly all?: boolean; readonly hold_id?: string }): Promise<void> {
    await this.#transport.json({
      method: 'DELETE',
      path: `/v1/leases/${encodeURIComponent(leaseId)}`,
      query,
      limitMs: CLIENT_LIMITS.cleanUpMs,
      outlivesClose: true,
    });
  }
}
