import { join } from 'node:path';
import { ProcessTree } from '../measure/process-tree.ts';
import { command } from '../place/command.ts';
import { freePort } from '../place/port.ts';
import { startServer } from '../place/server.ts';
import type { Peer, RunningPeer } from '../stage.ts';

const ETCD = '/usr/bin/etcd';

export interface ServerOnPort extends RunningPeer {
  readonly port: number;
}

/** One etcd as it comes: every change is synced before its answer. */
export const etcd: Peer<ServerOnPort> = {
  id: 'etcd',
  needs: [{ command: ETCD, package: 'etcd-server' }],
  start: async (directory, stage) => {
    const port = await freePort();
    const peers = `http://127.0.0.1:${await freePort()}`;
    const clients = `http://127.0.0.1:${port}`;
    const args = [
      '--data-dir',
      join(directory, 'data'),
      '--listen-client-urls',
      clients,
      '--advertise-client-urls',
      clients,
      '--listen-peer-urls',
      peers,
      '--initial-advertise-peer-urls',
      peers,
      '--initial-cluster',
      `default=${peers}`,
    ];
    // Debian's build refuses machines other than amd64 without this, and reads nothing else from it.
    const env = { ETCD_UNSUPPORTED_ARCH: process.arch };
    const isReady = async (): Promise<boolean> => (await (await fetch(`${clients}/health`)).text()).includes('true');
    const pid = await startServer(
      { name: 'etcd', command: ETCD, args: [...args, '--log-level', 'error', '--logger', 'zap'], env, workingDirectory: directory, isReady },
      stage.endings,
    );
    return { port, version: firstLine(await command(ETCD, ['--version'])), processes: new ProcessTree(pid) };
  },
};

export function firstLine(text: string): string {
  return text.trim().split('\n', 1)[0] ?? '';
}
