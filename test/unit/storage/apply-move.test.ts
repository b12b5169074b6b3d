import * as fs from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FileFacts } from '../../../src/domain/file-facts.ts';
import { EIO, systemError } from '../../support/fault-calls.ts';
import { descriptorsBack, factsAt, intentOf, openDescriptors, type TempVolume, tempVolume } from '../../support/temp-volume.ts';
import { ON_NFS } from '../../support/volume-base.ts';

describe.each([{ hardLinks: true }, { hardLinks: false }])('MOVE (hard links: $hardLinks)', ({ hardLinks }) => {
  let temp: TempVolume;
  let source: FileFacts;
  let descriptors: number;
  beforeEach(async () => {
    temp = await tempVolume({ hardLinks });
    fs.mkdirSync(temp.path('x'));
    fs.mkdirSync(temp.path('y'));
    source = temp.write('x/a', 'moves');
    descriptors = openDescriptors();
  });
  afterEach(async () => {
    temp.faults.heal();
    await descriptorsBack(descriptors);
    await temp.close();
  });

  async function move(before: FileFacts | null): Promise<void> {
    const intent = intentOf(temp, 'y/b', { kind: 'move', from: temp.resource('x/a'), source, manifest: 'manifest-op-1' }, { before });
    const [place, from] = [await temp.volume.locate(intent.resource), await temp.volume.locate(temp.resource('x/a'))];
    try {
      await temp.volume.apply(intent, place, from);
    } finally {
      place.close();
      from.close();
    }
  }
  const exists = (name: string): boolean => fs.existsSync(temp.path(name));

  it('the file has the new name only, is the same version, and the old parent is synced', async () => {
    const syncs = temp.faults.log.filter((name) => name === 'fsync').length;
    await move(null);
    expect(exists('x/a')).toBe(false);
    expect(factsAt(temp.path('y/b'))).toEqual(source);
    expect(temp.staged()).toEqual(hardLinks ? ['manifest-op-1.trash'] : []);
    expect(temp.faults.log.filter((name) => name === 'fsync').length).toBe(syncs + 1);
  });

  it('over a file that is there', async () => {
    const before = temp.write('y/b', 'replaced');
    await move(before);
    expect(fs.readFileSync(temp.path('y/b'), 'utf8')).toBe('moves');
    expect(exists('x/a')).toBe(false);
  });

  it.each(['EPERM', 'EMLINK'])(
    'of a file that may be renamed and not linked (%s): it is the same version, and no second name is left',
    async (errno) => {
      temp.faults.on('link', () => Promise.reject(systemError(errno, errno === 'EPERM' ? 1 : 31)));
      await move(null);
      expect(exists('x/a')).toBe(false);
      expect(factsAt(temp.path('y/b'))).toEqual(source);
      expect(temp.staged()).toEqual([]);
    },
  );

  it('not over a file that came meanwhile', async () => {
    temp.write('y/b', 'of somebody else');
    await expect(move(null)).rejects.toMatchObject({ code: 'already_exists' });
    expect(fs.readFileSync(temp.path('y/b'), 'utf8')).toBe('of somebody else');
    expect(exists('x/a')).toBe(true);
    expect(temp.staged()).toEqual([]);
  });

  it('F17: between two hard links of one file it is refused: rename would succeed and do nothing', async () => {
    fs.linkSync(temp.path('x/a'), temp.path('y/b'));
    await expect(move(factsAt(temp.path('y/b')))).rejects.toMatchObject({ code: 'same_resource' });
    expect(exists('x/a') && exists('y/b')).toBe(true);
  });

  it('a source that is gone or was replaced is not moved', async () => {
    fs.renameSync(temp.path('x/a'), temp.path('x/elsewhere'));
    await expect(move(null)).rejects.toMatchObject({ code: 'not_found' });
    temp.write('x/a', 'another');
    await expect(move(null)).rejects.toMatchObject({ code: 'precondition_failed' });
    expect(fs.readFileSync(temp.path('x/a'), 'utf8')).toBe('another');
  });

  it.skipIf(ON_NFS)('a definite failure of the second step leaves everything as it was', async () => {
    fs.mkdirSync(temp.path('y/b'));
    await expect(move(source)).rejects.toMatchObject({ code: 'is_a_directory' });
    expect(factsAt(temp.path('x/a'))).toEqual(source);
    expect(fs.statSync(temp.path('x/a')).nlink).toBe(1);
    expect(temp.staged()).toEqual([]);
  });

  it.runIf(ON_NFS)('F2: a failure of the second step is looked at, whatever the server said', async () => {
    fs.mkdirSync(temp.path('y/b'));
    temp.verdict = 'aborted';
    await expect(move(source)).rejects.toMatchObject({ code: 'is_a_directory' });
    expect(temp.settled).toHaveLength(1);
    for (const name of temp.staged()) fs.unlinkSync(join(temp.incPath, name));
  });

  it('an error that proves nothing, at any step, is looked at', async () => {
    let step = 0;
    for (const failing of [1, 2]) {
      step = 0;
      temp.faults.on('rename', async (real) => {
        step += 1;
        if (step === failing) throw EIO();
        return real();
      });
      await expect(move(null)).rejects.toMatchObject({ code: 'outcome_unknown' });
      temp.faults.heal();
      for (const name of temp.staged()) fs.unlinkSync(join(temp.incPath, name));
      if (exists('y/b')) fs.unlinkSync(temp.path('y/b'));
      if (exists('x/a')) fs.unlinkSync(temp.path('x/a'));
      source = temp.write('x/a', 'moves');
    }
    expect(temp.settled).toHaveLength(2);
  });

  it.runIf(hardLinks)('a failure of the last step is no failure of the move: it is finished by looking', async () => {
    let step = 0;
    temp.faults.on('rename', async (real) => {
      step += 1;
      if (step === 2) throw systemError('EACCES', 13);
      return real();
    });
    temp.verdict = 'finished';
    await move(null);
    expect(temp.settled).toHaveLength(1);
  });

  it('a superseded process moves nothing', async () => {
    temp.fence();
    await expect(move(null)).rejects.toMatchObject({ code: 'outcome_unknown' });
    expect(factsAt(temp.path('x/a'))).toEqual(source);
    expect(exists('y/b')).toBe(false);
    expect(temp.fencedCount).toBe(1);
  });
});
