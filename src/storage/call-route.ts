import * as fs from 'node:fs';
import { LIMITS } from '../domain/limits.ts';
import type { Descriptor } from './descriptor.ts';
import { LaneError } from './errno.ts';
import type { Lane } from './lane.ts';
import { pool } from './pool-calls.ts';

/**
 * The one switch between a local volume and any other. On a volume that is known to be local, looks are made at once on the caller's
 * thread (a few microseconds; a trip through the thread pool costs more than the call). Whatever changes something, or waits for the disk, goes
 * through the volume's lane to the pool: a local file system that is frozen for a snapshot, or whose device is dying, holds it for as long.
 * On a network or unknown file system every call may hang, so every call goes there.
 */
export class CallRoute {
  readonly local: boolean;
  readonly #lane: Lane;
  readonly #unclosed: number[] = [];

  constructor(local: boolean, lane: Lane) {
    this.local = local;
    this.#lane = lane;
  }

  /** A look: short on a local disk. `late` gets what a call yields that came back after its caller was told that it failed. */
  async look<T>(uses: readonly Descriptor[], now: () => T, pooled: () => Promise<T>, late?: (value: T) => void): Promise<T> {
    if (!this.local) return this.pooled(uses, pooled, late);
    for (const used of uses) if (used.closed) throw new Error('a descriptor was used after it was closed');
    return now();
  }

  /** A call that changes something. A local disk under load may take longer for it than a server that is well. */
  change<T>(uses: readonly Descriptor[], call: () => Promise<T>, late?: (value: T) => void): Promise<T> {
    return this.pooled(uses, call, late, this.local ? LIMITS.localChangeDeadlineMs : undefined);
  }

  /** A call that waits for a disk or a server. Its descriptors are in use until it has really ended. */
  pooled<T>(uses: readonly Descriptor[], call: () => Promise<T>, late?: (value: T) => void, deadlineMs?: number): Promise<T> {
    if (this.#unclosed.length > 0 && this.#lane.breaker === 'closed') this.#closeLeft();
    const held = async (): Promise<T> => {
      for (const used of uses) used.enter();
      try {
        return await call();
      } finally {
        for (const used of uses) used.leave();
      }
    };
    return this.#lane.run(held, late, deadlineMs);
  }

  /** Rejects with the error of `close`. With a call still in the kernel it is closed afterwards, and nobody hears of an error. */
  async close(descriptor: Descriptor): Promise<void> {
    const wasBusy = descriptor.busy;
    const isOurs = descriptor.end(() => {
      if (wasBusy) fs.close(descriptor.fd, () => undefined);
    });
    if (wasBusy || !isOurs) return;
    if (this.local) fs.closeSync(descriptor.fd);
    else await this.#closePooled(descriptor.fd);
  }

  async #closePooled(fd: number): Promise<void> {
    try {
      await this.#lane.run(() => pool.close(fd));
    } catch (thrown) {
      if (thrown instanceof LaneError && !thrown.started) this.#unclosed.push(fd);
      throw thrown;
    }
  }

  /** What could not be closed while the volume did not answer is closed once it does. */
  #closeLeft(): void {
    // A close that fails is not repeated (trap F5); one that was not let through is on the list again.
    for (const fd of this.#unclosed.splice(0)) this.#closePooled(fd).catch(() => undefined);
  }
}
