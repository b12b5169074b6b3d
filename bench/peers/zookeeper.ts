import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ProcessTree } from '../measure/process-tree.ts';
import type { Needed } from '../place/packages.ts';
import { freePort } from '../place/port.ts';
import { startServer } from '../place/server.ts';
import type { Peer, RunningPeer, Stage } from '../stage.ts';
import { firstLine } from './etcd.ts';

const JAR = '/usr/share/java/zookeeper.jar';
const MAIN = 'org.apache.zookeeper.server.quorum.QuorumPeerMain';
const ASK_MS_MAX = 2_000;
const COLLECT_MS_MAX = 60_000;
const LOOK_AGAIN_MS = 50;
const MIB = 1024 * 1024;

export const ZOOKEEPER_NEEDS: readonly Needed[] = [
  { command: JAR, package: 'zookeeper' },
  { command: 'java', package: 'default-jre-headless' },
];

/** One server, or a quorum on the loopback; each syncs its log before it answers, on the benchmark's file system. */
export class RunningEnsemble implements RunningPeer {
  /** As clients are told it. */
  readonly connect: string;
  readonly version: string;
  readonly pids: readonly number[];
  readonly #collected: string;

  constructor(ports: readonly number[], pids: readonly number[], version: string, collected: string) {
    this.connect = ports.map((port) => `127.0.0.1:${port}`).join(',');
    this.pids = pids;
    this.version = version;
    this.#collected = collected;
  }

  get processes(): ProcessTree {
    return new ProcessTree(...this.pids);
  }

  /** What the first server's heap holds after a full collection, which this asks for. */
  async liveHeapBytes(): Promise<number> {
    const before = this.#collections().length;
    const [first] = this.pids;
    if (first !== undefined) process.kill(first, 'SIGQUIT');
    for (const untilMs = performance.now() + COLLECT_MS_MAX; performance.now() < untilMs; await delay(LOOK_AGAIN_MS)) {
      const after = this.#collections();
      if (after.length > before) return (after.at(-1) ?? 0) * MIB;
    }
    throw new Error('the server collected nothing');
  }

  #collections(): readonly number[] {
    return [...readFileSync(this.#collected, 'utf8').matchAll(/Pause Full .*->(\d+)M\(/g)].map(([, mib]) => Number(mib));
  }
}

export function zookeeper(id: string, size: 1 | 3): Peer<RunningEnsemble> {
  return { id, needs: ZOOKEEPER_NEEDS, start: (directory, stage) => startEnsemble(id, size, directory, stage) };
}

async function startEnsemble(name: string, size: number, directory: string, stage: Stage): Promise<RunningEnsemble> {
  const ports: { readonly client: number; readonly quorum: number; readonly election: number }[] = [];
  for (let id = 1; id <= size; id++) ports.push({ client: await freePort(), quorum: await freePort(), election: await freePort() });
  const servers = size === 1 ? [] : ports.map(({ quorum, election }, index) => `server.${index + 1}=127.0.0.1:${quorum}:${election}`);
  const pids = await Promise.all(
    ports.map(async ({ client }, index) => {
      const own = join(directory, String(index + 1));
      await mkdir(own);
      await writeFile(join(own, 'myid'), String(index + 1));
      await writeFile(join(own, 'zoo.cfg'), [...settings(own, client), ...servers].join('\n'));
      return startServer(
        { name: `${name} ${index + 1}`, ...program(own), isReady: async () => (await ask(client)).includes('\nMode: ') },
        stage.endings,
      );
    }),
  );
  const said = firstLine(await ask(ports[0]?.client ?? 0));
  return new RunningEnsemble(
    ports.map(({ client }) => client),
    pids,
    said.replace(/^(Zookeeper version: [^,-]*).*$/, '$1'),
    join(directory, '1', 'gc.log'),
  );
}

/** A collection that SIGQUIT asks for is in the log with what is left after it. */
function program(own: string) {
  const java = ['-Xms64m', '-Xmx2g', '-XX:+UseG1GC', '-XX:+PrintClassHistogram', `-Xlog:gc:file=${join(own, 'gc.log')}:uptime:filecount=0`];
  return { command: 'java', args: [...java, '-cp', JAR, MAIN, join(own, 'zoo.cfg')], env: {}, workingDirectory: own };
}

function settings(own: string, port: number): readonly string[] {
  return [
    'tickTime=2000',
    'initLimit=10',
    'syncLimit=5',
    `dataDir=${own}`,
    `clientPort=${port}`,
    'clientPortAddress=127.0.0.1',
    'maxClientCnxns=0',
    'admin.enableServer=false',
    '4lw.commands.whitelist=srvr',
  ];
}

/** What it says of itself; nothing while it does not listen. */
function ask(port: number): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () => socket.write('srvr'));
    socket.setEncoding('utf8').setTimeout(ASK_MS_MAX, () => socket.destroy());
    socket.on('data', (part: string) => {
      text += part;
    });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(text));
  });
}
