import { PYTHON } from '../load/run-kazoo.ts';
import { ProcessTree } from '../measure/process-tree.ts';
import { command } from '../place/command.ts';
import type { Needed } from '../place/packages.ts';
import type { Peer, RunningPeer } from '../stage.ts';
import { firstLine } from './etcd.ts';
import type { RunningEnsemble } from './zookeeper.ts';

const MODULE = '/usr/lib/python3/dist-packages/kazoo/__init__.py';

export const KAZOO: Needed = { command: MODULE, package: 'python3-kazoo' };

/** A client library: what it costs the servers is the ensemble's. */
export interface RunningKazoo extends RunningPeer {
  readonly connect: string;
}

export function kazoo(id: string, over: Peer<RunningEnsemble>): Peer<RunningKazoo> {
  return {
    id,
    needs: [...over.needs, KAZOO],
    start: async (_directory, stage) => {
      const { connect, pids } = await stage.running(over);
      const version = firstLine(
        await command(PYTHON, ['-c', 'import kazoo.version, sys; print("kazoo", kazoo.version.__version__, "on Python", sys.version.split()[0])']),
      );
      const processes = new ProcessTree(...pids);
      return { connect, version, processes, ensemble: processes };
    },
  };
}
