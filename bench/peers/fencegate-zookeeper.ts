import { fileURLToPath } from 'node:url';
import { PYTHON } from '../load/run-kazoo.ts';
import { ProcessTree } from '../measure/process-tree.ts';
import { command } from '../place/command.ts';
import type { Peer } from '../stage.ts';
import type { ServerOnPort } from './etcd.ts';
import { RunningFencegate, VOLUME } from './fencegate.ts';
import { KAZOO } from './kazoo.ts';
import type { RunningEnsemble } from './zookeeper.ts';

const FILL = fileURLToPath(new URL('../load/kazoo/fill.py', import.meta.url));

/** A gateway whose leases are decided by an ensemble. Its processes are its own three and those of the servers. */
export interface FencegateOverZookeeper extends ServerOnPort {
  liveHeapBytes(): Promise<number>;
}

/** @param nodes resource nodes that are there before, as if so many names had been locked once. */
export function fencegateOver(id: string, ensemble: Peer<RunningEnsemble>, nodes = 0): Peer<FencegateOverZookeeper> {
  return {
    id,
    needs: nodes === 0 ? ensemble.needs : [...ensemble.needs, KAZOO],
    start: async (directory, stage) => {
      const zookeeper = await stage.running(ensemble);
      const settings = { FENCEGATE_COORDINATOR: 'zookeeper', FENCEGATE_ZOOKEEPER_CONNECT: zookeeper.connect };
      const gateway = await RunningFencegate.start(id, directory, stage, settings);
      if (nodes > 0) {
        stage.say(`making ${nodes.toLocaleString('en-US')} resource nodes ...`);
        await command('setpriv', ['--pdeathsig', 'KILL', '--', PYTHON, FILL, zookeeper.connect, `/locks/${VOLUME}`, String(nodes)]);
      }
      return {
        port: gateway.port,
        version: gateway.version,
        processes: new ProcessTree(...gateway.pids, ...zookeeper.pids),
        ensemble: zookeeper.processes,
        liveHeapBytes: () => zookeeper.liveHeapBytes(),
      };
    },
  };
}
