import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ProcessTree } from '../measure/process-tree.ts';
import { command } from '../place/command.ts';
import { freePort } from '../place/port.ts';
import { startServer } from '../place/server.ts';
import type { Peer, Stage } from '../stage.ts';
import type { HttpPeer } from './http-peer.ts';

const NGINX = '/usr/sbin/nginx';
const PRELOAD_SOURCE = fileURLToPath(new URL('../preload/sync-on-rename.c', import.meta.url));

/**
 * nginx with its dav module: replaces a file by a rename and syncs nothing. Each nginx has the number of workers that suits
 * it: this one is fastest with one for each processor, while a worker that syncs stands still, so the other needs many more.
 */
export function nginx(workers: number): Peer<HttpPeer> {
  return {
    id: 'nginx',
    needs: [{ command: 'nginx', package: 'nginx-extras' }],
    start: (directory, stage) => startNginx({ name: 'nginx', directory, workers }, stage),
  };
}

/** The same nginx, made to sync the file before the rename and the directory after it. */
export function nginxWithFsync(workers: number): Peer<HttpPeer> {
  return {
    id: 'nginx+fsync',
    needs: [
      { command: 'nginx', package: 'nginx-extras' },
      { command: 'gcc', package: 'gcc' },
    ],
    start: async (directory, stage) => {
      const library = join(directory, 'sync-on-rename.so');
      await command('gcc', ['-O2', '-Wall', '-shared', '-fPIC', '-o', library, PRELOAD_SOURCE, '-ldl']);
      return startNginx({ name: 'nginx+fsync', directory, workers, env: { LD_PRELOAD: library } }, stage);
    },
  };
}

export interface NginxStart {
  readonly name: string;
  readonly directory: string;
  readonly workers: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly parts?: ConfigurationParts;
}

/** Lines for three places of the configuration. */
interface ConfigurationParts {
  readonly top: string;
  readonly http: string;
  readonly location: string;
}

export async function startNginx(
  { name, directory, workers, env = {}, parts = { top: '', http: '', location: '' } }: NginxStart,
  stage: Stage,
): Promise<HttpPeer> {
  const port = await freePort();
  const configuration = join(directory, 'nginx.conf');
  await mkdir(join(directory, 'files'));
  await writeFile(configuration, configurationText(directory, port, workers, parts));
  const pid = await startServer(
    {
      name,
      command: NGINX,
      args: ['-c', configuration, '-e', join(directory, 'error.log')],
      env,
      workingDirectory: directory,
      isReady: () => answers(port),
    },
    stage.endings,
  );
  return { port, version: await nginxVersion(), processes: new ProcessTree(pid), target: (file) => `/${file}` };
}

/** Bodies are staged on the same file system as the files, as they must be for a rename. No access log; nothing else is tuned. */
function configurationText(directory: string, port: number, workers: number, parts: ConfigurationParts): string {
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  return `${parts.top}
${user}
daemon off;
worker_processes ${workers};
pid ${directory}/pid;
error_log ${directory}/error.log error;
events { worker_connections 1024; }
http {
  access_log off;
  sendfile on;
  keepalive_requests 1000000000;
  client_max_body_size 0;
  ${parts.http}
  client_body_temp_path ${directory}/staged;
  server {
    listen 127.0.0.1:${port};
    root ${directory}/files;
    location / { dav_methods PUT DELETE; create_full_put_path on; ${parts.location} }
  }
}
`;
}

/** True when somebody accepts a connection. */
export async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } finally {
    socket.destroy();
  }
}

export async function nginxVersion(): Promise<string> {
  const { stderr } = await promisify(execFile)(NGINX, ['-v']);
  return stderr.trim().replace('nginx version: ', '');
}
