import type { FileFacts } from '../domain/file-facts.ts';
import { etagOf } from '../domain/file-facts.ts';
import type { Journal } from '../domain/journal.ts';
import type { KnownDigests } from '../domain/known-digests.ts';
import { LIMITS } from '../domain/limits.ts';
import { rememberNewest } from '../domain/remember-newest.ts';
import type { Resource } from '../domain/resource.ts';

/** The digests of our own commits, by version: remembered when a file is committed, else looked up in the audit log once. */
export class CommittedDigests implements KnownDigests {
  readonly #journal: Journal;
  /** `null`: looked up, not ours. */
  readonly #known = new Map<string, string | null>();

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  committed(resource: Resource, facts: FileFacts, sha256: string): void {
    this.#remember(`${resource.key}\n${etagOf(facts)}`, sha256);
  }

  async digestOf(resource: Resource, etag: string): Promise<string | null> {
    const version = `${resource.key}\n${etag}`;
    const known = this.#known.get(version);
    if (known !== undefined) return known;
    const digest = await this.#lookUp(resource, etag);
    this.#remember(version, digest);
    return digest;
  }

  async #lookUp(resource: Resource, etag: string): Promise<string | null> {
    const filter = { volume: resource.volume, path: resource.path, outcome: 'committed' } as const;
    const page = await this.#journal.audit(filter, { order: 'desc', limit: 1, cursor: null });
    const [newest] = page.records;
    return newest?.etagAfter === etag ? newest.digest : null;
  }

  #remember(version: string, digest: string | null): void {
    rememberNewest(this.#known, version, digest, LIMITS.digestCacheMax);
  }
}
