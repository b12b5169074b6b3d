import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TargetFacts } from '../../../src/domain/file-facts.ts';
import { aliasAmong } from '../../../src/storage/name-alias.ts';
import { EIO, systemError } from '../../support/fault-calls.ts';
import { descriptorsBack, openDescriptors, type TempVolume, tempVolume } from '../../support/temp-volume.ts';
import { LOCALITIES } from '../../support/volume-base.ts';

describe.each(LOCALITIES)('looking at a name (local: $local)', ({ local }) => {
  let temp: TempVolume;
  beforeEach(async () => {
    temp = await tempVolume({ local });
  });
  afterEach(() => temp.close());

  async function look(path: string): Promise<TargetFacts | null> {
    const place = await temp.volume.locate(temp.resource(path));
    try {
      return await temp.volume.look(place);
    } finally {
      place.close();
    }
  }

  it('gives the facts of a file and leaves no descriptor', async () => {
    const facts = temp.write('a', 'hello');
    fs.chmodSync(temp.path('a'), 0o640);
    const before = openDescriptors();
    expect(await look('a')).toMatchObject({ ...facts, kind: 'file', links: 1, mode: 0o640, uid: process.getuid?.() });
    await descriptorsBack(before);
  });

  it('is null for an absent name, and below a missing parent', async () => {
    expect(await look('a')).toBeNull();
    expect(await look('x/y/a')).toBeNull();
  });

  it('names a directory, a link (also a dangling one) and counts hard links', async () => {
    fs.mkdirSync(temp.path('dir'));
    temp.write('a', 'x');
    fs.symlinkSync('a', temp.path('link'));
    fs.symlinkSync('nowhere', temp.path('dangling'));
    fs.linkSync(temp.path('a'), temp.path('b'));
    expect((await look('dir'))?.kind).toBe('directory');
    expect((await look('link'))?.kind).toBe('symbolic_link');
    expect((await look('dangling'))?.kind).toBe('symbolic_link');
    expect((await look('b'))?.links).toBe(2);
  });

  it('F28: a FIFO, a socket and a device are special, and a look does not block', async () => {
    execFileSync('mkfifo', [temp.path('fifo')]);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(temp.path('socket'), resolve));
    try {
      expect((await look('fifo'))?.kind).toBe('special');
      expect((await look('socket'))?.kind).toBe('special');
    } finally {
      server.close();
    }
    execFileSync('mknod', [temp.path('null'), 'c', '1', '3']);
    expect((await look('null'))?.kind).toBe('special');
  });

  it.each([EIO, () => systemError('EMFILE', 24), () => systemError('ETIMEDOUT', 110)])('B6: an error is never taken for absence', async (error) => {
    temp.write('a', 'x');
    const place = await temp.volume.locate(temp.resource('a'));
    temp.faults.failOnce('open', error);
    await expect(temp.volume.look(place)).rejects.toMatchObject({ code: 'volume_unavailable' });
    temp.faults.failOnce('fstat', error);
    await expect(temp.volume.look(place)).rejects.toMatchObject({ code: 'volume_unavailable' });
    place.close();
  });

  it('sizes above 4 GiB and times to the nanosecond are exact', async () => {
    fs.writeFileSync(temp.path('big'), '');
    fs.truncateSync(temp.path('big'), 5 * 2 ** 30 + 1);
    const { mtimeNs } = fs.statSync(temp.path('big'), { bigint: true });
    expect(await look('big')).toMatchObject({ sizeBytes: 5 * 2 ** 30 + 1, mtimeNs });
  });
});

describe('a look at a FIFO on a local volume', () => {
  it('lets no waiting writer through', async () => {
    const temp = await tempVolume();
    try {
      execFileSync('mkfifo', [temp.path('fifo')]);
      const place = await temp.volume.locate(temp.resource('fifo'));
      await temp.volume.look(place);
      place.close();
      // Without a reader a non-blocking writer is refused: the look was none.
      expect(() => fs.openSync(temp.path('fifo'), fs.constants.O_WRONLY | fs.constants.O_NONBLOCK)).toThrow('ENXIO');
    } finally {
      await temp.close();
    }
  });
});

describe('B32: another spelling of one name', () => {
  const names = (...all: string[]): Buffer[] => all.map((name) => Buffer.from(name));

  it('case, composition and compatibility letters are found', () => {
    expect(aliasAmong(names('other', 'Secret'), 'SECRET')?.toString()).toBe('Secret');
    expect(aliasAmong(names('\u00e9.txt'), 'e\u0301.txt')?.toString()).toBe('\u00e9.txt');
    expect(aliasAmong(names('stra\u00dfe'), 'STRASSE')?.toString()).toBe('stra\u00dfe');
  });

  it('the exact name is never an alias, whatever else is there', () => {
    expect(aliasAmong(names('A', 'a'), 'a')).toBeNull();
    expect(aliasAmong(names('a', 'A'), 'a')).toBeNull();
    expect(aliasAmong(names('b'), 'a')).toBeNull();
  });

  it('on a folding volume the other spelling is refused at any depth, and the stored one served', async () => {
    const temp = await tempVolume({ folds: true });
    try {
      fs.mkdirSync(temp.path('Dir'));
      temp.write('Dir/File', 'x');
      await expect(temp.volume.locate(temp.resource('dir/File'))).rejects.toMatchObject({ code: 'name_alias', members: { stored_name: 'Dir' } });
      await expect(temp.volume.locate(temp.resource('Dir/FILE'))).rejects.toMatchObject({ code: 'name_alias' });
      (await temp.volume.locate(temp.resource('Dir/File'))).close();
      (await temp.volume.locate(temp.resource('Dir/new'))).close();
      expect(temp.resource('dir/FILE').key).toBe(temp.resource('Dir/File').key);
    } finally {
      await temp.close();
    }
  });

  it('on a volume that keeps spellings apart both names are served', async () => {
    const temp = await tempVolume();
    try {
      temp.write('A', '1');
      (await temp.volume.locate(temp.resource('a'))).close();
    } finally {
      await temp.close();
    }
  });
});
