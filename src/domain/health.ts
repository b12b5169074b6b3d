import type { FenceLevel } from './fence-level.ts';
import type { VolumeState } from './volume.ts';
import type { VolumeSpace } from './volume-space.ts';

/** What `/readyz` says. Read from memory only: a hung mount or a suspended coordinator must not hold the answer up. */
export interface Readiness {
  /** False when no volume can be written, or while draining. */
  readonly ready: boolean;
  readonly journal: {
    readonly healthy: boolean;
    readonly headSeq: number;
    readonly headHash: string;
    /** Why it is not healthy, or why it is not trusted (restored, another uuid) and writes wait for a rebase. */
    readonly reason: string | null;
  };
  readonly coordinator: CoordinatorReadiness;
  readonly volumes: readonly VolumeReadiness[];
}

export interface CoordinatorReadiness {
  readonly kind: 'embedded' | 'zookeeper';
  readonly state: 'connected' | 'suspended' | 'reconnected' | 'lost';
  /** `null` for the embedded coordinator, which has no session. */
  readonly sessionMs: number | null;
  /** How old the last proof of the session is; `null` without one. */
  readonly proofAgeMs: number | null;
  /** Why nothing is granted although there is contact: its tokens are not above those of before. */
  readonly reason: string | null;
}

export interface VolumeReadiness {
  readonly name: string;
  readonly state: VolumeState;
  readonly fenceLevel: FenceLevel;
  readonly reason: string | null;
  readonly space: VolumeSpace | null;
}

export interface Health {
  readiness(): Readiness;
}
