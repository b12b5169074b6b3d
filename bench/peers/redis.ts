import { once } from 'node:events';
import { connect } from 'node:net';
import { ProcessTree } from '../measure/process-tree.ts';
import { command } from '../place/command.ts';
import { freePort } from '../place/port.ts';
import { startServer } from '../place/server.ts';
import type { Peer } from '../stage.ts';
import { firstLine, type ServerOnPort } from './etcd.ts';

const REDIS = '/usr/bin/redis-server';

/** One Redis whose log is synced before each answer; without that a lock would not survive a restart. */
export const redis: Peer<ServerOnPort> = {
  id: 'redis',
  needs: [{ command: REDIS, package: 'redis-server' }],
  start: async (directory, stage) => {
    const port = await freePort();
    const settings = { port, bind: '127.0.0.1', dir: directory, appendonly: 'yes', appendfsync: 'always', daemonize: 'no' };
    const args = [...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]), '--save', ''];
    const isReady = (): Promise<boolean> => answersPing(port);
    const pid = await startServer({ name: 'redis', command: REDIS, args, env: {}, workingDirectory: directory, isReady }, stage.endings);
    return {
      port,
      version: firstLine(await command(REDIS, ['--version']))
        .split(' ')
        .slice(0, 3)
        .join(' '),
      processes: new ProcessTree(pid),
    };
  },
};

async function answersPing(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    socket.write('PING\r\n');
    const [bytes] = (await once(socket, 'data')) as [Buffer];
    return bytes.toString('latin1').startsWith('+PONG');
  } finally {
    socket.destroy();
  }
}
