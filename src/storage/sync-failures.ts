import { errnoOf } from './errno.ts';

const GONE: ReadonlySet<string> = new Set(['ENOENT', 'ESTALE', 'EBADF']);

/** What failed syncs mean for the whole volume, for as long as the process lives (trap F3). */
export class SyncFailures {
  #data: string | null = null;
  #names: string | null = null;

  /** A file's data was lost; the write was refused, the volume goes on. */
  get degraded(): string | null {
    return this.#data;
  }

  /** A directory's sync failed: what is durable is not known until a restart looks. */
  get namesUncertain(): string | null {
    return this.#names;
  }

  ofData(thrown: unknown): void {
    const errno = errnoOf(thrown);
    // A full disk is the caller's news, not a sick volume's.
    if (errno === null || errno === 'ENOSPC' || errno === 'EDQUOT') return;
    this.#data = `a sync of staged data failed (${errno})`;
  }

  ofDirectory(thrown: unknown): void {
    const errno = errnoOf(thrown);
    // Not for a call that came too late, nor for a directory that is gone: only where the disk itself failed.
    if (errno !== null && !GONE.has(errno)) this.#names = `the sync of a directory failed (${errno}); it opens again after a restart`;
  }
}
