import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseMountInfo } from '../../../src/storage/mount-table.ts';
import { findOverlaps, insideFileSystem } from '../../../src/storage/overlap.ts';
import { bindMount, cannotMount, mountTmpfs } from '../../support/mounted.ts';

describe('F19: volumes that overlap', () => {
  let root: string;
  beforeEach(() => {
    root = fs.mkdtempSync(join(tmpdir(), 'fencegate-overlap-'));
    for (const name of ['a/below', 'b', 'ab']) fs.mkdirSync(join(root, name), { recursive: true });
  });
  afterEach(() => fs.rmSync(root, { recursive: true, force: true }));

  const volumes = (...paths: string[]): { name: string; path: string }[] => paths.map((path, index) => ({ name: `v${index}`, path }));
  const at = (name: string): string => join(root, name);

  it('two directories beside each other do not, also when one name begins with the other', async () => {
    expect(await findOverlaps(volumes(at('a'), at('b'), at('ab')))).toEqual([]);
  });

  it('the same directory does, by whatever way it is named', async () => {
    fs.symlinkSync('a', at('link'));
    expect(await findOverlaps(volumes(at('a'), `${at('b')}/../a/`))).toEqual([{ first: 'v0', second: 'v1', why: 'same_directory' }]);
    expect(await findOverlaps(volumes(at('link'), at('a')))).toEqual([{ first: 'v0', second: 'v1', why: 'same_directory' }]);
  });

  it('one above the other does, in either order and through a link', async () => {
    fs.symlinkSync('a/below', at('deep'));
    for (const pair of [
      [at('a'), at('a/below')],
      [at('a/below'), at('a')],
      [at('deep'), at('a')],
      ['/', at('b')],
    ]) {
      expect(await findOverlaps(volumes(...pair))).toEqual([{ first: 'v0', second: 'v1', why: 'one_inside_the_other' }]);
    }
  });

  it('each pair is named', async () => {
    expect((await findOverlaps(volumes(root, at('a'), at('b')))).map(({ first, second }) => first + second)).toEqual(['v0v1', 'v0v2']);
  });

  it('a path that is not there rejects', async () => {
    await expect(findOverlaps(volumes(at('none'), at('a')))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it.skipIf(cannotMount !== null)('a bind mount of the same directory does', async () => {
    const mount = bindMount(at('a'));
    try {
      expect(await findOverlaps(volumes(at('a'), mount.path))).toEqual([{ first: 'v0', second: 'v1', why: 'same_directory' }]);
    } finally {
      mount.unmount();
    }
  });

  it.skipIf(cannotMount !== null)('a bind mount of a part does, although no path says so', async () => {
    const mount = bindMount(at('a/below'));
    try {
      expect(await findOverlaps(volumes(at('a'), mount.path))).toEqual([{ first: 'v0', second: 'v1', why: 'one_inside_the_other' }]);
      expect(await findOverlaps(volumes(at('b'), mount.path))).toEqual([]);
    } finally {
      mount.unmount();
    }
  });

  it.skipIf(cannotMount !== null)('a file system mounted inside a volume is inside it; two of their own are not', async () => {
    const [one, two] = [mountTmpfs('size=64k'), mountTmpfs('size=64k')];
    try {
      expect(await findOverlaps(volumes(one.path, two.path, at('a')))).toEqual([]);
      expect(await findOverlaps(volumes(tmpdir(), one.path))).toEqual([{ first: 'v0', second: 'v1', why: 'one_inside_the_other' }]);
    } finally {
      one.unmount();
      two.unmount();
    }
  });
});

describe('mountinfo', () => {
  const mounts = parseMountInfo(
    [
      '20 1 8:1 / / rw - ext4 /dev/sda1 rw',
      '21 20 8:2 /sub /mnt/with\\040blank rw - ext4 /dev/sdb rw',
      '22 20 8:3 / /mnt rw - xfs x rw',
      '23 22 8:4 / /mnt rw - xfs y rw',
      'broken line',
      '',
    ].join('\n'),
  );

  it('gives device, root and mount point, blanks decoded', () => {
    expect(mounts).toHaveLength(4);
    expect(mounts[1]).toMatchObject({ device: '8:2', root: '/sub', point: '/mnt/with blank' });
  });

  it('finds the path inside the file system, of the last mount at a point', () => {
    expect(insideFileSystem('/mnt/with blank/x', mounts)).toEqual({ device: '8:2', path: '/sub/x' });
    expect(insideFileSystem('/mnt/with blank', mounts)).toEqual({ device: '8:2', path: '/sub' });
    expect(insideFileSystem('/mnt/other', mounts)).toEqual({ device: '8:4', path: '/other' });
    expect(insideFileSystem('/mnt', mounts)).toEqual({ device: '8:4', path: '/' });
    expect(insideFileSystem('/', mounts)).toEqual({ device: '8:1', path: '/' });
    expect(insideFileSystem('/x', [])).toBeNull();
  });
});
