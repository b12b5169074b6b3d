/**
 * Whose a volume is (`write-protocol.md`, "Who owns a volume"; `locks.md`, "zookeeper"). Asked when a volume starts, before its own
 * directory is made: whoever has no title does not serve the volume. With the embedded coordinator the owner file is all there is.
 */
export interface VolumeTitles {
  /** What the owner file must say. Rejects with `coordinator_unavailable` when that is not known now. */
  owner(): OwnerNames;
  /**
   * @param volumeUuid made once, kept in the owner file; `null` for a volume on which nothing is written.
   * @param how `adopt`: the name may have been another volume's, if nobody who lives owns that one.
   * Rejects with `VolumeTaken`, or with `coordinator_unavailable` when the coordinator does not answer.
   */
  claim(volume: string, volumeUuid: string | null, how: 'plain' | 'adopt'): Promise<VolumeTitle>;
  /** Why the volume may be somebody else's at this moment; `null` when it is certainly ours, and open. */
  doubt(volume: string): string | null;
}

export interface OwnerNames {
  /** The gateway's own uuid: no other gateway goes by it, whatever they share. */
  readonly gateway: string;
  /** The gateway's uuid, or the id of the coordinator that several gateways share. */
  readonly now: string;
  /** What this gateway was before: a volume that still says so, beside a stamp of ours, opens for reading and waits for a rebase. */
  readonly before: readonly string[];
}

/** What owning one volume through one coordinator session brings. It is void when that session ends. */
export interface VolumeTitle {
  /** Directories of dead incarnations: they are fenced before anything is granted. */
  readonly left: readonly string[];
  /**
   * Every token that anybody else ever had for the volume is at or below it, so that a successor with another journal needs no
   * rebase. `null`: nobody knows.
   */
  readonly floor: bigint | null;
  /** Durable when it resolves: the own directory was made and synced. */
  published(directory: string): Promise<void>;
  /** Durable when it resolves: a directory of `left`, or an earlier one of this very session, is gone. */
  gone(directory: string): Promise<void>;
  /** Every old directory is gone and recovery is done: from now on somebody may be granted. */
  opened(): void;
}

/** Somebody else has the volume, or its name. */
export class VolumeTaken extends Error {
  /** Whether it stays so until somebody does something; else it ends with the owner that lives. */
  readonly lasting: boolean;

  constructor(message: string, { lasting }: { readonly lasting: boolean }) {
    super(message);
    this.name = 'VolumeTaken';
    this.lasting = lasting;
  }
}

/** Without a coordinator that others share: the owner file decides alone. */
export function soleTitles(gatewayUuid: string): VolumeTitles {
  const title: VolumeTitle = {
    left: [],
    floor: null,
    published: () => Promise.resolve(),
    gone: () => Promise.resolve(),
    opened: () => undefined,
  };
  return { owner: () => ({ gateway: gatewayUuid, now: gatewayUuid, before: [] }), claim: () => Promise.resolve(title), doubt: () => null };
}
