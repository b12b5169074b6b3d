import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { answers, freePort } from './free-port.ts';
import { newDirectory, removeDirectory } from './gateway-settings.ts';
import { until } from './until.ts';

const NGINX = '/usr/sbin/nginx';
const DOCUMENTED_GATEWAY = 'http://127.0.0.1:8080';

/** What docs/operations.md tells people to write. */
export function documentedLocation(): string {
  const text = readFileSync(fileURLToPath(new URL('../../docs/operations.md', import.meta.url)), 'utf8');
  const block = /```nginx\n(.*?)```/s.exec(text)?.[1];
  if (block?.includes(DOCUMENTED_GATEWAY) !== true) throw new Error('docs/operations.md has no nginx block for a gateway on 127.0.0.1:8080');
  return block;
}

/** nginx in front of a gateway, on a port of its own. */
export class Nginx {
  readonly url: string;
  readonly #process: ChildProcess;
  readonly #directory: string;

  private constructor(url: string, process: ChildProcess, directory: string) {
    this.url = url;
    this.#process = process;
    this.#directory = directory;
  }

  /** @param location the `location` block, which speaks of the gateway by its documented address. */
  static async start(gatewayUrl: string, location: string): Promise<Nginx> {
    const [port, directory] = [await freePort(), await newDirectory()];
    const file = join(directory, 'nginx.conf');
    await writeFile(file, configuration(port, directory, location.replaceAll(DOCUMENTED_GATEWAY, gatewayUrl)));
    const child = spawn(NGINX, ['-c', file, '-e', join(directory, 'error.log')], { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
    await until(async () => {
      if (child.exitCode !== null) throw new Error(`nginx did not start: ${said}`);
      return (await answers(port)) ? true : null;
    });
    return new Nginx(`http://127.0.0.1:${port}`, child, directory);
  }

  async stop(): Promise<void> {
    const gone = new Promise((resolve) => this.#process.once('exit', resolve));
    this.#process.kill('SIGTERM');
    await gone;
    await removeDirectory(this.#directory);
  }
}

function configuration(port: number, directory: string, location: string): string {
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((of) => `${of}_temp_path ${directory}/${of};`).join(' ');
  return `${user} daemon off; worker_processes 1; pid ${directory}/pid;
events { worker_connections 256; }
http {
  access_log off;
  ${temporary}
  server {
    listen 127.0.0.1:${port};
    ${location}
  }
}
`;
}
