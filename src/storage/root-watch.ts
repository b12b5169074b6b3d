import type { Clock, Timer } from '../domain/clock.ts';
import { GatewayError } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import type { VolumeState } from '../domain/volume.ts';
import type { Descriptor } from './descriptor.ts';
import { errnoOf } from './errno.ts';
import type { FileCalls } from './file-calls.ts';

export interface RootWatchOptions {
  readonly volume: string;
  readonly calls: Pick<FileCalls, 'statPath' | 'fstat' | 'isWritable'>;
  /** Where the volume is configured to be. */
  readonly path: string;
  /** The directory that was there when the volume was opened. */
  readonly root: Descriptor;
  /** False for a volume on which nothing is written in any case. */
  readonly writes: boolean;
  readonly clock: Clock;
  /** Asked whenever the directory is not at its path: if it was removed, and not only taken away, it never comes back. */
  readonly onAway: () => Promise<unknown>;
  /** What there is to say of the volume has changed. */
  readonly onChange: () => void;
}

interface Trouble {
  readonly state: Extract<VolumeState, 'unavailable' | 'closed' | 'read_only'>;
  readonly reason: string;
}

const MISSING: ReadonlySet<string | null> = new Set(['ENOENT', 'ENOTDIR', 'ESTALE']);
const GONE: Trouble = { state: 'unavailable', reason: 'its directory is not at its path any more; it is served again once it is back' };
const ANOTHER: Trouble = {
  state: 'closed',
  reason:
    'another directory is at its path than the one that was opened (unmounted, moved or mounted over); it is served again once that one is back, or after a restart',
};
const READ_ONLY: Trouble = { state: 'read_only', reason: 'its file system is mounted read-only' };

/**
 * A held directory can be written for ever, also when it was unmounted or moved away and nobody will ever look there again. So it is
 * compared, every half second and before a write that the last look is too old for, with what is at the configured path; in the
 * pool and through the lane, since what is at a path may hang although the volume itself does not.
 */
export class RootWatch {
  readonly #options: RootWatchOptions;
  #trouble: Trouble | null = null;
  /** When the last look that was answered began. */
  #lookedMs: number;
  #running: Promise<void> | null = null;
  #timer: Timer | null = null;
  #stopped = false;

  constructor(options: RootWatchOptions) {
    this.#options = options;
    // It was opened by its path just now.
    this.#lookedMs = options.clock.monotonicMs();
    void this.#turn();
  }

  get trouble(): Trouble | null {
    return this.#trouble;
  }

  /** The directory was not at its path at the last look. */
  get isAway(): boolean {
    return this.#trouble !== null && this.#trouble.state !== 'read_only';
  }

  /** The last look is too old to vouch for a write. */
  get isOld(): boolean {
    return this.#options.clock.monotonicMs() - this.#lookedMs >= LIMITS.volumeLookAgeMsMax;
  }

  /** Throws `volume_unavailable` when it is away. */
  assertThere(): void {
    if (!this.isAway) return;
    throw new GatewayError('volume_unavailable', {
      detail: `The volume ${this.#options.volume} is not available: ${this.#trouble?.reason}.`,
      retryAfterMs: LIMITS.volumeRetryMsMin,
    });
  }

  /** Resolves once there is a look that is young enough, or one more has been tried. Rejects like `assertThere`. */
  async confirm(): Promise<void> {
    // One that runs already may have begun too long ago.
    for (let tries = 0; tries < 2 && this.isOld; tries += 1) await this.#look();
    this.assertThere();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  async #turn(): Promise<void> {
    await this.#look();
    if (!this.#stopped) this.#timer = this.#options.clock.after(LIMITS.volumeLookEveryMs, () => void this.#turn());
  }

  #look(): Promise<void> {
    this.#running ??= this.#lookNow().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async #lookNow(): Promise<void> {
    const { clock, onAway, onChange } = this.#options;
    const beganMs = clock.monotonicMs();
    let trouble: Trouble | null;
    try {
      trouble = await this.#found();
    } catch {
      // It does not answer: the lane knows, and the volume's state says so. What was seen last stands.
      return;
    }
    if (this.#stopped) return;
    this.#lookedMs = beganMs;
    const isNews = trouble?.reason !== this.#trouble?.reason;
    this.#trouble = trouble;
    if (isNews) onChange();
    if (this.isAway) await onAway().catch(() => undefined);
  }

  async #found(): Promise<Trouble | null> {
    const { calls, path, root, writes } = this.#options;
    try {
      const [there, own] = [await calls.statPath(path), await calls.fstat(root)];
      if (there.dev !== own.dev || there.ino !== own.ino) return ANOTHER;
    } catch (thrown) {
      const errno = errnoOf(thrown);
      if (errno === null) throw thrown;
      return MISSING.has(errno) ? GONE : { state: 'unavailable', reason: `its path answers with an error (${errno})` };
    }
    return !writes || (await calls.isWritable(root)) ? null : READ_ONLY;
  }
}
