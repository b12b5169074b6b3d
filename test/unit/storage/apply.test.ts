import * as fs from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Intent } from '../../../src/domain/intent.ts';
import { settle } from '../../support/fake-clock.ts';
import { EIO, ENOSPC, ESTALE, systemError } from '../../support/fault-calls.ts';
import { descriptorsBack, factsAt, intentOf, openDescriptors, stageText, type TempVolume, tempVolume } from '../../support/temp-volume.ts';
import { LOCALITIES } from '../../support/volume-base.ts';

describe.each(LOCALITIES)('apply (local: $local)', ({ local }) => {
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

  async function apply(intent: Intent): Promise<void> {
    const place = await temp.volume.locate(intent.resource);
    try {
      await temp.volume.apply(intent, place, null);
    } finally {
      place.close();
    }
  }

  describe('replace', () => {
    let intent: Intent;
    beforeEach(async () => {
      const before = temp.write('a', 'old');
      intent = intentOf(temp, 'a', { kind: 'replace' }, { before, staged: await stageText(temp, 'new') });
    });

    it('moves the staged file over the target, which is then that very version', async () => {
      await apply(intent);
      expect(fs.readFileSync(temp.path('a'), 'utf8')).toBe('new');
      expect(factsAt(temp.path('a'))).toEqual({ ino: intent.staged?.ino, sizeBytes: 3, mtimeNs: intent.staged?.mtimeNs });
      expect(temp.staged()).toEqual([]);
      expect(temp.settled).toEqual([]);
    });

    it('a reader that had the old file open keeps the old bytes (I3)', async () => {
      const opened = await temp.volume.open(intent.resource);
      await apply(intent);
      const chunks: Uint8Array[] = [];
      for await (const chunk of opened.read(0, 3, new AbortController().signal)) chunks.push(chunk);
      expect(Buffer.concat(chunks).toString()).toBe('old');
      await opened.close();
    });

    it('a directory that came to the name is is_a_directory, and nothing changed', async () => {
      fs.unlinkSync(temp.path('a'));
      fs.mkdirSync(temp.path('a'));
      temp.verdict = 'aborted';
      await expect(apply(intent)).rejects.toMatchObject({ code: 'is_a_directory' });
      expect(fs.statSync(temp.path('a')).isDirectory()).toBe(true);
    });

    it('X7: an error although it happened is resolved by looking', async () => {
      temp.faults.failOnce('rename', EIO, 'after');
      temp.verdict = 'committed';
      await apply(intent);
      expect(temp.settled).toEqual([intent]);
      expect(fs.readFileSync(temp.path('a'), 'utf8')).toBe('new');
    });

    it('an error that proves nothing, and a look that proves nothing, is outcome_unknown with the operation', async () => {
      temp.faults.failOnce('rename', EIO);
      await expect(apply(intent)).rejects.toMatchObject({ code: 'outcome_unknown', members: { operation_id: 'op-1' } });
    });

    it('when the look says that nothing happened, the error leaves as what it was', async () => {
      temp.faults.failOnce('rename', EIO);
      temp.verdict = 'aborted';
      await expect(apply(intent)).rejects.toMatchObject({ code: 'volume_unavailable' });
    });

    it('ENOSPC is definite on a local volume, and looked at on a network mount (F2)', async () => {
      temp.faults.failOnce('rename', ENOSPC);
      temp.verdict = 'aborted';
      await expect(apply(intent)).rejects.toMatchObject({ code: 'insufficient_storage' });
      expect(temp.settled).toHaveLength(local ? 0 : 1);
    });

    it('the fence: after a successor removed the incarnation directory the rename fails, the outcome is unknown, and the process is told', async () => {
      temp.fence();
      await expect(apply(intent)).rejects.toMatchObject({ code: 'outcome_unknown', members: { operation_id: 'op-1' } });
      expect(fs.readFileSync(temp.path('a'), 'utf8')).toBe('old');
      expect(temp.fencedCount).toBe(1);
      expect(temp.settled).toEqual([]);
      // And from then on without a call.
      await expect(apply(intent)).rejects.toMatchObject({ code: 'outcome_unknown' });
      expect(() => temp.volume.assertWritable()).toThrow(expect.objectContaining({ code: 'volume_unavailable' }));
      expect((await temp.volume.settle(intent)).settlement).toBe('unknown');
    });

    it('ESTALE of the held incarnation directory means fenced as well (X2)', async () => {
      const place = await temp.volume.locate(intent.resource);
      temp.faults.on('rename', () => Promise.reject(ESTALE()));
      temp.faults.on(local ? 'fstat' : 'reopen', () => Promise.reject(ESTALE()));
      await expect(temp.volume.apply(intent, place, null)).rejects.toMatchObject({ code: 'outcome_unknown' });
      expect(temp.fencedCount).toBe(1);
      place.close();
    });

    it('a parent that was removed meanwhile is not_found, not a fence', async () => {
      fs.mkdirSync(temp.path('dir'));
      const inDir = intentOf(temp, 'dir/a', { kind: 'replace' }, { staged: intent.staged });
      const place = await temp.volume.locate(inDir.resource);
      fs.rmdirSync(temp.path('dir'));
      temp.verdict = 'aborted';
      await expect(temp.volume.apply(inDir, place, null)).rejects.toMatchObject({ code: 'not_found' });
      expect(temp.fencedCount).toBe(0);
      // The caller makes the parents once more and tries again.
      const made = await temp.volume.makeParents(place);
      await temp.volume.apply(inDir, made, null);
      expect(fs.readFileSync(temp.path('dir/a'), 'utf8')).toBe('new');
      made.close();
      place.close();
    });

    it('an intent of an earlier incarnation is not carried out and not called aborted', async () => {
      await expect(apply({ ...intent, incarnation: 'beef' })).rejects.toMatchObject({ code: 'outcome_unknown' });
      expect(fs.readFileSync(temp.path('a'), 'utf8')).toBe('old');
    });
  });

  describe('create', () => {
    let intent: Intent;
    beforeEach(async () => {
      intent = intentOf(temp, 'a', { kind: 'create' }, { staged: await stageText(temp, 'new') });
    });

    it('publishes the staged file under one name', async () => {
      await apply(intent);
      expect(factsAt(temp.path('a')).ino).toBe(intent.staged?.ino);
      expect(fs.statSync(temp.path('a')).nlink).toBe(1);
      expect(temp.staged()).toEqual([]);
    });

    it('B4: of a target that exists it says already_exists, and leaves it alone', async () => {
      temp.write('a', 'old');
      await expect(apply(intent)).rejects.toMatchObject({ code: 'already_exists' });
      expect(fs.readFileSync(temp.path('a'), 'utf8')).toBe('old');
    });

    it.each(['directory', 'link'])('a %s in the way is already_exists', async (kind) => {
      if (kind === 'directory') fs.mkdirSync(temp.path('a'));
      else fs.symlinkSync('nowhere', temp.path('a'));
      await expect(apply(intent)).rejects.toMatchObject({ code: 'already_exists' });
    });

    it('F8: EEXIST of a link that worked (a replayed NFS request) is success: the link count tells', async () => {
      temp.faults.failOnce('link', () => systemError('EEXIST', 17), 'after');
      await apply(intent);
      expect(fs.statSync(temp.path('a')).nlink).toBe(1);
    });

    it('a staged name that could not be removed does not undo the write', async () => {
      temp.faults.on('unlink', () => Promise.reject(EIO()));
      await apply(intent);
      expect(fs.readFileSync(temp.path('a'), 'utf8')).toBe('new');
    });

    it('32 racing creates of one name: exactly one wins', async () => {
      const others = await Promise.all(
        Array.from({ length: 31 }, async (_, i) => intentOf(temp, 'a', { kind: 'create' }, { staged: await stageText(temp, `other ${i}`) })),
      );
      const results = await Promise.allSettled([intent, ...others].map(apply));
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      const codes = results.flatMap((result) => (result.status === 'rejected' ? [(result.reason as { code: string }).code] : []));
      expect(new Set(codes)).toEqual(new Set(['already_exists']));
    });
  });

  describe('remove', () => {
    it('moves the file into the incarnation directory', async () => {
      const before = temp.write('a', 'old');
      await apply(intentOf(temp, 'a', { kind: 'remove', trash: 'trash-op-1' }, { before }));
      expect(fs.existsSync(temp.path('a'))).toBe(false);
      expect(temp.staged()).toEqual(['trash-op-1']);
      expect(factsAt(join(temp.incPath, 'trash-op-1'))).toEqual(before);
    });

    it('a superseded process removes nothing', async () => {
      const before = temp.write('a', 'of the successor');
      temp.fence();
      await expect(apply(intentOf(temp, 'a', { kind: 'remove', trash: 'trash-op-1' }, { before }))).rejects.toMatchObject({
        code: 'outcome_unknown',
      });
      expect(fs.existsSync(temp.path('a'))).toBe(true);
    });
  });

  describe('several', () => {
    it('replaces what was there and creates what was not, each by its own rule', async () => {
      const before = temp.write('a', 'old');
      const plan = { kind: 'several', manifest: 'manifest-op-1' } as const;
      await apply(intentOf(temp, 'a', plan, { before, staged: await stageText(temp, 'new a') }));
      const second = intentOf(temp, 'b', plan, { staged: await stageText(temp, 'new b') });
      await apply(second);
      expect([fs.readFileSync(temp.path('a'), 'utf8'), fs.readFileSync(temp.path('b'), 'utf8')]).toEqual(['new a', 'new b']);
      await expect(apply({ ...second, staged: await stageText(temp, 'again') })).rejects.toMatchObject({ code: 'already_exists' });
    });
  });

  describe('directories', () => {
    const mkdir = { kind: 'mkdir' } as const;
    const rmdir = { kind: 'rmdir' } as const;

    it('are made and removed', async () => {
      await apply(intentOf(temp, 'd', mkdir));
      expect(fs.statSync(temp.path('d')).isDirectory()).toBe(true);
      await apply(intentOf(temp, 'd', rmdir));
      expect(fs.existsSync(temp.path('d'))).toBe(false);
    });

    it('one that is not empty stays', async () => {
      fs.mkdirSync(temp.path('d'));
      temp.write('d/f', 'x');
      await expect(apply(intentOf(temp, 'd', rmdir))).rejects.toMatchObject({ code: 'directory_not_empty', message: 'The directory is not empty.' });
    });

    it('B23: one with nothing but what NFS keeps of open files says why', async () => {
      fs.mkdirSync(temp.path('d'));
      temp.write('d/.nfs000000000000000100000001', 'x');
      await expect(apply(intentOf(temp, 'd', rmdir))).rejects.toMatchObject({
        code: 'directory_not_empty',
        message: expect.stringContaining('.nfs'),
      });
    });

    it('a file in the way is already_exists, a file to be removed as a directory is not_a_directory', async () => {
      temp.write('f', 'x');
      temp.verdict = 'aborted';
      await expect(apply(intentOf(temp, 'f', mkdir))).rejects.toMatchObject({ code: 'already_exists' });
      await expect(apply(intentOf(temp, 'f', rmdir))).rejects.toMatchObject({ code: 'not_a_directory' });
    });
  });
});

describe('a call that hangs (B25)', () => {
  it('is unknown at its deadline, and stays so until the kernel has let go of it, whatever a look says', async () => {
    const temp = await tempVolume({ local: false });
    const before = temp.write('a', 'old');
    const intent = intentOf(temp, 'a', { kind: 'replace' }, { before, staged: await stageText(temp, 'new') });
    const place = await temp.volume.locate(intent.resource);
    // The hook hangs inside the lane as a hung mount does.
    let answer: () => void = () => undefined;
    temp.faults.on('rename', (real) =>
      temp.lane
        .run(
          () =>
            new Promise<void>((resolve) => {
              answer = resolve;
            }),
        )
        .then(real),
    );
    const applying = temp.volume.apply(intent, place, null).catch((thrown: unknown) => thrown);
    await settle();
    temp.clock.advance(4_000);
    expect(await applying).toMatchObject({ code: 'outcome_unknown' });
    expect(temp.volume.state()).toMatchObject({ state: 'unavailable' });
    temp.verdict = 'aborted';
    expect((await temp.volume.settle(intent)).settlement).toBe('unknown');
    expect(temp.settled).toEqual([]);
    expect(await temp.volume.restore([intent])).toBe(false);
    answer();
    await settle();
    expect((await temp.volume.settle(intent)).settlement).toBe('aborted');
    place.close();
    await temp.close();
  });

  it('a call that was never made changed nothing: the write is refused, not unknown', async () => {
    const temp = await tempVolume({ local: false });
    const before = temp.write('a', 'old');
    const intent = intentOf(temp, 'a', { kind: 'replace' }, { before, staged: await stageText(temp, 'new') });
    const place = await temp.volume.locate(intent.resource);
    const hung = temp.lane.run(() => new Promise(() => undefined)).catch(() => undefined);
    temp.clock.advance(4_000);
    await hung;
    await expect(temp.volume.apply(intent, place, null)).rejects.toMatchObject({ code: 'volume_unavailable', retryAfterMs: expect.any(Number) });
    expect(fs.readFileSync(temp.path('a'), 'utf8')).toBe('old');
    place.close();
    await temp.close();
  });
});
