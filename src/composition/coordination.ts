import type { Config } from '../config/config.ts';
import { ConfigError } from '../config/problems.ts';
import { readZookeeperAuth } from '../config/secret-files.ts';
import type { Clock, Random } from '../domain/clock.ts';
import type { Journal, JournalStart } from '../domain/journal.ts';
import { soleTitles, type VolumeTitles } from '../domain/volume-title.ts';
import { journalKnows } from '../gateway/recover.ts';
import type { Coordination } from '../locks/coordination.ts';
import { COORDINATOR_FACT, SESSION_FACT, ZookeeperCoordination } from '../locks/zookeeper/zookeeper-coordination.ts';
import type { Logger } from '../observability/logger.ts';
import { Ensemble } from '../zookeeper/connect-ensemble.ts';
import { parseConnect } from '../zookeeper/connect-string.ts';

export interface CoordinationParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly random: Random;
  readonly start: JournalStart;
  readonly journal: Pick<Journal, 'commit'>;
  readonly logger: Logger;
  readonly metrics: { interrupted(state: 'suspended' | 'lost'): void };
}

/** The coordinator that was configured. Its processes are there before any volume is opened; its session begins with `start`. */
export interface ConfiguredCoordination {
  /** `null`: the embedded one. */
  readonly make: ((queueMax: (volume: string) => number) => Coordination) | null;
  readonly titles: VolumeTitles;
  /** `null`: all of them must be claimed, and their incarnations made, anew. */
  onUntitled(listener: (volume: string | null) => void): void;
  /** The coordinator can never come back: the gateway cannot go on. */
  readonly failed: Promise<Error>;
  /** `waits`: for as long as it does not answer; else it rejects after a while. */
  start(how: { readonly waits: boolean }): Promise<void>;
  stop(): Promise<void>;
}

function embedded(gatewayUuid: string): ConfiguredCoordination {
  return {
    make: null,
    titles: soleTitles(gatewayUuid),
    onUntitled: () => undefined,
    failed: new Promise(() => undefined),
    start: () => Promise.resolve(),
    stop: () => Promise.resolve(),
  };
}

/** Rejects with one line: the connect string cannot be read, or the native client is missing. */
export async function coordinationOf({ config, clock, random, start, journal, logger, metrics }: CoordinationParts): Promise<ConfiguredCoordination> {
  const { zookeeper } = config;
  if (zookeeper === null) return embedded(start.gatewayUuid);
  const connect = parseConnect(zookeeper.connect);
  if (typeof connect === 'string') throw new ConfigError([`FENCEGATE_ZOOKEEPER_CONNECT: ${connect}`]);
  const log = (line: string): void => logger.info({ line }, 'zookeeper');
  const auth = zookeeper.authFile === null ? null : readZookeeperAuth(zookeeper.authFile);
  const { root, sessionMs } = zookeeper;
  const ensemble = await Ensemble.start({ ...connect, sessionMs, auth, clock, log });
  const volumes = config.volumes.map(({ name }) => name);
  let coordination: ZookeeperCoordination | null = null;
  const made = (): ZookeeperCoordination => {
    if (coordination === null) throw new Error('the lock service has not made its coordination yet');
    return coordination;
  };
  let untitled: (volume: string | null) => void = () => undefined;
  return {
    titles: {
      owner: () => made().owner(),
      claim: (volume, uuid, how) => made().claim(volume, uuid, how),
      doubt: (volume) => made().doubt(volume),
    },
    onUntitled: (listener) => {
      untitled = listener;
    },
    make: (queueMax) => {
      coordination = new ZookeeperCoordination({
        clock,
        random,
        open: (resume) => ensemble.open(resume),
        root,
        sessionMs,
        gatewayUuid: start.gatewayUuid,
        queueMax,
        before: { coordinatorId: start.meta(COORDINATOR_FACT), session: start.meta(SESSION_FACT) },
        highestToken: () => journalKnows(start, volumes),
        onUntitled: (volume) => untitled(volume),
        remember: async (name, value) => {
          await journal.commit([{ op: 'meta_put', name, value }]);
        },
        log,
      });
      coordination.onState((state) => {
        if (state === 'suspended' || state === 'lost') metrics.interrupted(state);
      });
      return coordination;
    },
    failed: new Promise((resolve) => ensemble.onFailure(resolve)),
    start: (how) => made().start(how),
    stop: async () => {
      await coordination?.stop();
      await ensemble.stop();
    },
  };
}
