/** What the kernel says of the mount that a volume lies on, read once at its start: from memory, so a hung mount does not hold it up. */
export interface MountFacts {
  /** Of the mount table: `ext4`, `nfs4`, ... */
  readonly fileSystem: string;
  /** Not known to be local: every call may hang, and every error leaves open what happened. */
  readonly isNetwork: boolean;
  /** What is mounted: a device, or `server:/export`. */
  readonly source: string;
  /** As in effect, which may be other than was asked for. */
  readonly options: readonly string[];
  readonly warnings: readonly MountWarning[];
}

/** A mount option that weakens what is promised. */
export interface MountWarning {
  readonly option: string;
  readonly weakens: string;
  readonly remedy: string;
}

export const ASYNC_IS_NOT_SEEN =
  'Whether the server keeps what it acknowledged cannot be seen from its client: an export with async loses acknowledged writes when the server crashes. Export with sync.';
