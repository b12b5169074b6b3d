import { LIMITS } from '../../domain/limits.ts';
import type { Manifest, ManifestEntry } from './manifest-record.ts';

/** `done`: nothing was left to do. `stuck`: something is left to do that is not ours to do. */
export type Rolled = 'done' | 'forward' | 'back' | 'stuck';

export interface Roll {
  readonly entries: ReadonlyMap<string, ManifestEntry>;
  /** What is true from now on: after a roll forward nothing is left to do. */
  readonly rolled: Rolled;
}

/**
 * What was found out about the manifests that were looked at last. The intents of an operation are asked for one after the other, and each
 * of them stands for the whole: without this a thousand files would be looked at a thousand times each.
 */
export class Rolls {
  readonly #known = new Map<string, Roll>();
  readonly #isKept: (rolled: Rolled) => boolean;

  /** @param kept `decided`: what is stuck may be free at the next look. `all`: nothing changes while these are asked for. */
  constructor(kept: 'decided' | 'all') {
    this.#isKept = (rolled) => kept === 'all' || rolled !== 'stuck';
  }

  of(operationId: string): Roll | null {
    return this.#known.get(operationId) ?? null;
  }

  note({ operationId, entries }: Manifest, rolled: Rolled): Roll {
    const roll: Roll = { entries: new Map(entries.map((entry) => [entry.path, entry])), rolled };
    this.forget(operationId);
    if (this.#isKept(rolled)) this.#known.set(operationId, { ...roll, rolled: rolled === 'forward' ? 'done' : rolled });
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= LIMITS.rollsKnownMax) break;
      this.#known.delete(oldest);
    }
    return roll;
  }

  forget(operationId: string): void {
    this.#known.delete(operationId);
  }
}
