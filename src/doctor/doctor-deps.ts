import type { CoordinatorNode, LeaseCondition, WaitForEdge } from '../domain/administration.ts';
import type { Clock } from '../domain/clock.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { CoordinatorReadiness, VolumeReadiness } from '../domain/health.ts';
import type { Journal, RefusalLog } from '../domain/journal.ts';
import type { LockService } from '../domain/lock-api.ts';
import type { Caller } from '../domain/principal.ts';
import type { VolumeFinding } from '../domain/recovery.ts';
import type { Volume } from '../domain/volume.ts';
import type { RefusalWindow } from './refusal-window.ts';

export type ExaminedVolume = Pick<Volume, 'name' | 'policy' | 'folds' | 'state' | 'space' | 'locate' | 'look'> & {
  readonly findings: readonly VolumeFinding[];
  /** False when something is in it. */
  removeUnknownDirectory(entry: string): Promise<boolean>;
};

export interface LaneLook {
  readonly inFlight: number;
  readonly queued: number;
  readonly breaker: string;
}

/** Everything a diagnosis looks at, and the few things it may do. */
export interface DoctorDeps {
  readonly clock: Clock;
  readonly statusOf: (code: ErrorCode) => number;
  readonly journal: Pick<Journal, 'audit' | 'verify' | 'head' | 'commit' | 'healthy'>;
  readonly refusals: Pick<RefusalLog, 'refused'>;
  readonly refusalWindow: Pick<RefusalWindow, 'repeated'>;
  readonly volumes: () => readonly ExaminedVolume[];
  readonly readiness: () => readonly VolumeReadiness[];
  readonly lanes: () => ReadonlyMap<string, LaneLook>;
  readonly locks: Pick<LockService, 'locks' | 'sessionPage'>;
  readonly conditions: () => Iterable<LeaseCondition>;
  readonly endLease: (caller: Caller, leaseRef: string, reason: string | null) => Promise<'ended' | 'pending'>;
  readonly waitFor: () => readonly WaitForEdge[];
  readonly coordinator: () => CoordinatorReadiness;
  readonly nodes: () => Promise<readonly CoordinatorNode[]>;
  /** False when there was nothing to remove any more. */
  readonly removeOrphan: (node: CoordinatorNode) => Promise<boolean>;
  readonly unsettled: {
    open(): readonly { readonly operationId: string; readonly resource: string; readonly volume: string; readonly untilNextStart: boolean }[];
    settleNow(operationId: string): Promise<'settled' | 'unknown' | 'none'>;
  };
}
