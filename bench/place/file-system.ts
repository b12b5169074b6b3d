import { chmod, mkdtemp, open, rm, statfs, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Endings } from '../endings.ts';
import { command } from './command.ts';

/** Room for the bodies of 1 GiB and of 4 times 256 MiB, each old, staged and new at once, for every peer. */
const IMAGE_BYTES = 12 * 1024 ** 3;
const UNMOUNT_TRIES_MAX = 50;
const UNMOUNT_AGAIN_MS = 200;

/** Where the servers keep their files during a run. */
export interface Place {
  readonly directory: string;
  /** For people: type, journal or not, and on what. */
  readonly description: string;
  /** The kernel's own account of the block device below, or `null` when it has none. */
  readonly deviceStat: string | null;
  /** False on anything but the benchmark's own ext4: others may answer a sync before the data is on a disk. */
  readonly journalled: boolean;
}

/**
 * Makes a place for the run: an ext4 with a journal in a sparse file, mounted over a loop device. Where that is not allowed
 * (no root, no loop devices), and when `directory` is given, a plain directory whose file system is named instead.
 */
export async function makePlace(directory: string | null, endings: Endings, say: (line: string) => void): Promise<Place> {
  const base = await mkdtemp(join(directory ?? tmpdir(), 'fencegate-bench-'));
  // A server that gives up root for a user of its own must find its files.
  await chmod(base, 0o711);
  endings.add('the working directory', () => rm(base, { recursive: true, force: true }));
  if (directory === null) {
    const mounted = await mountImage(base, endings).catch((thrown: unknown) => {
      say(`a loop-mounted ext4 is not possible here (${String(thrown).split('\n')[0]}); using a plain directory`);
      return null;
    });
    if (mounted !== null)
      return { directory: mounted, description: await describe(mounted), deviceStat: await deviceStat(mounted), journalled: true };
  }
  return {
    directory: base,
    description: `${await describe(base)}, a plain directory; compare no figure of it with those of another file system`,
    deviceStat: await deviceStat(base),
    journalled: false,
  };
}

/** Writes everything to the disk, so that one turn does not pay for what another left in memory. */
export async function settleDisk(place: Place): Promise<void> {
  await command('sync', ['-f', place.directory]);
}

async function mountImage(base: string, endings: Endings): Promise<string> {
  const image = join(base, 'image');
  const mountPoint = join(base, 'mount');
  const file = await open(image, 'wx');
  await file.truncate(IMAGE_BYTES);
  await file.close();
  // Without lazy initialisation: otherwise the kernel writes inode tables in the background of the first minutes.
  await command('mkfs.ext4', ['-q', '-F', '-E', 'lazy_itable_init=0,lazy_journal_init=0', image]);
  await command('mkdir', [mountPoint]);
  await command('mount', ['-o', 'loop,noatime', image, mountPoint]);
  endings.add('the loop mount', () => unmount(mountPoint));
  // The mount keeps it; when the benchmark is killed, unmounting alone gives the space back.
  await unlink(image);
  return mountPoint;
}

/** Tries again for a while: after an interrupt a command of the turn that was cut off may still be on it. */
async function unmount(mountPoint: string): Promise<void> {
  for (let triesLeft = UNMOUNT_TRIES_MAX; ; triesLeft--) {
    try {
      await command('umount', [mountPoint]);
      return;
    } catch (thrown) {
      if (triesLeft <= 1) throw thrown;
      await delay(UNMOUNT_AGAIN_MS);
    }
  }
}

async function describe(directory: string): Promise<string> {
  const [source, type, options] = (await command('findmnt', ['-n', '-o', 'SOURCE,FSTYPE,OPTIONS', '--target', directory])).trim().split(/\s+/);
  const { blocks, bsize } = await statfs(directory);
  return `${type} on ${source} (${options}), ${Math.round((blocks * bsize) / 1024 ** 3)} GiB`;
}

async function deviceStat(directory: string): Promise<string | null> {
  const numbers = (await command('findmnt', ['-n', '-o', 'MAJ:MIN', '--target', directory])).trim();
  const path = `/sys/dev/block/${numbers}/stat`;
  return command('test', ['-r', path]).then(
    () => path,
    () => null,
  );
}
