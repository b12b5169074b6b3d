import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { DirectoryEntry } from '../../../src/domain/volume.ts';
import { EIO, systemError } from '../../support/fault-calls.ts';
import { descriptorsBack, openDescriptors, type TempVolume, tempVolume } from '../../support/temp-volume.ts';
import { LOCALITIES } from '../../support/volume-base.ts';

describe.each(LOCALITIES)('listing (local: $local)', ({ local }) => {
  let temp: TempVolume;
  let descriptors: number;
  beforeEach(async () => {
    temp = await tempVolume({ local });
    descriptors = openDescriptors();
  });
  afterEach(async () => {
    temp.faults.heal();
    await descriptorsBack(descriptors);
    await temp.close();
  });

  const first = { limit: 1_000, cursor: null };
  async function all(path: string | null, limit: number): Promise<DirectoryEntry[]> {
    const entries: DirectoryEntry[] = [];
    let cursor: string | null = null;
    do {
      const page = await temp.volume.list(path === null ? null : temp.resource(path), { limit, cursor });
      expect(page.entries.length).toBeLessThanOrEqual(limit);
      entries.push(...page.entries);
      cursor = page.nextCursor;
    } while (cursor !== null);
    return entries;
  }

  it('shows names, types, sizes and times, sorted by bytes, without what is hidden', async () => {
    fs.mkdirSync(temp.path('dir'));
    temp.write('b.txt', 'hello');
    fs.utimesSync(temp.path('b.txt'), 1_700_000_000, 1_700_000_000);
    temp.write('B.txt', '');
    temp.write('.nfs0001', 'x');
    temp.write('.profile', 'x');
    fs.symlinkSync('b.txt', temp.path('link'));
    execFileSync('mkfifo', [temp.path('fifo')]);
    const { entries, nextCursor } = await temp.volume.list(null, first);
    expect(nextCursor).toBeNull();
    expect(entries.map(({ name, type, sizeBytes }) => [name, type, sizeBytes])).toEqual([
      ['.profile', 'file', 1],
      ['B.txt', 'file', 0],
      ['b.txt', 'file', 5],
      ['dir', 'directory', null],
      ['fifo', 'special', null],
      ['link', 'symbolic_link', null],
    ]);
    expect(entries[2]?.modifiedAt).toBe('2023-11-14T22:13:20.000Z');
  });

  it('lists a directory below, and an empty one', async () => {
    fs.mkdirSync(temp.path('a/b'), { recursive: true });
    temp.write('a/f', 'x');
    expect((await all('a', 10)).map(({ name }) => name)).toEqual(['b', 'f']);
    expect(await all('a/b', 10)).toEqual([]);
  });

  it('pages of any size give the same as one page', async () => {
    const names = Array.from({ length: 53 }, (_, i) => `f${(i * 37) % 101}`);
    for (const name of names) temp.write(name, '');
    for (const limit of [1, 7, 52, 53, 54]) expect((await all(null, limit)).map(({ name }) => name)).toEqual([...names].sort());
  });

  it('an entry that comes or goes between pages disturbs no other', async () => {
    for (const name of ['a', 'b', 'c', 'd']) temp.write(name, '');
    const page = await temp.volume.list(null, { limit: 2, cursor: null });
    fs.unlinkSync(temp.path('b'));
    temp.write('aa', '');
    const next = await temp.volume.list(null, { limit: 2, cursor: page.nextCursor });
    expect(next.entries.map(({ name }) => name)).toEqual(['c', 'd']);
  });

  it('an entry that goes between reading the directory and looking at it is left out', async () => {
    for (const name of ['a', 'b']) temp.write(name, '');
    temp.faults.failOnce('lstat', () => systemError('ENOENT', 2));
    expect((await temp.volume.list(null, first)).entries).toHaveLength(1);
  });

  it('F22: a name that is not UTF-8 is given as base64 and counts for the cursor', async () => {
    fs.writeFileSync(Buffer.concat([Buffer.from(`${temp.root}/`), Buffer.from([0x61, 0xff])]), 'x');
    temp.write('b', '');
    expect((await all(null, 1)).map(({ name, nameBase64, sizeBytes }) => [name, nameBase64, sizeBytes])).toEqual([
      [null, 'Yf8=', 1],
      ['b', null, 0],
    ]);
  });

  it('a name that begins with a byte order mark is kept whole', async () => {
    temp.write('\ufeffa', '');
    expect((await temp.volume.list(null, first)).entries[0]?.name).toBe('\ufeffa');
  });

  it('refuses what is no directory', async () => {
    temp.write('f', '');
    fs.symlinkSync('.', temp.path('link'));
    for (const [path, code] of [
      ['none', 'not_found'],
      ['none/x', 'not_found'],
      ['f', 'not_a_directory'],
      ['link', 'symbolic_link'],
      ['.fencegate', 'not_found'],
      ['.fencegate/x', 'not_found'],
    ] as const) {
      await expect(temp.volume.list(temp.resource(path), first), path).rejects.toMatchObject({ code });
    }
  });

  it('B6: an error is not an empty directory', async () => {
    temp.write('a', '');
    for (const name of ['openDirectory', 'readDirectory', 'lstat'] as const) {
      temp.faults.failOnce(name, EIO);
      await expect(temp.volume.list(null, first), name).rejects.toMatchObject({ code: 'volume_unavailable' });
    }
  });

  it('a cursor that is none of ours is invalid_request', async () => {
    for (const cursor of ['', '!', 'YQ==', 'a'.repeat(1_000), 'YR'])
      await expect(temp.volume.list(null, { limit: 1, cursor })).rejects.toMatchObject({ code: 'invalid_request' });
  });

  it('any text as a cursor gives a page or that refusal, and names are never taken for paths', async () => {
    temp.write('a', '');
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.string(),
          fc.uint8Array({ minLength: 1, maxLength: 30 }).map((bytes) => Buffer.from(bytes).toString('base64url')),
        ),
        async (cursor) => {
          const page = await temp.volume.list(null, { limit: 5, cursor }).catch((thrown: unknown) => thrown);
          if (page instanceof Error) expect(page).toMatchObject({ code: 'invalid_request' });
        },
      ),
    );
  });

  it('a page looks at its own entries only (F30)', async () => {
    for (let i = 0; i < 300; i++) fs.writeFileSync(join(temp.root, `f${i}`), '');
    await temp.volume.list(null, { limit: 5, cursor: null });
    expect(temp.faults.log.filter((name) => name === 'lstat')).toHaveLength(5);
  });
});

describe('a huge directory', () => {
  it('over the cap is refused after the cap, with nothing kept', async () => {
    const temp = await tempVolume();
    try {
      const name = Buffer.from('x');
      temp.faults.on('readDirectory', async () => name);
      await expect(temp.volume.list(null, { limit: 1, cursor: null })).rejects.toMatchObject({ code: 'invalid_request' });
      expect(temp.faults.log.filter((call) => call === 'readDirectory')).toHaveLength(1_000_001);
    } finally {
      temp.faults.heal();
      await temp.close();
    }
  }, 60_000);
});
