import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { steadyPort } from './steady-port.ts';
import { until } from './until.ts';
import { ZooKeeperProxy } from './zookeeper-proxy.ts';

const JAR = '/usr/share/java/zookeeper.jar';
const SAID_MAX = 4_000;
/** Where a server keeps its snapshots and its log, below its directory. */
export const KNOWN = 'version-2';
const MAIN = 'org.apache.zookeeper.server.quorum.QuorumPeerMain';

export interface EnsembleOptions {
  readonly size?: 1 | 3;
  readonly tickMs?: number;
  /** After so many ticks a follower that hears nothing of its leader gives up. */
  readonly syncLimit?: number;
  /** Whether each write waits for the disk. Off in tests: no test pulls the plug. */
  readonly forceSync?: boolean;
  readonly heapMb?: number;
  /** Whether its snapshots carry digests. */
  readonly digests?: boolean;
}

/** One server, as a process of its own. */
export class TestServer {
  readonly id: number;
  readonly port: number;
  readonly directory: string;
  readonly #options: EnsembleOptions;
  #process: ChildProcess | null = null;
  #problem: string | null = null;

  constructor(id: number, port: number, directory: string, options: EnsembleOptions) {
    this.id = id;
    this.port = port;
    this.directory = directory;
    this.#options = options;
  }

  start(): void {
    const { heapMb = 192, forceSync = false, digests = true } = this.#options;
    const settings = [`-Dzookeeper.forceSync=${forceSync ? 'yes' : 'no'}`, `-Dzookeeper.digest.enabled=${digests}`];
    const java = [`-Xmx${heapMb}m`, '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', ...settings];
    // It ends with the tests, however they end.
    const command = ['--pdeathsig', 'KILL', 'java', ...java, '-cp', JAR, MAIN, join(this.directory, 'zoo.cfg')];
    const started = spawn('setpriv', command, { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    started.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-SAID_MAX)));
    started.once('exit', (code) => {
      // Nobody killed it.
      if (this.#process === started) this.#problem = `server ${this.id} ended with ${code}: ${said}`;
    });
    this.#problem = null;
    this.#process = started;
  }

  /** Throws when it ended by itself. */
  assertRuns(): void {
    if (this.#problem !== null) throw new Error(this.#problem);
  }

  get isRunning(): boolean {
    return this.#process !== null;
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  async kill(): Promise<void> {
    const ended = this.#process;
    if (ended === null) return;
    this.#process = null;
    const gone = new Promise((resolve) => ended.once('exit', resolve));
    ended.kill('SIGKILL');
    await gone;
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#process?.kill(signal);
  }

  /** `standalone`, `leader`, `follower`; `null` while it serves nobody. */
  async role(): Promise<string | null> {
    return /^Mode: (\w+)$/m.exec(await this.ask('srvr'))?.[1] ?? null;
  }

  /** The answer to a four letter word; empty when there is none. */
  ask(word: 'srvr' | 'mntr' | 'cons' | 'dump'): Promise<string> {
    return new Promise((resolve) => {
      let text = '';
      const socket = connect(this.port, '127.0.0.1', () => socket.write(word));
      socket.setEncoding('utf8').setTimeout(2_000, () => socket.destroy());
      socket.on('data', (part: string) => (text += part));
      socket.on('error', () => undefined);
      socket.on('close', () => resolve(text));
    });
  }
}

/** An ensemble on the loopback, of one server or of three with a real quorum, whose links among each other can be silenced. */
export class TestEnsemble {
  readonly servers: readonly TestServer[];
  readonly #directory: string;
  /** By "who connects" and "to whom". */
  readonly #links: ReadonlyMap<string, ZooKeeperProxy>;

  private constructor(directory: string, servers: readonly TestServer[], links: ReadonlyMap<string, ZooKeeperProxy>) {
    this.#directory = directory;
    this.servers = servers;
    this.#links = links;
  }

  /** Resolves when it serves. Whoever starts it stops it. */
  static async start(options: EnsembleOptions = {}): Promise<TestEnsemble> {
    const directory = mkdtempSync(join(tmpdir(), 'fencegate-zookeeper-'));
    const ids = Array.from({ length: options.size ?? 1 }, (_, index) => index + 1);
    const ports = await Promise.all(ids.map(async () => ({ client: await steadyPort(), quorum: await steadyPort(), election: await steadyPort() })));
    const links = new Map<string, ZooKeeperProxy>();
    const servers: TestServer[] = [];
    for (const [index, id] of ids.entries()) {
      const own = join(directory, String(id));
      mkdirSync(own);
      writeFileSync(join(own, 'myid'), String(id));
      const lines: string[] = [];
      for (const [other, { quorum, election }] of ports.entries()) {
        if (ids.length === 1) break;
        const link = other === index ? null : await ZooKeeperProxy.between(quorum);
        if (link !== null) links.set(`${id}-${other + 1}`, link);
        lines.push(`server.${other + 1}=127.0.0.1:${link?.port ?? quorum}:${election}`);
      }
      const port = ports[index]?.client ?? 0;
      writeFileSync(join(own, 'zoo.cfg'), [...settings(own, port, options), ...lines].join('\n'));
      servers.push(new TestServer(id, port, own, options));
    }
    const ensemble = new TestEnsemble(directory, servers, links);
    for (const server of servers) server.start();
    await ensemble.serving();
    return ensemble;
  }

  get connect(): string {
    return this.servers.map(({ port }) => `127.0.0.1:${port}`).join(',');
  }

  get addresses(): { host: string; port: number }[] {
    return this.servers.map(({ port }) => ({ host: '127.0.0.1', port }));
  }

  /** Resolves when all that run serve. */
  async serving(): Promise<void> {
    await until(async () => {
      for (const server of this.servers) server.assertRuns();
      const roles = await Promise.all(this.servers.filter(({ isRunning }) => isRunning).map((server) => server.role()));
      return roles.every((role) => role !== null) ? roles : null;
    });
  }

  leader(): Promise<TestServer> {
    return this.#with('leader');
  }

  follower(): Promise<TestServer> {
    return this.#with('follower');
  }

  /** From now on no byte passes between these two; neither is told. */
  part(one: TestServer, other: TestServer): void {
    for (const name of [`${one.id}-${other.id}`, `${other.id}-${one.id}`]) this.#links.get(name)?.silence();
  }

  /** Whatever this server and its leader say to each other takes this much longer, in each direction. */
  delay(server: TestServer, ms: number): void {
    for (const [name, link] of this.#links) if (name.split('-').includes(String(server.id))) link.delay(ms);
  }

  heal(): void {
    for (const link of this.#links.values()) {
      link.delay(0);
      link.mend();
    }
  }

  /** What the servers know is changed while none of them runs; resolves when they serve again. */
  async whileStopped(change: (directories: readonly string[]) => void): Promise<void> {
    await Promise.all(this.servers.map((server) => server.kill()));
    change(this.servers.map(({ directory }) => directory));
    for (const server of this.servers) server.start();
    await this.serving();
  }

  /** Keeps what each server knows now, which is copied at rest: what is being written may be no state to start from. @returns how to put it back. */
  async kept(): Promise<() => Promise<void>> {
    const keep = (directory: string): string => `${directory}-kept`;
    await this.whileStopped((directories) => {
      for (const directory of directories) cpSync(join(directory, KNOWN), keep(directory), { recursive: true });
    });
    return () =>
      this.whileStopped((directories) => {
        for (const directory of directories) {
          rmSync(join(directory, KNOWN), { recursive: true });
          renameSync(keep(directory), join(directory, KNOWN));
        }
      });
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.kill()));
    await Promise.all([...this.#links.values()].map((link) => link.close()));
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #with(role: string): Promise<TestServer> {
    return until(async () => {
      for (const server of this.servers) if (server.isRunning && (await server.role()) === role) return server;
      return null;
    });
  }
}

function settings(directory: string, port: number, { tickMs = 200, syncLimit = 10 }: EnsembleOptions): string[] {
  return [
    `tickTime=${tickMs}`,
    'initLimit=50',
    `syncLimit=${syncLimit}`,
    `dataDir=${directory}`,
    `clientPort=${port}`,
    'clientPortAddress=127.0.0.1',
    'maxClientCnxns=0',
    'maxSessionTimeout=600000',
    'admin.enableServer=false',
    '4lw.commands.whitelist=srvr,mntr,cons,dump',
    'preAllocSize=1024',
  ];
}
