import * as fs from 'node:fs';
import { dirname } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ApplyPlan, Intent } from '../../../src/domain/intent.ts';
import type { HeldPlace } from '../../../src/storage/path-walk.ts';
import { EIO, ENOSPC } from '../../support/fault-calls.ts';
import { descriptorsBack, intentOf, openDescriptors, stageText, type TempVolume, tempVolume } from '../../support/temp-volume.ts';
import { LOCALITIES } from '../../support/volume-base.ts';

/** Where the calls are those of a network mount, a refusal is looked at before it is believed: the tests say then what is seen. */
describe.each(LOCALITIES)('made directories (local: $local)', ({ local }) => {
  let temp: TempVolume;
  let descriptors = 0;
  beforeEach(async () => {
    temp = await tempVolume({ local });
    descriptors = openDescriptors();
  });
  afterEach(async () => {
    await descriptorsBack(descriptors);
    await temp.close();
  });

  const there = (): string[] =>
    fs
      .readdirSync(temp.root, { recursive: true, encoding: 'utf8' })
      .filter((name) => !name.startsWith('.fencegate'))
      .toSorted();

  /** The `count`-th mkdir from now on is answered with `error`, after `before` was done. */
  function failMkdir(count: number, error: () => Error, before: () => void = () => undefined): void {
    let calls = 0;
    temp.faults.on('mkdir', async (real) => {
      calls += 1;
      if (calls !== count) return real();
      before();
      throw error();
    });
  }

  async function makeParents(path: string): Promise<HeldPlace> {
    return temp.volume.makeParents(await temp.volume.locate(temp.resource(path)));
  }

  /** A staged file under parents that were made for it. */
  async function readyToApply(path: string, plan: ApplyPlan = { kind: 'replace' }): Promise<{ intent: Intent; place: HeldPlace }> {
    const staged = await stageText(temp, 'new');
    return { intent: intentOf(temp, path, plan, { staged }), place: await makeParents(path) };
  }

  describe('parents that cannot all be made', () => {
    it('leave none behind, and those that were there stay', async () => {
      fs.mkdirSync(temp.path('old'));
      failMkdir(4, ENOSPC);
      await expect(makeParents('old/a/b/c/d/f')).rejects.toMatchObject({ code: 'insufficient_storage' });
      expect(there()).toEqual(['old']);
    });

    it('stay as far as somebody else uses them', async () => {
      failMkdir(4, ENOSPC, () => fs.writeFileSync(temp.path('a/b/theirs'), 'x'));
      await expect(makeParents('a/b/c/d/f')).rejects.toMatchObject({ code: 'insufficient_storage' });
      expect(there()).toEqual(['a', 'a/b', 'a/b/theirs']);
    });

    it('are not taken from somebody who made one of them in between, nor from somebody who moved them', async () => {
      const place = await temp.volume.locate(temp.resource('a/b/c/f'));
      let made = 0;
      temp.faults.on('mkdir', async (real) => {
        made += 1;
        if (made === 2) fs.mkdirSync(temp.path('a/b'));
        if (made === 3) throw ENOSPC();
        return real();
      });
      await expect(temp.volume.makeParents(place)).rejects.toMatchObject({ code: 'insufficient_storage' });
      expect(there()).toEqual(['a', 'a/b']);
      failMkdir(3, ENOSPC, () => fs.renameSync(temp.path('m/n'), temp.path('theirs')));
      await expect(makeParents('m/n/o/f')).rejects.toMatchObject({ code: 'insufficient_storage' });
      expect(there()).toEqual(['a', 'a/b', 'm', 'theirs']);
    });

    it('stay when it is not certain that nothing more happens, and when a successor has the volume', async () => {
      failMkdir(2, EIO);
      await expect(makeParents('a/b/f')).rejects.toMatchObject({ code: 'volume_unavailable' });
      expect(there()).toEqual(['a']);
      failMkdir(2, ENOSPC, () => temp.fence());
      await expect(makeParents('x/y/f')).rejects.toMatchObject({ code: 'insufficient_storage' });
      expect(there()).toEqual(['a', 'x']);
    });

    it('are made again when another write takes back an empty one meanwhile', async () => {
      let taken = false;
      temp.faults.on('mkdir', async (real) => {
        if (!taken && fs.existsSync(temp.path('a/b'))) {
          taken = true;
          fs.rmSync(temp.path('a'), { recursive: true });
        }
        return real();
      });
      const made = await makeParents('a/b/c/f');
      expect([taken, there()]).toEqual([true, ['a', 'a/b', 'a/b/c']]);
      made.close();
    });
  });

  describe('parents that were made for a write which then fails', () => {
    it('go with a definite failure, and stay with the file of somebody else', async () => {
      for (const theirs of [null, 'a/theirs']) {
        const { intent, place } = await readyToApply('a/b/f');
        if (theirs !== null) fs.writeFileSync(temp.path(theirs), 'x');
        temp.faults.failOnce('rename', ENOSPC);
        temp.verdict = 'aborted';
        await expect(temp.volume.apply(intent, place, null)).rejects.toMatchObject({ code: 'insufficient_storage' });
        expect(there()).toEqual(theirs === null ? [] : [dirname(theirs), theirs]);
        place.close();
      }
    });

    it('stay while the outcome is unknown, and go when the volume says that it did not happen', async () => {
      const { intent, place } = await readyToApply('a/b/f');
      temp.faults.failOnce('rename', EIO);
      await expect(temp.volume.apply(intent, place, null)).rejects.toMatchObject({ code: 'outcome_unknown' });
      place.close();
      expect(there()).toEqual(['a', 'a/b']);
      temp.verdict = 'aborted';
      expect((await temp.volume.settle(intent)).settlement).toBe('aborted');
      expect(there()).toEqual([]);
    });

    it('go when one of several files is taken back, and stay when all is well', async () => {
      const { intent, place } = await readyToApply('a/b/f', { kind: 'several', manifest: 'm' });
      await temp.volume.apply(intent, place, null);
      fs.unlinkSync(temp.path('a/b/f')); // as the manifest says
      expect(await temp.volume.restore([intent])).toBe(true);
      expect(there()).toEqual([]);
      place.close();
      const again = await readyToApply('a/b/f', { kind: 'several', manifest: 'm' });
      await temp.volume.apply(again.intent, again.place, null);
      temp.volume.tidy([again.intent]);
      fs.unlinkSync(temp.path('a/b/f'));
      expect(await temp.volume.restore([again.intent])).toBe(true);
      expect(there()).toEqual(['a', 'a/b']);
      again.place.close();
    });
  });
});
