import { LaneError } from './errno.ts';

/**
 * Renames that ran over their deadline: the kernel may still carry one out, after a later one of the same target, and an older record would take
 * the place of a newer one (for the stamp that is a ceiling below tokens that were issued, I6). So a target takes no other until that one has ended.
 */
export class LateRenames {
  readonly #late = new Map<string, LaneError>();

  /** Throws the error of the earlier rename while that one may still happen. */
  assertNone(target: string): void {
    const late = this.#late.get(target);
    if (late !== undefined) throw late;
  }

  async watch(target: string, rename: Promise<void>): Promise<void> {
    try {
      await rename;
    } catch (thrown) {
      if (thrown instanceof LaneError && thrown.started) {
        this.#late.set(target, thrown);
        void thrown.ended.then(() => this.#late.delete(target));
      }
      throw thrown;
    }
  }
}
