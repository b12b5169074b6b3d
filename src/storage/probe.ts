import { constants } from 'node:fs';
import type { Random } from '../domain/clock.ts';
import { refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import { at, type Descriptor } from './descriptor.ts';
import { errnoOf } from './errno.ts';
import type { FileCalls } from './file-calls.ts';
import { fileSystemOf } from './file-system.ts';
import { probeName } from './life/volume-names.ts';
import { openDirectory } from './path-walk.ts';
import { lookAtName } from './target.ts';

/** What a volume can do, found by trying at each start. */
export interface ProbeReport {
  readonly fileSystem: string;
  readonly local: boolean;
  /** `Aa` and `aA` are one file (trap F15). */
  readonly foldsCase: boolean;
  /** A composed and a decomposed letter are one file (trap F16). */
  readonly foldsUnicode: boolean;
  /** Fence keys are folded: one of the two, or a file system where a directory may be switched to folding later. */
  readonly folds: boolean;
  readonly hardLinks: boolean;
  /** Copies that share blocks. */
  readonly reflink: boolean;
  readonly mtimeGranularityNs: bigint;
  /** A rename through the held descriptor of a removed directory fails: the incarnation fence holds here. */
  readonly fenceHolds: boolean;
}

const NEW_FILE = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
/** Always folding, or folding by server or mount option, whatever one directory shows. */
const MAY_FOLD: ReadonlySet<string> = new Set(['cifs', 'smb2', 'ntfs', 'vfat', 'exfat']);

/**
 * Tries a volume out inside `control` (its `.fencegate` directory) and removes what it made. Rejects with `cross_volume` when a
 * rename inside the volume crosses devices (case B20), with the system's error when the volume cannot be written.
 */
export async function probeVolume(calls: FileCalls, control: Descriptor, random: Random): Promise<ProbeReport> {
  const name = probeName(random);
  await calls.mkdirOwn(at(control, name), 0o700);
  const dir = await openDirectory(calls, control, name);
  if (dir === null) throw refuse('volume_unavailable', 'A directory that was just made on the volume is not there.');
  try {
    const { type, local } = fileSystemOf((await calls.statfs(dir)).type);
    const foldsCase = await isSameName(calls, dir, 'Aa', 'aA');
    const foldsUnicode = await isSameName(calls, dir, 'n-\u00e9', 'n-e\u0301');
    await assertRenames(calls, dir);
    return {
      fileSystem: type,
      local,
      foldsCase,
      foldsUnicode,
      folds: foldsCase || foldsUnicode || MAY_FOLD.has(type),
      hardLinks: await canLink(calls, dir),
      reflink: await canReflink(calls, dir),
      mtimeGranularityNs: await mtimeGranularity(calls, dir),
      fenceHolds: await fenceHolds(calls, dir),
    };
  } finally {
    await clear(calls, dir);
    await calls.close(dir).catch(() => undefined);
    await calls.rmdir(at(control, name)).catch(() => undefined); // a later start removes it: `removeProbe`
  }
}

/** Removes what a probe that was cut off left in `control`. Best effort: what an NFS client holds back is there until a later start. */
export async function removeProbe(calls: FileCalls, control: Descriptor, name: string): Promise<void> {
  try {
    const dir = await openDirectory(calls, control, name);
    if (dir === null) return;
    await clear(calls, dir);
    await calls.close(dir);
    await calls.rmdir(at(control, name));
  } catch {
    // It takes up a little room and means nothing to anybody.
  }
}

async function touch(calls: FileCalls, dir: Descriptor, name: string, content = 'x'): Promise<void> {
  const file = await calls.open(at(dir, name), NEW_FILE, 0o600);
  try {
    await calls.writeAll(file, Buffer.from(content), 0);
  } finally {
    await calls.close(file);
  }
}

async function isSameName(calls: FileCalls, dir: Descriptor, made: string, looked: string): Promise<boolean> {
  await touch(calls, dir, made);
  return (await lookAtName(calls, at(dir, looked))) !== null;
}

/** Quota trees and unions can refuse renames between two directories of one volume; staging depends on them (traps F14). */
async function assertRenames(calls: FileCalls, dir: Descriptor): Promise<void> {
  await touch(calls, dir, 'renamed');
  await calls.mkdir(at(dir, 'below'), 0o700);
  const below = await openDirectory(calls, dir, 'below');
  if (below === null) throw refuse('volume_unavailable', 'A directory that was just made on the volume is not there.');
  try {
    await calls.rename(at(dir, 'renamed'), at(below, 'renamed'));
    await calls.rename(at(below, 'renamed'), at(dir, 'renamed'));
  } finally {
    await calls.close(below).catch(() => undefined);
  }
}

async function canLink(calls: FileCalls, dir: Descriptor): Promise<boolean> {
  try {
    await calls.link(at(dir, 'renamed'), at(dir, 'linked'));
  } catch (thrown) {
    const errno = errnoOf(thrown);
    if (errno === 'EPERM' || errno === 'ENOTSUP' || errno === 'ENOSYS' || errno === 'EMLINK') return false;
    throw thrown;
  }
  return (await lookAtName(calls, at(dir, 'linked')))?.links === 2;
}

async function canReflink(calls: FileCalls, dir: Descriptor): Promise<boolean> {
  const source = await calls.open(at(dir, 'renamed'), constants.O_RDONLY);
  try {
    await calls.reflink(source, at(dir, 'reflinked'));
    return true;
  } catch (thrown) {
    if (errnoOf(thrown) === null) throw thrown;
    // Whatever the reason: copies are then made byte by byte.
    return false;
  } finally {
    await calls.close(source);
  }
}

/** The coarsest of these steps that the volume keeps apart; a second is the worst of any file system that is in use. */
async function mtimeGranularity(calls: FileCalls, dir: Descriptor): Promise<bigint> {
  const file = await calls.open(at(dir, 'renamed'), constants.O_RDWR);
  try {
    const base = 1_600_000_000_000_000_000n;
    for (const stepNs of [1_000n, 1_000_000n, 10_000_000n, 1_000_000_000n]) {
      await calls.setMtime(file, base + stepNs);
      if ((await calls.fstat(file)).mtimeNs === base + stepNs) return stepNs;
    }
    return 2_000_000_000n;
  } finally {
    await calls.close(file);
  }
}

/** The self-test of the fence: what a paused predecessor would do, done on purpose. */
async function fenceHolds(calls: FileCalls, dir: Descriptor): Promise<boolean> {
  await touch(calls, dir, 'live');
  await calls.mkdir(at(dir, 'fenced'), 0o700);
  const fenced = await openDirectory(calls, dir, 'fenced');
  if (fenced === null) return false;
  try {
    await calls.rmdir(at(dir, 'fenced'));
    await calls.rename(at(dir, 'live'), at(fenced, 'late'));
    return false;
  } catch (thrown) {
    const errno = errnoOf(thrown);
    if (errno === 'ENOENT' || errno === 'ESTALE') return (await lookAtName(calls, at(dir, 'live'))) !== null;
    throw thrown;
  } finally {
    await calls.close(fenced).catch(() => undefined);
  }
}

async function clear(calls: FileCalls, dir: Descriptor): Promise<void> {
  for (const name of await namesIn(calls, dir)) await calls.unlink(at(dir, name)).catch(() => removeInner(calls, dir, name.toString('utf8')));
}

/** A directory that a probe made in its own; a probe that was cut off between its two renames left a file in it. */
async function removeInner(calls: FileCalls, dir: Descriptor, name: string): Promise<void> {
  const inner = await openDirectory(calls, dir, name).catch(() => null);
  if (inner === null) return;
  for (const file of await namesIn(calls, inner)) await calls.unlink(at(inner, file)).catch(() => undefined);
  await calls.close(inner).catch(() => undefined);
  await calls.rmdir(at(dir, name)).catch(() => undefined);
}

function namesIn(calls: FileCalls, dir: Descriptor): Promise<Buffer[]> {
  return calls.names(dir, LIMITS.probeEntriesMax).catch(() => []);
}
