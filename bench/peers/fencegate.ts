import { existsSync, readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ProcessTree } from '../measure/process-tree.ts';
import { freePort } from '../place/port.ts';
import { endProcess, startServer } from '../place/server.ts';
import type { Peer, Stage } from '../stage.ts';
import { StopLine } from '../stop-line.ts';
import { type BenchLease, HeldLeases } from './held-leases.ts';
import type { HttpPeer } from './http-peer.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Beyond the defaults. */
type Settings = Readonly<Record<string, string>>;

/** The gateway's volume in every run. */
export const VOLUME = 'bench';

/** The gateway as it is installed: built, one process, default settings, journal and volume on the benchmark's file system. */
export class RunningFencegate implements HttpPeer {
  readonly port: number;
  readonly version = `fencegate/${version()}`;
  /** Its database, for who fills it while the gateway is stopped. */
  readonly journalFile: string;
  readonly #directory: string;
  readonly #name: string;
  readonly #stage: Stage;
  readonly #settings: Settings;
  readonly #leases: HeldLeases;
  #pid: number;

  private constructor(name: string, directory: string, port: number, pid: number, stage: Stage, settings: Settings) {
    this.#name = name;
    this.#directory = directory;
    this.port = port;
    this.#pid = pid;
    this.#stage = stage;
    this.#settings = settings;
    this.#leases = new HeldLeases(port, VOLUME);
    this.journalFile = join(directory, 'data', 'journal.sqlite');
  }

  static async start(name: string, directory: string, stage: Stage, settings: Settings = {}): Promise<RunningFencegate> {
    if (!existsSync(join(ROOT, 'dist/main.js'))) throw new StopLine('the gateway is not built yet; run npm run build');
    const port = await freePort();
    await mkdir(join(directory, 'volume'));
    const pid = await launch(name, directory, port, stage, settings);
    return new RunningFencegate(name, directory, port, pid, stage, settings);
  }

  get processes(): ProcessTree {
    return new ProcessTree(...this.pids);
  }

  /** Of the process there is now. */
  get pids(): readonly number[] {
    return [this.#pid];
  }

  target(file: string): string {
    return `/v1/files/${VOLUME}/${file}`;
  }

  /** A lease on the file that is held for the rest of the run; taken at the first call. */
  held(file: string): Promise<BenchLease> {
    return this.#leases.held(file);
  }

  /** The token of a lease on the file that has ended and was followed by another, which is held. */
  staleToken(file: string): Promise<string> {
    return this.#leases.staleToken(file);
  }

  /** Ends the process, and does something while nobody has its files open. @returns how long the next one took from its start to being ready, ms. */
  async restart(signal: 'SIGTERM' | 'SIGKILL', meanwhile: () => Promise<void> | void = () => undefined): Promise<number> {
    await endProcess(this.#pid, signal);
    await meanwhile();
    const fromMs = performance.now();
    this.#pid = await launch(this.#name, this.#directory, this.port, this.#stage, this.#settings);
    return performance.now() - fromMs;
  }
}

export const fencegate: Peer<RunningFencegate> = fencegateCalled('fencegate');

/** Another gateway with files and a journal of its own. */
export function fencegateCalled(
  id: string,
  prepare: (running: RunningFencegate, stage: Stage) => Promise<void> = () => Promise.resolve(),
): Peer<RunningFencegate> {
  return {
    id,
    needs: [],
    start: async (directory, stage) => {
      const running = await RunningFencegate.start(id, directory, stage);
      await prepare(running, stage);
      return running;
    },
  };
}

function launch(name: string, directory: string, port: number, stage: Stage, settings: Settings): Promise<number> {
  const env = {
    FENCEGATE_PORT: String(port),
    FENCEGATE_DATA_DIR: join(directory, 'data'),
    FENCEGATE_VOLUMES: `${VOLUME}=${join(directory, 'volume')}`,
    FENCEGATE_LOG_LEVEL: 'error',
    ...settings,
  };
  const isReady = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok;
  return startServer(
    { name, command: process.execPath, args: [join(ROOT, 'bin/fencegate.cjs'), 'serve'], env, workingDirectory: directory, isReady },
    stage.endings,
  );
}

function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  return typeof manifest === 'object' && manifest !== null && 'version' in manifest ? String(manifest.version) : 'unknown';
}
