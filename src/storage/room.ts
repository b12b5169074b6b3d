import type { Descriptor } from './descriptor.ts';
import type { DirectorySync } from './directory-sync.ts';
import type { FileCalls } from './file-calls.ts';
import type { Litter } from './litter.ts';

/** What all parts of one open volume share. The two descriptors are held as long as the volume is open. */
export interface VolumeRoom {
  /** The volume's name. */
  readonly name: string;
  readonly calls: FileCalls;
  readonly root: Descriptor;
  /** The own incarnation directory: every change of a file's name names it. */
  readonly inc: Descriptor;
  readonly incarnation: string;
  /** What of that directory could not be removed while the volume did not answer. */
  readonly litter: Litter;
  /** The device of the incarnation directory; nothing on another one can be renamed into place (trap F14). */
  readonly dev: bigint;
  /** Whether two spellings of a name may be one file here (traps F15, F16). */
  readonly folds: boolean;
  readonly hardLinks: boolean;
  readonly sync: DirectorySync;
  /** Throws `cross_volume` for a directory on another mount, or that is the root of another gateway's volume; `null` where nothing is written. */
  readonly refuseOthers: ((directory: Descriptor) => Promise<void>) | null;
}
