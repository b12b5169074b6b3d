import * as fs from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Descriptor } from '../../../../src/storage/descriptor.ts';
import { LaneError } from '../../../../src/storage/errno.ts';
import { parseStamp } from '../../../../src/storage/life/stamp.ts';
import { startVolume } from '../../../../src/storage/life/start-volume.ts';
import type { TokenStamp } from '../../../../src/storage/life/token-stamp.ts';
import { EIO, FaultCalls } from '../../../support/fault-calls.ts';
import { eventually } from '../../../support/gateway-client.ts';
import { LivingVolume, type Opened } from '../../../support/living-volume.ts';

let living: LivingVolume;
let faults: FaultCalls;
let opened: Opened;
let stamp: TokenStamp;
beforeEach(async () => {
  living = new LivingVolume();
  const deps = living.deps();
  faults = new FaultCalls(deps.calls);
  const started = await startVolume({ ...deps, calls: faults.calls });
  if (started.kind !== 'open' || started.stamp === null) throw new Error('the volume has not opened');
  opened = started as Opened;
  stamp = started.stamp;
});
afterEach(async () => {
  faults.heal();
  await opened.close();
  living.remove();
});

/** A record is written, here the stamp: the same of it is true of redo entries and manifests. */
const writeRecord = (): Promise<void> => stamp.reserve(stamp.ceiling + 1n);
const stage = async (): Promise<void> => (await opened.volume.stage({ sha512: false })).discard();

const nothingIsLeft = async (): Promise<void> => {
  const left = await eventually(
    () => living.own(),
    (names) => names.length === 0,
  );
  expect(left).toEqual([]);
};

describe('the draft of a record that could not be written', () => {
  it.each(['writeAll', 'fsync', 'rename'] as const)('does not stay when its %s fails', async (call) => {
    faults.failOnce(call, EIO);
    await expect(writeRecord()).rejects.toMatchObject({ code: 'volume_unavailable' });
    expect(living.own()).toEqual([]);
  });

  it('does not stay when a server said that it did not make it, and had', async () => {
    faults.on('open', async (real) => {
      await faults.calls.close((await real()) as Descriptor);
      throw EIO();
    });
    await expect(writeRecord()).rejects.toMatchObject({ code: 'volume_unavailable' });
    await nothingIsLeft();
  });

  it.each([
    ['record is written', writeRecord],
    ['file is staged', stage],
  ])('and that the volume would not let go of is removed when the next %s', async (_what, next) => {
    faults.on('rename', () => Promise.reject(EIO()));
    faults.on('unlink', () => Promise.reject(EIO()));
    await expect(writeRecord()).rejects.toMatchObject({ code: 'volume_unavailable' });
    expect(living.own()).toHaveLength(1);
    faults.heal();
    await next();
    await nothingIsLeft();
  });

  it('is not the draft of the next one: a removal that comes late does not meet that', async () => {
    faults.on('rename', () => Promise.reject(EIO()));
    faults.on('unlink', () => Promise.reject(EIO()));
    await expect(writeRecord()).rejects.toMatchObject({ code: 'volume_unavailable' });
    faults.heal();
    let letGo: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const removed = new Promise<void>((resolve) => {
      faults.on('unlink', async (real) => {
        await held;
        await real();
        resolve();
      });
    });
    await (await opened.volume.stage({ sha512: false })).sync();
    faults.on('rename', async (real) => {
      letGo();
      await removed;
      return real();
    });
    await writeRecord();
    expect(living.own().filter((name) => name.endsWith('.draft'))).toEqual([]);
  });
});

describe('a rename of a record that hangs', () => {
  it('I6: is waited for before the record is written anew, so that it never puts the older one in the place of the newer', async () => {
    let letGo: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    let late: Promise<unknown> = Promise.resolve();
    faults.on('rename', (real) => {
      late = held.then(real);
      return Promise.reject(
        new LaneError(
          'The volume does not answer.',
          1_000,
          late.then(() => undefined),
        ),
      );
    });
    faults.on('unlink', () => Promise.reject(new LaneError('The volume does not answer.', 1_000, null)));
    await expect(writeRecord()).rejects.toMatchObject({ code: 'volume_unavailable' });
    faults.heal();
    await expect(writeRecord()).rejects.toMatchObject({ code: 'volume_unavailable' });
    letGo();
    await late;
    await writeRecord();
    expect(parseStamp(fs.readFileSync(living.control('stamp'))).ceiling).toBe(stamp.ceiling);
    expect(stamp.covers(stamp.ceiling)).toBe(true);
  });
});
