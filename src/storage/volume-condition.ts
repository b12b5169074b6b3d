import { GatewayError, refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import type { VolumePolicy, VolumeState } from '../domain/volume.ts';
import { mapped } from './errno.ts';
import type { Fence } from './fence.ts';
import type { Lane } from './lane.ts';
import type { RootWatch } from './root-watch.ts';
import type { SyncFailures } from './sync-failures.ts';

export interface ConditionParts {
  readonly policy: VolumePolicy;
  readonly fence: Fence;
  readonly lane: Lane;
  readonly root: RootWatch;
  readonly syncs: SyncFailures;
}

/** Whether an open volume can be written and read now, and why not: everything that can befall it, in one order. */
export class VolumeCondition {
  readonly #parts: ConditionParts;

  constructor(parts: ConditionParts) {
    this.#parts = parts;
  }

  state(): { readonly state: VolumeState; readonly reason: string | null } {
    const { policy, fence, lane, root, syncs } = this.#parts;
    if (fence.fenced) return { state: 'closed', reason: 'another process of the gateway has taken the volume over' };
    if (lane.breaker !== 'closed') return { state: 'unavailable', reason: 'the volume does not answer' };
    if (root.isAway && root.trouble !== null) return root.trouble;
    if (syncs.namesUncertain !== null) return { state: 'unavailable', reason: syncs.namesUncertain };
    if (root.trouble !== null) return root.trouble;
    return { state: policy.readOnly ? 'read_only' : 'open', reason: syncs.degraded };
  }

  /** What is seen on the volume now proves nothing of what became of a write. */
  get provesNothing(): boolean {
    const { fence, root, syncs } = this.#parts;
    return fence.fenced || root.isAway || syncs.namesUncertain !== null;
  }

  /** Throws `volume_unavailable`, `volume_read_only`; from memory. That a mount is read-only is left for the kernel to say, which knows it now. */
  assertWritable(): void {
    const { policy, fence, lane, root } = this.#parts;
    if (policy.readOnly) throw refuse('volume_read_only', 'The volume is read-only by its configuration.');
    if (fence.fenced) throw fence.refusal();
    root.assertThere();
    // Half open counts as writable: the next call is the one that finds out.
    const { state, reason } = this.state();
    if (state === 'unavailable' && lane.breaker !== 'half_open') {
      throw new GatewayError('volume_unavailable', {
        detail: `The volume ${policy.name} cannot be written: ${reason ?? 'it is closed'}.`,
        retryAfterMs: LIMITS.volumeCanaryMs,
      });
    }
  }

  /** For each step that changes the volume: it is writable, and was at its path no longer ago than `volumeLookAgeMsMax`. */
  async writing<T>(work: () => Promise<T>): Promise<T> {
    this.assertWritable();
    if (this.#parts.root.isOld) await this.#parts.root.confirm();
    return mapped(work);
  }

  /** For what is only read: of a directory that is not at its path nothing is answered. */
  async reading<T>(work: () => Promise<T>): Promise<T> {
    this.#parts.root.assertThere();
    return mapped(work);
  }
}
