import { LIMITS } from '../../domain/limits.ts';
import { rememberNewest } from '../../domain/remember-newest.ts';
import { SEQUENCE_RENEW } from './lock-node.ts';
import { FREE, type Versioned } from './resource-node.ts';
import type { ZkStat } from './zk-client.ts';

/** What a free node is going to have when its next child is made, if nobody else comes before. */
export interface Expected extends Versioned {
  /** The number of that child. */
  readonly sequence: number;
}

const LEFT_FREE = { ...FREE, clean: true };

/**
 * Resource nodes that were seen, so that they are not made again for each lease: servers log a `create` that fails, too. And how those that we
 * left free were left. Only guesses: a node that is gone is noticed when a child cannot be made below it, one that was changed by its version.
 */
export class KnownNodes {
  readonly #paths = new Map<string, Expected | null>();

  has(path: string): boolean {
    return this.#paths.has(path);
  }

  note(path: string): void {
    this.#note(path, this.#paths.get(path) ?? null);
  }

  /** Ours were the last to leave it: `stat` is of the change that took them out. */
  leftFree(path: string, { version, cversion }: Pick<ZkStat, 'version' | 'cversion'>): void {
    this.#note(path, cversion > SEQUENCE_RENEW ? null : { state: LEFT_FREE, version, sequence: cversion });
  }

  /** `null`: nobody can say. Told once: whoever asks is going to change the node. */
  expected(path: string): Expected | null {
    const expected = this.#paths.get(path) ?? null;
    if (expected !== null) this.#paths.set(path, null);
    return expected;
  }

  forget(path: string): void {
    this.#paths.delete(path);
  }

  /** Of another session nobody knows who came between. */
  expectNothing(): void {
    for (const path of this.#paths.keys()) this.#paths.set(path, null);
  }

  #note(path: string, expected: Expected | null): void {
    rememberNewest(this.#paths, path, expected, LIMITS.zookeeperKnownNodesMax);
  }
}
