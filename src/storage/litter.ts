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

  /** For a name that a call may still make, which ran over its deadline: it is removed when that call has ended. */
  removeLate(key: string, thrown: unknown, removal: () => Promise<unknown>): void {
    if (thrown instanceof LaneError && thrown.started) void thrown.ended.then(() => this.remove(key, removal));
  }

  /** To be called when the volume is known to answer. */
  sweep(): void {
    if (this.#left.size === 0 || this.#sweeping) return;
    this.#sweeping = true;
    const left = [...this.#left];
    this.#left.clear();
    void Promise.all(left.map(([key, removal]) => this.remove(key, removal))).then(() => {
      this.#sweeping = false;
    });
  }
}
