import type { Clock, Random } from '../../domain/clock.ts';
import type { Claim } from '../coordinator.ts';
import type { NodeLine } from './node-line.ts';
import type { ZkClient } from './zk-client.ts';

/** One session with the ensemble; when it is over, everything that was held through it is void. */
export interface ZkEpoch {
  readonly client: ZkClient;
  /** Tokens seen by clients are `base` + mzxid. */
  readonly base: bigint;
  /** Whether the session is proven now. */
  usable(): boolean;
}

export interface ZookeeperCoordinatorOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly root: string;
  readonly queueMax: (volume: string) => number;
}

/** Where one claim stands. */
export interface Place<C extends Claim> {
  readonly taken: NodeLine<C>[];
  standing: NodeLine<C> | null;
  /** Resources at which the node has the upgrade already, and the highest number of them. */
  readonly upgraded: Set<NodeLine<C>>;
  upgradeToken: bigint;
}
