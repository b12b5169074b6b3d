import { LRUCache } from 'lru-cache';
import { type FileFacts, sameVersion } from '../domain/file-facts.ts';
import type { Intent } from '../domain/intent.ts';
import { LIMITS } from '../domain/limits.ts';

/**
 * The versions that this gateway's own commits left, by resource key: bounded, in memory. They tell a file that others changed from one
 * of ours (a bypassing writer is a finding; a file of ours has a strong tag at once, also when the gateway began anew in between).
 */
export class OwnVersions {
  /** Bounded by a size and not by `max`, for which it would set all entries aside at once: the volume would open later and take the memory anyway. */
  readonly #facts = new LRUCache<string, FileFacts>({ maxSize: LIMITS.ownVersionsMax, sizeCalculation: () => 1 });

  /** `newest`: what the journal says was written last, oldest first. One that was never applied leaves facts that no file has. */
  constructor(newest: readonly Intent[]) {
    for (const intent of newest) this.committed(intent, null);
  }

  /** `found`: what stands there, where it was looked at; recovery may have finished the write under another inode. */
  committed(intent: Intent, found: FileFacts | null): void {
    const { plan, resource } = intent;
    if (plan.kind === 'move') this.#facts.delete(plan.from.key);
    const facts = factsAfter(intent);
    if (facts === null) this.#facts.delete(resource.key);
    else this.#facts.set(resource.key, found ?? facts);
  }

  /** What is there now is not known to be ours. */
  forget(resourceKey: string): void {
    this.#facts.delete(resourceKey);
  }

  isOurs(resourceKey: string, facts: FileFacts): boolean {
    const ours = this.#facts.get(resourceKey);
    return ours !== undefined && sameVersion(ours, facts);
  }
}

/** The file at the intent's resource once it is applied; `null` when there is none. */
export function factsAfter({ plan, staged, before }: Intent): FileFacts | null {
  switch (plan.kind) {
    case 'replace':
    case 'create':
    case 'several':
      return staged;
    case 'append':
    case 'in_place':
      return before === null
        ? null
        : { ino: before.ino, sizeBytes: Math.max(before.sizeBytes, plan.offset + plan.lengthBytes), mtimeNs: plan.mtimeNs };
    case 'move':
      return plan.source;
    case 'remove':
    case 'mkdir':
    case 'rmdir':
      return null;
  }
}
