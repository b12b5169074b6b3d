import { GatewayError } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import { errnoOf } from './errno.ts';
import type { VolumeRoom } from './room.ts';

/**
 * How this process learns that it was superseded (`write-protocol.md`, "What the storage itself enforces"): its incarnation directory
 * is gone. Every change of a name names that directory, so the kernel (or the NFS server) has refused the call already; what is left to do is
 * to tell "fenced" from "the target's parent is gone", and to stop.
 */
export class Fence {
  readonly #room: Pick<VolumeRoom, 'calls' | 'inc' | 'name'>;
  readonly #onFenced: () => void;
  #fenced = false;

  constructor(room: Pick<VolumeRoom, 'calls' | 'inc' | 'name'>, onFenced: () => void) {
    this.#room = room;
    this.#onFenced = onFenced;
  }

  get fenced(): boolean {
    return this.#fenced;
  }

  /** Looks at the held incarnation directory: no link left, or ESTALE, means fenced, and stays so. */
  async look(): Promise<boolean> {
    if (this.#fenced) return true;
    const { calls, inc } = this.#room;
    try {
      // A network client answers `fstat` from its cache; opening the directory again asks the server.
      if (!calls.local) {
        const again = await calls.reopen(inc);
        await calls.close(again).catch(() => undefined);
      }
      if ((await calls.fstat(inc)).nlink !== 0n) return false;
    } catch (thrown) {
      if (!isGone(thrown)) throw thrown;
    }
    // Two calls may find out at once; one of them tells.
    if (!this.fenced) {
      this.#fenced = true;
      this.#onFenced();
    }
    return true;
  }

  /** The answer of a fenced volume for what came before an intent: nothing was changed. */
  refusal(): GatewayError {
    return new GatewayError('volume_unavailable', {
      detail: `Another process of the gateway has taken over the volume ${this.#room.name}.`,
      retryAfterMs: LIMITS.settleRetryMs,
    });
  }

  /** For an error of a call that named the incarnation directory: throws `volume_unavailable` when fenced, else the error itself. */
  async judge(thrown: unknown): Promise<never> {
    if (isGone(thrown) && (await this.look())) throw this.refusal();
    throw thrown;
  }
}

function isGone(thrown: unknown): boolean {
  const errno = errnoOf(thrown);
  return errno === 'ENOENT' || errno === 'ESTALE';
}
