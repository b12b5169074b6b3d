import * as fs from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Intent } from '../../../src/domain/intent.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { settle } from '../../support/fake-clock.ts';
import { EIO } from '../../support/fault-calls.ts';
import { cannotMount, type Mounted, mountImage, mountTmpfs } from '../../support/mounted.ts';
import { sealAs } from '../../support/seal.ts';
import { descriptorsBack, factsAt, intentOf, openDescriptors, stageText, type TempVolume, tempVolume } from '../../support/temp-volume.ts';
import { ON_NFS } from '../../support/volume-base.ts';

const STEP_MS = 50;

/** On file systems that the tests mount themselves; the same of an NFS export: `test/nfs`. */
describe.skipIf(cannotMount !== null || ON_NFS)('a local volume that is full, read-only or hung, for real', () => {
  let mount: Mounted;
  let temp: TempVolume;
  afterEach(async () => {
    await temp.close();
    mount.unmount();
  });

  async function on(mounted: Mounted, local = true): Promise<void> {
    mount = mounted;
    temp = await tempVolume({ root: mount.path, local });
  }
  async function replace(intent: Intent): Promise<void> {
    const place = await temp.volume.locate(intent.resource);
    try {
      await temp.volume.apply(intent, place, null);
    } finally {
      place.close();
    }
  }

  it('B34: no space left in the middle of a body: insufficient_storage, the old file is whole, nothing is left', async () => {
    await on(mountTmpfs('size=1m'));
    const before = temp.write('a', 'old');
    const staging = await temp.volume.stage({ sha512: false });
    const run = async (): Promise<void> => {
      for (let i = 0; i < 64; i++) await staging.write(Buffer.alloc(65_536, i));
    };
    await expect(run()).rejects.toMatchObject({ code: 'insufficient_storage' });
    await staging.discard();
    expect(factsAt(temp.path('a'))).toEqual(before);
    expect(temp.staged()).toEqual([]);
    const again = await temp.volume.stage({ sha512: false });
    await again.write(Buffer.alloc(65_536));
    await again.discard();
  });

  it('F29: no inodes left although there is space', async () => {
    await on(mountTmpfs('size=1m,nr_inodes=12'));
    const stagings = [];
    const run = async (): Promise<void> => {
      for (let i = 0; i < 20; i++) stagings.push(await temp.volume.stage({ sha512: false }));
    };
    await expect(run()).rejects.toMatchObject({ code: 'insufficient_storage' });
    const place = await temp.volume.locate(temp.resource('x/y'));
    await expect(temp.volume.makeParents(place)).rejects.toMatchObject({ code: 'insufficient_storage' });
    place.close();
  });

  it('F29: says what is left of bytes and of inodes, and looks again every few seconds', async () => {
    await on(mountTmpfs('size=1m,nr_inodes=12'));
    const idle = async (): Promise<void> => {
      while (temp.lane.inFlight > 0) await settle();
      await settle();
    };
    // In steps, because a call that is under way while the clock jumps would be one that hangs.
    const look = async (): Promise<void> => {
      for (let ms = 0; ms < LIMITS.volumeSpaceEveryMs; ms += STEP_MS) {
        await temp.clock.advanceAsync(STEP_MS);
        await idle();
      }
    };
    await idle();
    const first = temp.volume.space();
    expect(first).toMatchObject({ totalBytes: 1_048_576, totalInodes: 12 });
    temp.write('a', Buffer.alloc(65_536));
    expect(temp.volume.space()).toEqual(first);
    await look();
    expect(temp.volume.space()).toMatchObject({ freeBytes: (first?.freeBytes ?? 0) - 65_536, freeInodes: (first?.freeInodes ?? 0) - 1 });
    temp.faults.failOnce('statfs', EIO);
    await look();
    expect(temp.volume.space()).toBeNull();
    await look();
    expect(temp.volume.space()).not.toBeNull();
  });

  it('an append for which there is no space did not happen', async () => {
    await on(mountTmpfs('size=256k'));
    const before = temp.write('a', Buffer.alloc(100_000, 1));
    const staged = await stageText(temp, 'x'.repeat(90_000));
    // What is left is less than the append.
    fs.writeFileSync(temp.path('ballast'), Buffer.alloc(28_672));
    const intent = intentOf(temp, 'a', { kind: 'append', offset: 100_000, lengthBytes: 90_000, mtimeNs: staged.mtimeNs }, { before, staged });
    await expect(replace(intent)).rejects.toMatchObject({ code: 'insufficient_storage' });
    expect(fs.readFileSync(temp.path('a')).equals(Buffer.alloc(100_000, 1))).toBe(true);
    expect(temp.settled).toEqual([]);
  });

  it('a volume that was remounted read-only: volume_read_only, before and after staging', async () => {
    await on(mountTmpfs('size=1m'));
    const before = temp.write('a', 'old');
    const intent = intentOf(temp, 'a', { kind: 'replace' }, { before, staged: await stageText(temp, 'new') });
    mount.remount('ro');
    await expect(temp.volume.stage({ sha512: false })).rejects.toMatchObject({ code: 'volume_read_only' });
    await expect(replace(intent)).rejects.toMatchObject({ code: 'volume_read_only' });
    expect(fs.readFileSync(temp.path('a'), 'utf8')).toBe('old');
    const opened = await temp.volume.open(temp.resource('a'));
    expect(opened.facts.sizeBytes).toBe(3);
    await opened.close();
  });

  it('X8: an ext4 that is full', async () => {
    await on(mountImage('ext4', 8, ['-q', '-m', '0']));
    temp.write('a', 'old');
    const staging = await temp.volume.stage({ sha512: false });
    const run = async (): Promise<void> => {
      for (let i = 0; i < 20; i++) await staging.write(Buffer.alloc(1_048_576));
      await sealAs(temp.volume, staging, null);
      await staging.sync();
    };
    await expect(run()).rejects.toMatchObject({ code: 'insufficient_storage' });
    await staging.discard();
    expect(fs.readFileSync(temp.path('a'), 'utf8')).toBe('old');
  });

  describe('B25: a mount that hangs', () => {
    beforeEach(async () => {
      await on(mountImage('ext4', 16, ['-q']), false);
    });

    it('refuses after the deadline while another volume is served; the late open is closed and its file is no harm', async () => {
      const other = await tempVolume({ local: false });
      const descriptors = openDescriptors();
      mount.freeze();
      const staging = temp.volume.stage({ sha512: false }).catch((thrown: unknown) => thrown);
      const place = await other.volume.locate(other.resource('x'));
      await other.volume.look(place);
      place.close();
      temp.clock.advance(4_000);
      expect(await staging).toMatchObject({ code: 'volume_unavailable', retryAfterMs: expect.any(Number) });
      expect(() => temp.volume.assertWritable()).toThrow(expect.objectContaining({ code: 'volume_unavailable' }));
      await expect(temp.volume.open(temp.resource('a'))).rejects.toMatchObject({ code: 'volume_unavailable' });
      expect(await (await other.volume.stage({ sha512: false })).discard()).toBeUndefined();
      mount.thaw();
      while (temp.lane.inFlight > 0) await settle();
      while (openDescriptors() > descriptors) await settle();
      await descriptorsBack(descriptors);
      // It answers again: the next call is the canary, and all is well.
      const again = await temp.volume.stage({ sha512: false });
      await again.discard();
      expect(temp.volume.state()).toEqual({ state: 'open', reason: null });
      await other.close();
    });

    it('X7: a rename that hangs past its deadline is unknown, lands late, and is found then', async () => {
      const before = temp.write('a', 'old');
      const intent = intentOf(temp, 'a', { kind: 'replace' }, { before, staged: await stageText(temp, 'new') });
      const place = await temp.volume.locate(intent.resource);
      mount.freeze();
      const applying = temp.volume.apply(intent, place, null).catch((thrown: unknown) => thrown);
      temp.clock.advance(4_000);
      expect(await applying).toMatchObject({ code: 'outcome_unknown', members: { operation_id: 'op-1' } });
      place.close();
      temp.verdict = 'aborted';
      expect((await temp.volume.settle(intent)).settlement).toBe('unknown');
      expect(fs.readFileSync(temp.path('a'), 'utf8')).toBe('old');
      mount.thaw();
      while (temp.lane.inFlight > 0) await settle();
      await settle();
      expect(fs.readFileSync(temp.path('a'), 'utf8')).toBe('new');
      temp.verdict = 'committed';
      expect((await temp.volume.settle(intent)).settlement).toBe('committed');
    });
  });
});
