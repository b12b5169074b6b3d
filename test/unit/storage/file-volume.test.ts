import * as fs from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import type { Intent, Settled } from '../../../src/domain/intent.ts';
import { LaneError } from '../../../src/storage/errno.ts';
import { settle } from '../../support/fake-clock.ts';
import { EIO, ENOSPC, ESTALE, systemError } from '../../support/fault-calls.ts';
import {
  descriptorsBack,
  intentOf,
  openDescriptors,
  stageText,
  type TempVolume,
  type TempVolumeOptions,
  tempVolume,
} from '../../support/temp-volume.ts';

describe('an open volume', () => {
  const open: TempVolume[] = [];
  afterEach(async () => {
    for (const temp of open.splice(0)) await temp.close();
  });
  async function volumeOf(options: TempVolumeOptions = {}): Promise<TempVolume> {
    const temp = await tempVolume(options);
    open.push(temp);
    return temp;
  }
  const replaceIntent = async (temp: TempVolume): Promise<Intent> =>
    intentOf(temp, 'a', { kind: 'replace' }, { staged: await stageText(temp, 'new') });

  it('says who it is', async () => {
    const { volume, room } = await volumeOf();
    expect([volume.name, volume.incarnation, volume.fenceLevel, volume.folds]).toEqual(['vol', room.incarnation, 'incarnation', false]);
    expect(volume.state()).toEqual({ state: 'open', reason: null });
    expect(() => volume.assertWritable()).not.toThrow();
  });

  it('one that is read-only by its configuration refuses every change and serves reads', async () => {
    const temp = await volumeOf({ policy: { readOnly: true } });
    const { volume } = temp;
    temp.write('a', 'x');
    expect(volume.state().state).toBe('read_only');
    const place = await volume.locate(temp.resource('a'));
    const intent = intentOf(temp, 'a', { kind: 'remove', trash: 't' });
    await expect(volume.stage({ sha512: false })).rejects.toMatchObject({ code: 'volume_read_only' });
    await expect(volume.apply(intent, place, null)).rejects.toMatchObject({ code: 'volume_read_only' });
    await expect(volume.makeParents(place)).rejects.toMatchObject({ code: 'volume_read_only' });
    await expect(volume.writeRedo(intent)).rejects.toMatchObject({ code: 'volume_read_only' });
    place.close();
    const opened = await volume.open(temp.resource('a'));
    await opened.close();
    expect(fs.existsSync(temp.path('a'))).toBe(true);
  });

  it('makes missing parents, each durable before the next, and gives the place anew', async () => {
    const temp = await volumeOf();
    const descriptors = openDescriptors();
    const place = await temp.volume.locate(temp.resource('x/y/z/f'));
    const syncs = temp.faults.log.filter((name) => name === 'fsync').length;
    const made = await temp.volume.makeParents(place);
    expect(temp.faults.log.filter((name) => name === 'fsync').length - syncs).toBe(3);
    expect(made.parent?.ino).toBe(fs.statSync(temp.path('x/y/z'), { bigint: true }).ino);
    place.close();
    made.close();
    await descriptorsBack(descriptors);
  });

  it('two who make the same parents at once both get them', async () => {
    const temp = await volumeOf();
    const descriptors = openDescriptors();
    const places = await Promise.all(['x/y/1', 'x/y/2', 'x/3'].map((path) => temp.volume.locate(temp.resource(path))));
    const made = await Promise.all(places.map((place) => temp.volume.makeParents(place)));
    expect(made[0]?.parent).toEqual(made[1]?.parent);
    for (const place of [...made, ...places]) place.close();
    await descriptorsBack(descriptors);
  });

  it('a parent that cannot be made leaves no descriptor: a file or a link is in the way', async () => {
    const temp = await volumeOf();
    const descriptors = openDescriptors();
    const place = await temp.volume.locate(temp.resource('x/y/f'));
    temp.write('x', 'a file came');
    await expect(temp.volume.makeParents(place)).rejects.toMatchObject({ code: 'not_a_directory' });
    fs.unlinkSync(temp.path('x'));
    fs.symlinkSync('/tmp', temp.path('x'));
    await expect(temp.volume.makeParents(await linklessPlace(temp))).rejects.toMatchObject({ code: 'symbolic_link' });
    place.close();
    await descriptorsBack(descriptors);
  });

  /** A place found before the link came. */
  async function linklessPlace(temp: TempVolume): Promise<Awaited<ReturnType<TempVolume['volume']['locate']>>> {
    fs.unlinkSync(temp.path('x'));
    const place = await temp.volume.locate(temp.resource('x/y/f'));
    fs.symlinkSync('/tmp', temp.path('x'));
    return place;
  }

  it('F3: a directory whose sync failed closes the volume for writes until a restart: what is durable is not known', async () => {
    const temp = await volumeOf();
    const intent = await replaceIntent(temp);
    const place = await temp.volume.locate(intent.resource);
    await temp.volume.apply(intent, place, null);
    temp.faults.failOnce('fsync', EIO);
    await expect(temp.volume.syncParent(place)).rejects.toMatchObject({ code: 'outcome_unknown' });
    temp.verdict = 'committed';
    expect((await temp.volume.settle(intent)).settlement).toBe('unknown');
    expect(temp.volume.state()).toMatchObject({ state: 'unavailable', reason: expect.stringContaining('EIO') });
    expect(() => temp.volume.assertWritable()).toThrow(expect.objectContaining({ code: 'volume_unavailable' }));
    place.close();
    const opened = await temp.volume.open(intent.resource);
    await opened.close();
  });

  it('a directory sync that only came too late is unknown, and a later look may find out', async () => {
    const temp = await volumeOf();
    const intent = await replaceIntent(temp);
    const place = await temp.volume.locate(intent.resource);
    await temp.volume.apply(intent, place, null);
    temp.faults.failOnce('fsync', () => new LaneError('late', 1, Promise.resolve()));
    await expect(temp.volume.syncParent(place)).rejects.toMatchObject({ code: 'outcome_unknown' });
    temp.verdict = 'committed';
    expect((await temp.volume.settle(intent)).settlement).toBe('committed');
    place.close();
  });

  it('a full disk while syncing staged data is no sick volume', async () => {
    const temp = await volumeOf();
    const staging = await temp.volume.stage({ sha512: false });
    temp.faults.failOnce('fsync', ENOSPC);
    await expect(staging.sync()).rejects.toMatchObject({ code: 'insufficient_storage' });
    await staging.discard();
    expect(temp.volume.state().reason).toBeNull();
  });

  it('while finishing an operation hangs, its outcome stays unknown', async () => {
    let answer: () => void = () => undefined;
    const hung = new Promise<void>((resolve) => {
      answer = resolve;
    });
    let verdict: () => Promise<Settled> = () => Promise.reject(new LaneError('hung', 1, hung));
    const temp = await volumeOf({ life: { settle: () => verdict() } });
    const intent = await replaceIntent(temp);
    await expect(temp.volume.settle(intent)).rejects.toMatchObject({ code: 'volume_unavailable' });
    verdict = () => Promise.resolve({ settlement: 'aborted', after: null });
    expect((await temp.volume.settle(intent)).settlement).toBe('unknown');
    answer();
    await settle();
    expect((await temp.volume.settle(intent)).settlement).toBe('aborted');
  });

  it('redo and manifest go to the part that keeps them, and an error there that means fenced is told', async () => {
    const asked: string[] = [];
    const temp = await volumeOf({
      life: {
        writeRedo: async ({ operationId }) => {
          asked.push(`redo ${operationId}`);
        },
        writeManifest: (operationId, intents, places) => {
          asked.push(`manifest ${operationId} ${intents.length} ${places.length}`);
          return Promise.reject(systemError('ENOENT', 2));
        },
      },
    });
    const intent = await replaceIntent(temp);
    await temp.volume.writeRedo(intent);
    await expect(temp.volume.writeManifest('op-1', [intent], [])).rejects.toMatchObject({ code: 'not_found' });
    temp.fence();
    await expect(temp.volume.writeManifest('op-1', [intent], [])).rejects.toMatchObject({ code: 'volume_unavailable' });
    expect(asked).toEqual(['redo op-1', 'manifest op-1 1 0', 'manifest op-1 1 0']);
    expect(temp.fencedCount).toBe(1);
  });

  it('tidy never rejects', async () => {
    const temp = await volumeOf({ life: { unlink: () => Promise.reject(ESTALE()) } });
    expect(temp.volume.tidy([await replaceIntent(temp)])).toBeUndefined();
    await settle();
  });

  it('every error leaves as one of ours', async () => {
    const temp = await volumeOf();
    temp.write('a', 'x');
    for (const error of [EIO, () => systemError('EMFILE', 24), () => new TypeError('a bug')]) {
      temp.faults.failOnce('open', error);
      await expect(temp.volume.open(temp.resource('a'))).rejects.toMatchObject({ name: 'GatewayError' });
      temp.faults.failOnce('fstat', error);
      await expect(temp.volume.locate(temp.resource('a'))).rejects.toMatchObject({ name: 'GatewayError' });
      temp.faults.failOnce('open', error);
      await expect(temp.volume.stage({ sha512: false })).rejects.toMatchObject({ name: 'GatewayError' });
    }
  });

  it('versions go on above those of the former process', async () => {
    const last = BigInt(Date.now() + 86_400_000) * 1_000_000n;
    const temp = await volumeOf({ lastMtimeNs: last });
    expect((await stageText(temp, 'x')).mtimeNs).toBe(last + 1_000n);
    expect(temp.volume.lastMtimeNs).toBe(last + 1_000n);
  });

  it('when it is closed it gives its descriptors back', async () => {
    const descriptors = openDescriptors();
    const temp = await tempVolume();
    await temp.close();
    await descriptorsBack(descriptors);
  });
});
