import type { FastifyInstance } from 'fastify';
import type { Config } from '../config/config.ts';
import type { Clock } from '../domain/clock.ts';
import type { Journal, JournalStart } from '../domain/journal.ts';
import type { SettleLoop } from '../gateway/settle-loop.ts';
import type { GrpcServer } from '../grpc/server.ts';
import type { Locks } from '../locks/create-lock-service.ts';
import type { VolumeSet } from '../storage/volume-set.ts';
import type { ConfiguredCoordination } from './coordination.ts';
import type { Stopping } from './stopping.ts';

/** What is started and stopped, in which order only `lifecycle` knows. */
export interface GatewayParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly journal: Journal;
  readonly start: JournalStart;
  readonly tookOver: boolean;
  readonly volumes: VolumeSet;
  readonly locks: Locks;
  readonly settleLoop: SettleLoop;
  readonly app: FastifyInstance;
  /** `null`: off. */
  readonly grpc: GrpcServer | null;
  readonly stopping: Stopping;
  readonly coordination: ConfiguredCoordination;
  /** Last: the journal, the clock. */
  readonly close: () => Promise<void>;
}
