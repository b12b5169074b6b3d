import { randomFillSync } from 'node:crypto';
import type { Random } from '../domain/clock.ts';

/** Asked for at once: a request needs several short names, and each trip to the random source costs far more than its bytes. */
const POOL_BYTES = 4096;

/** The operating system's random source. No byte is given out twice, and none stays behind in the pool. */
class SystemRandom implements Random {
  readonly #pool = Buffer.alloc(POOL_BYTES);
  #at = POOL_BYTES;

  bytes(count: number): Uint8Array {
    if (count > POOL_BYTES) return randomFillSync(Buffer.alloc(count));
    if (this.#at + count > POOL_BYTES) {
      randomFillSync(this.#pool);
      this.#at = 0;
    }
    const taken = this.#pool.subarray(this.#at, this.#at + count);
    const bytes = Buffer.from(taken);
    taken.fill(0);
    this.#at += count;
    return bytes;
  }
}

export const systemRandom: Random = new SystemRandom();
