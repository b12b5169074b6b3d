import { execFileSync, spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A file system of its own for one test. `unmount` must be called, also when the test failed. */
export interface Mounted {
  readonly path: string;
  remount(options: string): void;
  /** From now on every change hangs in the kernel, as on a mount whose server is gone; until `thaw`, which `unmount` calls. */
  freeze(): void;
  thaw(): void;
  unmount(): void;
}

/** Why file systems cannot be mounted here; `null` when they can. */
export const cannotMount: string | null = process.getuid?.() === 0 && tryMount() ? null : 'mounting needs root and CAP_SYS_ADMIN';

export function mountTmpfs(options: string): Mounted {
  return mounted(
    (path) => run('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', path]),
    () => undefined,
  );
}

/**
 * A loop-mounted image made by `mkfs.<type>`; it lies in `where`, which is its disk, or in memory: a busy disk of the machine is then not taken for
 * one that hangs. Throws when the tool is missing or the kernel refuses the image.
 */
export function mountImage(
  type: string,
  sizeMiB: number,
  mkfsOptions: readonly string[],
  prepare: (path: string) => void = () => undefined,
  where = inMemory(),
): Mounted {
  const image = join(fs.mkdtempSync(join(where, 'fencegate-image-')), 'image');
  const drop = (): void => fs.rmSync(join(image, '..'), { recursive: true, force: true });
  try {
    fs.writeFileSync(image, '');
    fs.truncateSync(image, sizeMiB * 1_048_576);
    run(`mkfs.${type}`, [...mkfsOptions, image]);
    return mounted((path) => {
      run('mount', ['-o', 'loop', image, path]);
      prepare(path);
    }, drop);
  } catch (error) {
    drop();
    throw error;
  }
}

const MEMORY = '/dev/shm';
const TMPFS = 0x01021994;
const ROOM_BYTES = 2 ** 30;

function inMemory(): string {
  try {
    const { type, bavail, bsize } = fs.statfsSync(MEMORY);
    return type === TMPFS && bavail * bsize > ROOM_BYTES ? MEMORY : tmpdir();
  } catch {
    return tmpdir();
  }
}

/** `source` a second time, at `target` (which must exist and is removed again) or at a new directory. */
export function bindMount(source: string, target?: string): Mounted {
  return mounted(
    (path) => run('mount', ['--bind', source, path]),
    () => undefined,
    target,
  );
}

function mounted(mount: (path: string) => void, after: () => void, target?: string): Mounted {
  const path = target ?? fs.mkdtempSync(join(tmpdir(), 'fencegate-mount-'));
  try {
    mount(path);
  } catch (error) {
    fs.rmdirSync(path);
    throw error;
  }
  const dismiss = guard(path);
  let frozen = false;
  const thaw = (): void => {
    if (frozen) run('fsfreeze', ['--unfreeze', path]);
    frozen = false;
  };
  return {
    path,
    freeze: () => {
      run('fsfreeze', ['--freeze', path]);
      frozen = true;
    },
    thaw,
    remount: (options) => run('mount', ['-o', `remount,${options}`, path]),
    unmount: () => {
      thaw();
      // Lazily: a descriptor that a failed test left must not keep the mount for ever.
      run('umount', ['-l', path]);
      dismiss();
      fs.rmdirSync(path);
      after();
    },
  };
}

/**
 * A test process that is killed unmounts nothing, and what hangs in a file system that it left frozen hangs for ever. The guard sees its
 * pipe close and clears up. Gives the function that sends it away.
 */
function guard(path: string): () => void {
  const script = 'cat > /dev/null; fsfreeze --unfreeze "$0" 2> /dev/null; umount -l "$0"; rmdir "$0"';
  const child = spawn('sh', ['-c', script, path], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  child.unref();
  // A pipe would keep the test process from ending.
  if (child.stdin !== null && 'unref' in child.stdin && typeof child.stdin.unref === 'function') child.stdin.unref();
  return () => void child.kill('SIGKILL');
}

/** Runs one command as root and throws when it fails. */
export function run(command: string, args: readonly string[]): void {
  execFileSync(command, args, { stdio: 'pipe' });
}

function tryMount(): boolean {
  try {
    mountTmpfs('size=64k').unmount();
    return true;
  } catch {
    return false;
  }
}
