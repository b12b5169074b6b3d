import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { walkTo } from '../../../src/storage/path-walk.ts';
import { bindMount, cannotMount, mountTmpfs } from '../../support/mounted.ts';
import { descriptorsBack, openDescriptors, type TempVolume, tempVolume } from '../../support/temp-volume.ts';

describe('walking to a place', () => {
  let temp: TempVolume;
  let descriptors: number;
  beforeEach(async () => {
    temp = await tempVolume();
    descriptors = openDescriptors();
  });
  afterEach(async () => {
    await descriptorsBack(descriptors);
    await temp.close();
  });

  it('holds the parent and knows its identity', async () => {
    fs.mkdirSync(temp.path('a/b'), { recursive: true });
    const place = await walkTo(temp.room, temp.resource('a/b/c'));
    const { dev, ino } = fs.statSync(temp.path('a/b'), { bigint: true });
    expect(place.parent).toEqual({ dev, ino });
    expect(place.name).toBe('c');
    place.close();
  });

  it('a name in the root has the root as its parent', async () => {
    const place = await walkTo(temp.room, temp.resource('c'));
    expect(place.parent?.ino).toBe(fs.statSync(temp.root, { bigint: true }).ino);
    place.close();
    expect(temp.room.root.closed).toBe(false);
  });

  it('a missing parent is no error, and the place knows what is missing', async () => {
    fs.mkdirSync(temp.path('a'));
    const place = await walkTo(temp.room, temp.resource('a/x/y/z'));
    expect(place.parent).toBeNull();
    expect(place.missing).toEqual(['x', 'y']);
    expect(() => place.at).toThrow('parent directory');
    place.close();
  });

  it('F18: a symbolic link on the way is refused, also one to a directory inside the volume', async () => {
    fs.mkdirSync(temp.path('real'));
    fs.symlinkSync('real', temp.path('link'));
    fs.symlinkSync('/etc', temp.path('outside'));
    fs.symlinkSync('nowhere', temp.path('dangling'));
    for (const path of ['link/a', 'outside/passwd', 'dangling/a', 'link/below/a']) {
      await expect(walkTo(temp.room, temp.resource(path))).rejects.toMatchObject({ code: 'symbolic_link' });
    }
  });

  it('a file, a FIFO on the way is not a directory, and nothing blocks', async () => {
    temp.write('file', 'x');
    execFileSync('mkfifo', [temp.path('fifo')]);
    descriptors = openDescriptors();
    for (const path of ['file/a', 'fifo/a']) await expect(walkTo(temp.room, temp.resource(path))).rejects.toMatchObject({ code: 'not_a_directory' });
  });

  it('names of the gateway and of NFS clients are refused at any depth', async () => {
    for (const path of ['.fencegate/owner', 'a/.fencegate', '.nfs0001', 'a/.nfsX/b']) {
      await expect(walkTo(temp.room, temp.resource(path))).rejects.toMatchObject({ code: 'invalid_path' });
    }
  });

  it('F24: the identity of a directory that was moved away and made anew is another', async () => {
    fs.mkdirSync(temp.path('a'));
    const before = await walkTo(temp.room, temp.resource('a/f'));
    fs.renameSync(temp.path('a'), temp.path('old'));
    fs.mkdirSync(temp.path('a'));
    const after = await walkTo(temp.room, temp.resource('a/f'));
    expect(after.parent).not.toEqual(before.parent);
    before.close();
    after.close();
  });

  it('B30: a held parent that is swapped for a link meanwhile is still the directory that was walked to', async () => {
    fs.mkdirSync(temp.path('a'));
    const place = await walkTo(temp.room, temp.resource('a/f'));
    fs.renameSync(temp.path('a'), temp.path('moved'));
    fs.symlinkSync('/tmp', temp.path('a'));
    fs.writeFileSync(temp.path('moved/f'), 'inside');
    const file = await temp.room.calls.open(place.at, fs.constants.O_RDONLY);
    expect(fs.readFileSync(file.fd, 'utf8')).toBe('inside');
    await temp.room.calls.close(file);
    place.close();
  });

  it.skipIf(cannotMount !== null)('F14: another file system below the volume is cross_volume', async () => {
    const mount = mountTmpfs('size=64k');
    try {
      fs.mkdirSync(temp.path('sub'));
      const bound = bindMount(mount.path, temp.path('sub'));
      try {
        await expect(walkTo(temp.room, temp.resource('sub/a'))).rejects.toMatchObject({ code: 'cross_volume' });
      } finally {
        bound.unmount();
      }
    } finally {
      mount.unmount();
    }
    descriptors = openDescriptors();
  });

  it('a path of many levels keeps one descriptor', async () => {
    const path = Array.from({ length: 60 }, (_, i) => `d${i}`).join('/');
    fs.mkdirSync(temp.path(path), { recursive: true });
    const place = await walkTo(temp.room, temp.resource(`${path}/f`));
    expect(openDescriptors()).toBe(descriptors + 1);
    place.close();
  });
});
