import type { Resource } from './resource.ts';

/** The digests of our own commits, for `Repr-Digest` on reads. Never computed for a read: only what is known. */
export interface KnownDigests {
  /** SHA-256, lower-case hex, of the version of `resource` that has this ETag; `null` when no commit of ours made it. */
  digestOf(resource: Resource, etag: string): Promise<string | null>;
}
