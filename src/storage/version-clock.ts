import type { BigIntStats } from 'node:fs';
import { GatewayError } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Descriptor } from './descriptor.ts';
import type { FileCalls } from './file-calls.ts';

const MICROSECOND_NS = 1_000n;

/**
 * mtimes that only grow (`write-protocol.md`, ETag; trap F34): no two versions that this gateway commits on a volume share a tag,
 * also when both fall into one tick of the clock, also over restarts (`last` is kept in the journal), also after the clock went back.
 */
export class VersionClock {
  readonly #calls: Pick<FileCalls, 'fstat' | 'setMtime'>;
  /** The step when the clock stands still: what Node can set, or what the volume can store. */
  readonly #stepNs: bigint;
  #lastNs: bigint;

  constructor(calls: Pick<FileCalls, 'fstat' | 'setMtime'>, start: { readonly lastMtimeNs: bigint; readonly granularityNs: bigint }) {
    this.#calls = calls;
    this.#stepNs = start.granularityNs > MICROSECOND_NS ? start.granularityNs : MICROSECOND_NS;
    this.#lastNs = start.lastMtimeNs;
  }

  /** The highest mtime given out; the next start continues above it. */
  get lastMtimeNs(): bigint {
    return this.#lastNs;
  }

  /**
   * Gives a file that is fully written its version, and returns the mtime as the volume stored it. Always set, also when the clock has moved
   * on: an append gives the same time to another file later, so it must be one that Node can set, and on a network mount the time of
   * the last write is the server's and may still change with the write-back. `above`: the mtime of the version it replaces, which may
   * lie in the future; it is passed too, but it does not drag other files along.
   */
  async stamp(file: Descriptor, above: bigint | null = null): Promise<bigint> {
    return (await this.stamped(file, above)).mtimeNs;
  }

  /** The same; returns all that the last look at the file told, for a caller that would look again. */
  async stamped(file: Descriptor, above: bigint | null): Promise<BigIntStats> {
    for (let tries = 0; tries < LIMITS.versionStampTriesMax; tries++) {
      // Not "one more than the natural time": several files are stamped at once, and each takes its own number before it waits.
      const taken = this.#take((await this.#calls.fstat(file)).mtimeNs);
      const wanted = above !== null && above >= taken ? this.#stepAfter(above) : taken;
      await this.#calls.setMtime(file, wanted);
      const stats = await this.#calls.fstat(file);
      const { mtimeNs } = stats;
      if (mtimeNs === wanted) return stats;
      // The volume rounds: what it stored must still be above everything that was given out before.
      if (mtimeNs > wanted && wanted === taken && mtimeNs >= this.#lastNs) {
        this.#lastNs = mtimeNs;
        return stats;
      }
    }
    throw new GatewayError('volume_unavailable', {
      detail: 'The volume does not keep the modification times it is given.',
      retryAfterMs: LIMITS.settleRetryMs,
    });
  }

  #take(naturalNs: bigint): bigint {
    this.#lastNs = naturalNs > this.#lastNs ? this.#roundUp(naturalNs) : this.#stepAfter(this.#lastNs);
    return this.#lastNs;
  }

  #stepAfter(ns: bigint): bigint {
    return this.#roundUp(ns + 1n);
  }

  #roundUp(ns: bigint): bigint {
    return ((ns + this.#stepNs - 1n) / this.#stepNs) * this.#stepNs;
  }
}
