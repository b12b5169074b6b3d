import type { Clock, Random } from '../domain/clock.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { Journal, RefusalLog } from '../domain/journal.ts';
import type { WriteLeases } from '../domain/lease.ts';
import type { Steps } from '../domain/steps.ts';
import type { Volumes } from '../domain/volume.ts';
import type { CommitMtimes } from './commit-mtimes.ts';
import type { CommittedDigests } from './committed-digests.ts';
import type { RunningKeys } from './idempotency.ts';
import type { ResourceMutex } from './resource-mutex.ts';
import type { SettleLoop } from './settle-loop.ts';
import type { StagedQuota } from './staged-quota.ts';

/** Everything the write protocol needs from outside; made once by the composition root. */
export interface WriteDeps {
  readonly volumes: Volumes;
  readonly journal: Journal;
  readonly refusals: RefusalLog;
  readonly leases: WriteLeases;
  readonly clock: Clock;
  readonly random: Random;
  readonly steps: Steps;
  /** The one code to status table, for the `status` of audit records. */
  readonly statusOf: (code: ErrorCode) => number;
  readonly mutex: ResourceMutex;
  readonly settleLoop: SettleLoop;
  readonly runningKeys: RunningKeys;
  readonly quota: StagedQuota;
  readonly digests: CommittedDigests;
  readonly mtimes: CommitMtimes;
}
