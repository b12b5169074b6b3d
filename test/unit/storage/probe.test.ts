import * as fs from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Descriptor } from '../../../src/storage/descriptor.ts';
import { detectFileSystem, fileSystemOf } from '../../../src/storage/file-system.ts';
import { probeVolume } from '../../../src/storage/probe.ts';
import { seededRandom } from '../../support/fake-clock.ts';
import { EIO, ESTALE, systemError } from '../../support/fault-calls.ts';
import { cannotMount, type Mounted, mountImage, mountTmpfs } from '../../support/mounted.ts';
import { descriptorsBack, openDescriptors, type TempVolume, tempVolume } from '../../support/temp-volume.ts';
import { ON_NFS } from '../../support/volume-base.ts';

const random = seededRandom(1);

describe('probing a volume', () => {
  let temp: TempVolume;
  let control: Descriptor;
  let before: string[];
  beforeEach(async () => {
    temp = await tempVolume();
    control = await temp.room.calls.openPath(join(temp.root, '.fencegate'), fs.constants.O_DIRECTORY);
    before = fs.readdirSync(join(temp.root, '.fencegate'));
  });
  afterEach(async () => {
    await temp.room.calls.close(control);
    await temp.close();
  });
  const probe = () => probeVolume(temp.room.calls, control, random);
  const left = (): string[] => fs.readdirSync(join(temp.root, '.fencegate')).filter((name) => !before.includes(name));

  it('finds what the file system under test can do, and removes all it made', async () => {
    const descriptors = openDescriptors();
    const report = await probe();
    expect(report).toMatchObject({
      local: !ON_NFS,
      foldsCase: false,
      foldsUnicode: false,
      folds: false,
      hardLinks: true,
      mtimeGranularityNs: 1_000n,
      fenceHolds: true,
    });
    expect(left()).toEqual([]);
    expect(fs.readdirSync(temp.root)).toEqual(['.fencegate']);
    await descriptorsBack(descriptors);
  });

  it('case folding shows (F15)', async () => {
    temp.faults.on('open', (real, args) => {
      const [at, flags] = args as [{ name: string; dir: Descriptor }, number];
      return at.name === 'aA' ? temp.room.calls.open({ ...at, name: 'Aa' }, flags) : real();
    });
    expect(await probe()).toMatchObject({ foldsCase: true, foldsUnicode: false, folds: true });
  });

  it('Unicode normalisation shows (F16)', async () => {
    temp.faults.on('open', (real, args) => {
      const [at, flags] = args as [{ name: string; dir: Descriptor }, number];
      return at.name === 'n-e\u0301' ? temp.room.calls.open({ ...at, name: 'n-\u00e9' }, flags) : real();
    });
    expect(await probe()).toMatchObject({ foldsCase: false, foldsUnicode: true, folds: true });
  });

  it('F7: a volume without hard links', async () => {
    temp.faults.on('link', () => Promise.reject(systemError('EPERM', 1)));
    expect((await probe()).hardLinks).toBe(false);
    expect(left()).toEqual([]);
  });

  it.each([1_000_000n, 1_000_000_000n, 2_000_000_000n])('mtimes in steps of %s ns', async (stepNs) => {
    let stored = 0n;
    temp.faults.on('setMtime', async (_, args) => {
      stored = ((args[1] as bigint) / stepNs) * stepNs;
    });
    temp.faults.on('fstat', async (real) => {
      const stats = await real();
      return stored === 0n ? stats : Object.assign(Object.create(stats as object) as object, { mtimeNs: stored });
    });
    expect((await probe()).mtimeGranularityNs).toBe(stepNs);
  });

  it('B20: a volume in which renames cross devices is refused, and nothing is left', async () => {
    temp.faults.on('rename', () => Promise.reject(systemError('EXDEV', 18)));
    await expect(probe()).rejects.toMatchObject({ code: 'EXDEV' });
    expect(left()).toEqual([]);
  });

  it('a volume on which the late rename succeeds has no fence of its own', async () => {
    let renames = 0;
    temp.faults.on('rename', async (real) => {
      renames += 1;
      if (renames <= 2) await real();
    });
    expect((await probe()).fenceHolds).toBe(false);
  });

  it('ESTALE is a fence as well, another error proves nothing', async () => {
    for (const [error, expected] of [
      [ESTALE, true],
      [EIO, null],
    ] as const) {
      let renames = 0;
      temp.faults.on('rename', async (real) => {
        renames += 1;
        if (renames <= 2) return real();
        throw error();
      });
      if (expected === null) await expect(probe()).rejects.toMatchObject({ code: 'EIO' });
      else expect((await probe()).fenceHolds).toBe(expected);
    }
    expect(left()).toEqual([]);
  });
});

describe.skipIf(cannotMount !== null || ON_NFS)('other file systems, each mounted by the test', () => {
  const mounts: Mounted[] = [];
  afterEach(() => {
    for (const mount of mounts.splice(0)) mount.unmount();
  });

  async function probeAt(root: string): Promise<Awaited<ReturnType<typeof probeVolume>>> {
    const temp = await tempVolume({ root });
    const control = await temp.room.calls.openPath(join(root, '.fencegate'), fs.constants.O_DIRECTORY);
    try {
      return await probeVolume(temp.room.calls, control, random);
    } finally {
      await temp.room.calls.close(control);
      await temp.close();
    }
  }

  it('tmpfs: local, the fence holds', async () => {
    const mount = mountTmpfs('size=1m');
    mounts.push(mount);
    expect(await probeAt(mount.path)).toMatchObject({ fileSystem: 'tmpfs', local: true, folds: false, hardLinks: true, fenceHolds: true });
    expect(await detectFileSystem(mount.path)).toEqual({ type: 'tmpfs', local: true });
  });

  it('ext4 on a small image: local, the fence holds', async () => {
    const mount = mountImage('ext4', 16, ['-q']);
    mounts.push(mount);
    expect(await probeAt(mount.path)).toMatchObject({ fileSystem: 'ext4', local: true, folds: false, hardLinks: true, fenceHolds: true });
  });

  it('ext4 with a folding directory: both spellings are one file (B32)', async (context) => {
    let mount: Mounted;
    try {
      mount = mountImage('ext4', 16, ['-q', '-O', 'casefold', '-E', 'encoding=utf8']);
    } catch {
      // The kernel must have CONFIG_UNICODE to mount such an image at all; without it the logic is shown on names alone.
      context.skip('this kernel mounts no ext4 image with the casefold feature (CONFIG_UNICODE)');
      return;
    }
    mounts.push(mount);
    const { execFileSync } = await import('node:child_process');
    const folding = join(mount.path, 'folding');
    fs.mkdirSync(folding);
    execFileSync('chattr', ['+F', folding]);
    expect(await probeAt(folding)).toMatchObject({ foldsCase: true, foldsUnicode: true, folds: true });
  });
});

describe('fileSystemOf', () => {
  it('takes only what it knows for local', () => {
    expect(fileSystemOf(0xef53n)).toEqual({ type: 'ext4', local: true });
    expect(fileSystemOf(0x6969)).toEqual({ type: 'nfs', local: false });
    expect(fileSystemOf(0xff534d42)).toEqual({ type: 'cifs', local: false });
    expect(fileSystemOf(0x65735546)).toEqual({ type: 'fuse', local: false });
    expect(fileSystemOf(0x1234)).toEqual({ type: '0x1234', local: false });
  });

  it('reads a magic number that came sign-extended', () => {
    expect(fileSystemOf(BigInt.asIntN(32, 0x9123683en))).toEqual({ type: 'btrfs', local: true });
  });
});
