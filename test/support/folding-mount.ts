import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from './until.ts';

/** A file system for one test that takes upper and lower case for the same name: NTFS, served by a process of ours. */
export interface FoldingMount {
  readonly path: string;
  /** Ends the process that serves it: from now on every call fails with ENOTCONN, as on a server that went away. */
  die(): Promise<void>;
  unmount(): Promise<void>;
}

const SERVER = 'lowntfs-3g';

/** Why there is none here; `null` when there can be. */
export const cannotFold: string | null = (() => {
  if (process.getuid?.() !== 0 || spawnSync('test', ['-w', '/dev/fuse']).status !== 0) return 'a FUSE mount needs root and /dev/fuse';
  return spawnSync('sh', ['-c', `command -v ${SERVER} && command -v mkntfs`]).status === 0 ? null : 'it needs the Debian package ntfs-3g';
})();

export async function mountFolding(): Promise<FoldingMount> {
  const place = mkdtempSync(join(tmpdir(), 'fencegate-folding-'));
  const [image, path] = [join(place, 'image'), join(place, 'mount')];
  writeFileSync(image, '');
  truncateSync(image, 32 * 1_048_576);
  run('mkntfs', ['-F', '-Q', image]);
  mkdirSync(path);
  const server: ChildProcess = spawn(SERVER, ['-o', 'ignore_case,no_detach', image, path], { stdio: 'ignore' });
  await until(() => (readFileSync('/proc/self/mounts', 'utf8').includes(path) ? true : null));
  const die = async (): Promise<void> => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    server.kill('SIGKILL');
    await ended;
  };
  return {
    path,
    die,
    unmount: async () => {
      run('umount', ['-l', path]);
      await die();
      rmSync(place, { recursive: true, force: true });
    },
  };
}

function run(command: string, args: readonly string[]): void {
  execFileSync(command, args, { stdio: 'pipe' });
}
