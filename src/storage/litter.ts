import { LIMITS } from '../domain/limits.ts';
import { errnoOf, gatewayErrorOf, LaneError } from './errno.ts';

/**
 * What could not be removed from the own directory while the volume did not answer (I5). It means nothing to anybody but takes up
 * space, so it is tried again once the volume is used and answers. What is left even then is swept at the next start.
 */
export class Litter {
  readonly #left = new Map<string, () => Promise<unknown>>();
  #sweeping = false;

  /** Never rejects. `key` names what is removed; of two removals under one key the last one counts. */
  async remove(key: string, removal: () => Promise<unknown>): Promise<void> {
    try {
      await removal();
    } catch (thrown) {
      if (errnoOf(thrown) === 'ENOENT' || gatewayErrorOf(thrown).code !== 'volume_unavailable') return;
      if (this.#left.size < LIMITS.litterMax) this.#left.set(key, removal);
    }
  }

  /**
   * Runs `work`, which first makes a name that nobody else ever makes, and calls `made` once it has. Where it fails nothing of that name stays: a
   * call that failed may have made it all the same, and one that ran over its deadline may make it later, so its end is waited for, but not here.
   * The error of `work` is the one to tell.
   */
  async making<T>(key: string, removal: () => Promise<unknown>, work: (made: () => void) => Promise<T>): Promise<T> {
    let isMade = false;
    try {
      return await work(() => {
        isMade = true;
      });
    } catch (thrown) {
      if (isMade || !(thrown instanceof LaneError)) await this.remove(key, removal);
      else if (thrown.started) void thrown.ended.then(() => this.remove(key, removal));
      throw thrown;
    }
  }

  /** To be called when the volume is known to answer. */
  sweep(): void {
    if (this.#left.size === 0 || this.#sweeping) return;
    this.#sweeping = true;
    void this.#sweepAll().then(() => {
      this.#sweeping = false;
    });
  }

  /** One call at a time: the lane is there for those who write and read. */
  async #sweepAll(): Promise<void> {
    const left = [...this.#left];
    this.#left.clear();
    for (const [key, removal] of left) await this.remove(key, removal);
  }
}
