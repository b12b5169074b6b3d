import * as fs from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LIMITS } from '../../../src/domain/limits.ts';
import { settle } from '../../support/fake-clock.ts';
import { EIO } from '../../support/fault-calls.ts';
import { intentOf, stageText, type TempVolume, tempVolume } from '../../support/temp-volume.ts';

let temp: TempVolume;
beforeEach(async () => {
  temp = await tempVolume();
});
afterEach(async () => {
  if (fs.existsSync(moved())) fs.renameSync(moved(), temp.root);
  await temp.close();
});

const moved = (): string => `${temp.root}-moved`;
const UNAVAILABLE = { code: 'volume_unavailable', retryAfterMs: expect.any(Number) };

/** Lets the looks that are due end. */
async function looked(): Promise<void> {
  await settle();
  while (temp.lane.inFlight > 0) await settle();
}

describe('a volume whose directory was taken away', () => {
  it('is written no more once the last look is older than allowed, also when no look was made in between', async () => {
    const staged = await stageText(temp, 'new');
    const intent = intentOf(temp, 'a', { kind: 'replace' }, { staged });
    const place = await temp.volume.locate(temp.resource('a'));
    const below = await temp.volume.locate(temp.resource('d/a'));
    fs.renameSync(temp.root, moved());
    temp.clock.advance(LIMITS.volumeLookAgeMsMax);
    await expect(temp.volume.apply(intent, place, null)).rejects.toMatchObject(UNAVAILABLE);
    await expect(temp.volume.makeParents(below)).rejects.toMatchObject(UNAVAILABLE);
    await expect(temp.volume.stage({ sha512: false })).rejects.toMatchObject(UNAVAILABLE);
    expect(fs.readdirSync(moved())).toEqual(['.fencegate']);
    place.close();
    below.close();
  });

  it('answers nothing of it and settles nothing until it is back, and then goes on', async () => {
    temp.write('a', 'old');
    const intent = intentOf(temp, 'a', { kind: 'replace' }, { staged: await stageText(temp, 'new') });
    temp.verdict = 'aborted';
    fs.renameSync(temp.root, moved());
    temp.clock.advance(LIMITS.volumeLookEveryMs);
    await looked();
    expect(temp.volume.state()).toMatchObject({ state: 'unavailable', reason: expect.stringContaining('not at its path') });
    expect(() => temp.volume.assertWritable()).toThrow(expect.objectContaining({ code: 'volume_unavailable' }));
    await expect(temp.volume.open(temp.resource('a'))).rejects.toMatchObject(UNAVAILABLE);
    await expect(temp.volume.locate(temp.resource('a'))).rejects.toMatchObject(UNAVAILABLE);
    await expect(temp.volume.list(null, { limit: 10, cursor: null })).rejects.toMatchObject(UNAVAILABLE);
    expect([(await temp.volume.settle(intent)).settlement, await temp.volume.restore([intent])]).toEqual(['unknown', false]);
    fs.renameSync(moved(), temp.root);
    temp.clock.advance(LIMITS.volumeLookEveryMs);
    await looked();
    expect(temp.volume.state()).toEqual({ state: 'open', reason: null });
    expect((await temp.volume.settle(intent)).settlement).toBe('aborted');
    expect(temp.fencedCount).toBe(0);
  });

  it('is told to be removed, and not only away, when its own directory is gone', async () => {
    fs.renameSync(temp.root, moved());
    temp.clock.advance(LIMITS.volumeLookEveryMs);
    await looked();
    expect(temp.fencedCount).toBe(0);
    fs.rmSync(moved(), { recursive: true });
    fs.mkdirSync(temp.root);
    temp.clock.advance(LIMITS.volumeLookEveryMs);
    await looked();
    expect(temp.fencedCount).toBe(1);
  });

  it('is unavailable while its path answers with an error', async () => {
    temp.faults.failOnce('statPath', EIO);
    temp.clock.advance(LIMITS.volumeLookEveryMs);
    await looked();
    expect(temp.volume.state()).toEqual({ state: 'unavailable', reason: 'its path answers with an error (EIO)' });
    temp.clock.advance(LIMITS.volumeLookEveryMs);
    await looked();
    expect(temp.volume.state()).toEqual({ state: 'open', reason: null });
  });
});

describe('a look at where a volume is', () => {
  it('is made through the lane, one at a time, and one that hangs shuts only that', async () => {
    let answer: (() => void) | null = null;
    let looks = 0;
    temp.faults.on('statPath', (real) => {
      looks += 1;
      return temp.lane.run(async () => {
        await new Promise<void>((resolve) => {
          answer = resolve;
        });
        return real();
      });
    });
    temp.clock.advance(LIMITS.volumeLookEveryMs);
    await settle();
    temp.clock.advance(LIMITS.volumeCallDeadlineMs);
    await settle();
    expect(temp.volume.state()).toMatchObject({ state: 'unavailable', reason: 'the volume does not answer' });
    temp.clock.advance(LIMITS.volumeCanaryMs + LIMITS.volumeLookEveryMs);
    await settle();
    expect(looks).toBeLessThanOrEqual(3);
    temp.faults.heal();
    (answer as (() => void) | null)?.();
    await looked();
  });

  it('is not made by a write while the last one is young', async () => {
    await stageText(temp, 'a');
    const before = temp.faults.log.filter((name) => name === 'statPath').length;
    await stageText(temp, 'b');
    temp.clock.advance(LIMITS.volumeLookEveryMs - 1);
    await stageText(temp, 'c');
    expect(temp.faults.log.filter((name) => name === 'statPath')).toHaveLength(before);
  });
});
