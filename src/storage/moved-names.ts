import type { TargetFacts } from '../domain/file-facts.ts';
import type { Intent } from '../domain/intent.ts';
import { LIMITS } from '../domain/limits.ts';
import { moveTrashName } from './incarnation-names.ts';

/**
 * Old names of moved files. They lie in the own directory until the outcome is durable, as the proof that the move is over, and are links to the
 * file meanwhile: names that nobody but us has, and that make it no file with several (trap F17).
 */
export class MovedNames {
  readonly #unlink: (name: string) => Promise<void>;
  readonly #inodes = new Map<string, bigint>();

  /** @param unlink of a name in the own directory; a missing one is no error. */
  constructor(unlink: (name: string) => Promise<void>) {
    this.#unlink = unlink;
  }

  /** More than are ever left to unlink are not noted: their files count as ones with two names for as long. */
  applied({ plan }: Intent): void {
    if (plan.kind === 'move' && this.#inodes.size < LIMITS.tidyNamesMax) this.#inodes.set(moveTrashName(plan.manifest), plan.source.ino);
  }

  async unlink(name: string): Promise<void> {
    await this.#unlink(name);
    this.#inodes.delete(name);
  }

  /** `found` as everybody else sees it. */
  without(found: TargetFacts | null): TargetFacts | null {
    if (found === null || found.links < 2 || this.#inodes.size === 0) return found;
    const own = [...this.#inodes.values()].filter((ino) => ino === found.ino).length;
    return own === 0 ? found : { ...found, links: Math.max(1, found.links - own) };
  }
}
