import { mkdir } from 'node:fs/promises';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ProcessTree } from '../measure/process-tree.ts';
import { freePort } from '../place/port.ts';
import { startServer } from '../place/server.ts';
import { StopLine } from '../stop-line.ts';
import type { Peer } from '../stage.ts';
import { type BenchLease, HeldLeases } from './held-leases.ts';
import type { HttpPeer } from './http-peer.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const VOLUME = 'bench';

export interface RunningFencegate extends HttpPeer {
  /** A lease on the file that is held for the rest of the run; taken at the first call. */
  held(file: string): Promise<BenchLease>;
  /** The token of a lease on the file that has ended and was followed by another, which is held. */
  staleToken(file: string): Promise<string>;
}

/** The gateway as it is installed: built, one process, default settings, journal and volume on the benchmark's file system. */
export const fencegate: Peer<RunningFencegate> = {
  id: 'fencegate',
  needs: [],
  start: async (directory, stage) => {
    if (!existsSync(join(ROOT, 'dist/main.js'))) throw new StopLine('the gateway is not built yet; run npm run build');
    const port = await freePort();
    const volume = join(directory, 'volume');
    await mkdir(volume);
    const env = {
      FENCEGATE_PORT: String(port),
      FENCEGATE_DATA_DIR: join(directory, 'data'),
      FENCEGATE_VOLUMES: `${VOLUME}=${volume}`,
      FENCEGATE_LOG_LEVEL: 'error',
    };
    const isReady = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok;
    const pid = await startServer({ name: 'fencegate', command: process.execPath, args: [join(ROOT, 'bin/fencegate.cjs'), 'serve'], env, workingDirectory: directory, isReady }, stage.endings);
    const leases = new HeldLeases(port, VOLUME);
    return {
      port,
      version: `fencegate/${version()}`,
      processes: new ProcessTree(pid),
      target: (file) => `/v1/files/${VOLUME}/${file}`,
      held: (file) => leases.held(file),
      staleToken: (file) => leases.staleToken(file),
    };
  },
};

function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  return typeof manifest === 'object' && manifest !== null && 'version' in manifest ? String(manifest.version) : 'unknown';
}
