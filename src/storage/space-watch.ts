import type { Clock, Timer } from '../domain/clock.ts';
import { LIMITS } from '../domain/limits.ts';
import type { VolumeSpace } from '../domain/volume-space.ts';
import type { Descriptor } from './descriptor.ts';
import type { FileCalls } from './file-calls.ts';

export interface SpaceWatchOptions {
  readonly calls: Pick<FileCalls, 'statfs'>;
  readonly root: Descriptor;
  readonly clock: Clock;
}

/**
 * Looks every few seconds at what is left on a volume, so that probes and scrapes are answered from memory: a hung mount holds
 * none of them up. The look itself goes through the volume's lane like any call.
 */
export class SpaceWatch {
  readonly #options: SpaceWatchOptions;
  #latest: VolumeSpace | null = null;
  #timer: Timer | null = null;
  #stopped = false;

  constructor(options: SpaceWatchOptions) {
    this.#options = options;
    void this.#look();
  }

  /** `null` before the first look, and when the last one had no answer. */
  get latest(): VolumeSpace | null {
    return this.#latest;
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  async #look(): Promise<void> {
    try {
      const { blocks, bsize, bavail, files, ffree } = await this.#options.calls.statfs(this.#options.root);
      const counted = files > 0n;
      this.#latest = {
        totalBytes: Number(blocks * bsize),
        freeBytes: Number(bavail * bsize),
        totalInodes: counted ? Number(files) : null,
        freeInodes: counted ? Number(ffree) : null,
      };
    } catch {
      // The lane knows that the volume does not answer, and the volume's state says so; an old figure would only look new.
      this.#latest = null;
    }
    if (!this.#stopped) this.#timer = this.#options.clock.after(LIMITS.volumeSpaceEveryMs, () => void this.#look());
  }
}
