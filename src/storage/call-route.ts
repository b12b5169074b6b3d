import * as fs from 'node:fs';
import { LIMITS } from '../domain/limits.ts';
import { type Descriptor, procFd } from './descriptor.ts';
import { LaneError } from './errno.ts';
import type { Lane, LaneCall } from './lane.ts';
import { pool } from './pool-calls.ts';

/**
 * The one switch between a local volume and any other. On a volume that is known to be local, and whose disk has answered just now, looks are made at
 * once on the caller's thread (a few microseconds; a trip through the thread pool costs more than the call). On any other they may hang, and with
 * them the process, so they go through the volume's lane to the pool.
 * Whatever changes something, or waits for the disk, always goes there: a local file system that is frozen for a snapshot, or whose device is
 * dying, holds it for as long.
 */
export class CallRoute {
  readonly local: boolean;
  readonly #lane: Lane;
  readonly #unclosed: number[] = [];
  #touched: Descriptor | null = null;
  #touching = false;

  constructor(local: boolean, lane: Lane) {
    this.local = local;
    this.#lane = lane;
  }

  /** From now on the volume is touched at this directory of its own. Without one no disk is known to answer. */
  touchAt(directory: Descriptor): void {
    this.#touched = directory;
  }

  /** A look: short on a disk that answers. `late` gets what a call yields that came back after its caller was told that it failed. */
  async look<T>(uses: readonly Descriptor[], now: () => T, pooled: () => Promise<T>, late?: (value: T) => void): Promise<T> {
    if (!this.#answersNow()) return this.pooled(uses, pooled, { late });
    assertHeld(uses);
    return now();
  }

  /** A look at what is held open: a local file system has it in memory, whatever its disk does. */
  async lookAtHeld<T>(uses: readonly Descriptor[], now: () => T, pooled: () => Promise<T>): Promise<T> {
    if (!this.local) return this.pooled(uses, pooled);
    assertHeld(uses);
    return now();
  }

  /** A call that changes something. A local disk under load may take longer for it than a server that is well. */
  change<T>(uses: readonly Descriptor[], call: () => Promise<T>, options: LaneCall<T> = {}): Promise<T> {
    return this.pooled(uses, call, { ...options, changes: true, deadlineMs: this.local ? LIMITS.localChangeDeadlineMs : undefined });
  }

  /** A call that waits for a disk or a server. Its descriptors are in use until it has really ended. */
  pooled<T>(uses: readonly Descriptor[], call: () => Promise<T>, options: LaneCall<T> = {}): Promise<T> {
    if (this.#lane.wantsProof) this.#touch();
    if (this.#unclosed.length > 0 && this.#lane.breaker === 'closed') this.#closeLeft();
    const held = async (): Promise<T> => {
      for (const used of uses) used.enter();
      try {
        return await call();
      } finally {
        for (const used of uses) used.leave();
      }
    };
    return this.#lane.run(held, { proves: !this.#canTouch, ...options });
  }

  /** Rejects with the error of `close`. With a call still in the kernel it is closed afterwards, and nobody hears of an error. */
  async close(descriptor: Descriptor): Promise<void> {
    const wasBusy = descriptor.busy;
    const isOurs = descriptor.end(() => {
      if (wasBusy) fs.close(descriptor.fd, () => undefined);
    });
    if (wasBusy || !isOurs) return;
    // The last descriptor of an unlinked file frees it, which is a change; a frozen file system lets none through.
    if (this.local && this.#lane.isQuick) fs.closeSync(descriptor.fd);
    else await this.#closePooled(descriptor.fd);
  }

  get #canTouch(): boolean {
    return this.#touched !== null && !this.#touched.closed;
  }

  #answersNow(): boolean {
    if (!this.local) return false;
    const agoMs = this.#lane.reachedAgoMs;
    if (agoMs >= LIMITS.volumeTouchEveryMs) this.#touch();
    return agoMs < LIMITS.volumeTouchAgeMsMax && this.#lane.isQuick;
  }

  /**
   * A small change that reaches the disk: what hangs there is seen, and a volume whose changes hung is served again once this goes through.
   * One at a time until it has really ended, so that a hung volume costs one thread.
   */
  #touch(): void {
    const directory = this.#touched;
    if (directory === null || directory.closed || this.#touching) return;
    this.#touching = true;
    const touch = async (): Promise<void> => {
      directory.enter();
      try {
        await touchDirectory(directory, this.local);
      } finally {
        directory.leave();
      }
    };
    const over = (): void => {
      this.#touching = false;
    };
    const deadlineMs = this.local ? LIMITS.localChangeDeadlineMs : undefined;
    this.#lane.run(touch, { changes: true, reachesDisk: this.local, deadlineMs }).then(over, (thrown: unknown) => {
      if (thrown instanceof LaneError && thrown.started) void thrown.ended.then(over);
      else over();
    });
  }

  async #closePooled(fd: number): Promise<void> {
    try {
      await this.#lane.run(() => pool.close(fd), { proves: !this.#canTouch });
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

function assertHeld(uses: readonly Descriptor[]): void {
  for (const used of uses) if (used.closed) throw new Error('a descriptor was used after it was closed');
}

/** The mode that it has anyway: setting it changes its inode, and needs no clock. */
const OWN_DIRECTORY_MODE = 0o700;

/**
 * Opened again for it: an error of an earlier write is told to each open file once, and must not be told to this one instead of to a sync that vouches
 * for something (trap F4). A server makes the change at once, a disk only when it is synced.
 */
async function touchDirectory(directory: Descriptor, sync: boolean): Promise<void> {
  const fd = await pool.open(procFd(directory), fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
  try {
    await pool.fchmod(fd, OWN_DIRECTORY_MODE);
    if (sync) await pool.fsync(fd);
  } finally {
    await pool.close(fd);
  }
}
