import { LIMITS } from '../../domain/limits.ts';

/**
 * Resource nodes that were seen, so that they are not made again for each lease: servers log a `create` that fails, too. Only a guess:
 * one that is gone is noticed when a child cannot be made below it.
 */
export class KnownNodes {
  readonly #paths = new Set<string>();

  has(path: string): boolean {
    return this.#paths.has(path);
  }

  note(path: string): void {
    // The newest last.
    this.#paths.delete(path);
    this.#paths.add(path);
    if (this.#paths.size <= LIMITS.zookeeperKnownNodesMax) return;
    const [oldest] = this.#paths;
    if (oldest !== undefined) this.#paths.delete(oldest);
  }

  forget(path: string): void {
    this.#paths.delete(path);
  }
}
