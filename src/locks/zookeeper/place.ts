import type { Clock, Random } from '../../domain/clock.ts';
import type { Claim } from '../coordinator.ts';
import type { NodeLine } from './node-line.ts';
import type { ZkClient } from './zk-client.ts';

/** One session with the ensemble; when it is over, everything that was held through it is void. */
export interface ZkEpoch {
  readonly client: ZkClient;
  /** Tokens seen by clients are `base` + mzxid. */
  base(): bigint;
  /** Whether the session is proven now. */
  usable(): boolean;
  readonly titles: Titles;
}

/** Which volumes the session may grant on. */
export interface Titles {
  /** False: its title is another's, or not ours yet, or what dead incarnations left there is not fenced. */
  owns(volume: string): boolean;
  /** The session has opened it and keeps it while it lives; its title may be looked at again just now, and is then owned in a moment. */
  keeps(volume: string): boolean;
  /** Every registered incarnation. For a grant to be read behind the decision's reads, on their connection. */
  incarnations(): Promise<{ readonly connection: number; readonly names: readonly string[] }>;
  /** Whether none of `names` but ourselves has anything on the volume. If one has, the title is lost until that is fenced. */
  cleared(volume: string, names: readonly string[]): Promise<boolean>;
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
