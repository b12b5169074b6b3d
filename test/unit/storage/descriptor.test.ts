import { openSync, readlinkSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { at, Descriptor, procPath } from '../../../src/storage/descriptor.ts';
import { fileCalls } from '../../../src/storage/file-calls.ts';
import { Lane } from '../../../src/storage/lane.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { descriptorsBack, openDescriptors, type TempVolume, tempVolume } from '../../support/temp-volume.ts';

describe('a held descriptor', () => {
  it('is closed at once when no call is on it', () => {
    const held = new Descriptor(99);
    let closed = 0;
    expect(
      held.end(() => {
        closed += 1;
      }),
    ).toBe(true);
    expect(
      held.end(() => {
        closed += 1;
      }),
    ).toBe(false);
    expect(closed).toBe(1);
  });

  it('is closed only when the last call on it has really ended: its number must not go to another file before', () => {
    const held = new Descriptor(99);
    let closed = 0;
    held.enter();
    held.enter();
    held.end(() => {
      closed += 1;
    });
    held.leave();
    expect(closed).toBe(0);
    held.leave();
    expect(closed).toBe(1);
  });

  it('cannot be used once it is closed', () => {
    const held = new Descriptor(99);
    held.end(() => undefined);
    expect(() => held.enter()).toThrow('after it was closed');
  });

  it('addresses names as text and as bytes below it', () => {
    const held = new Descriptor(7);
    expect(procPath(at(held, 'a'))).toBe('/proc/self/fd/7/a');
    expect(procPath(at(held, Buffer.from([0xff])))).toEqual(Buffer.from('/proc/self/fd/7/\xff', 'latin1'));
  });
});

function isOpenOn(fd: number, path: string): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`) === path;
  } catch {
    return false;
  }
}

describe('calls that come back late', () => {
  const open: TempVolume[] = [];
  afterEach(async () => {
    for (const temp of open.splice(0)) await temp.close();
  });

  it('a descriptor that a late open yields is closed', async () => {
    const clock = new FakeClock();
    const lane = new Lane({ volume: 'vol', inFlightMax: 1, queueMax: 1, deadlineMs: 4_000, clock });
    const calls = fileCalls(false, lane, null);
    const before = openDescriptors();
    const opening = calls.openPath('/', 0).catch((thrown: unknown) => thrown);
    // The deadline passes while the open is still in the pool.
    clock.advance(4_000);
    expect(await opening).toMatchObject({ started: true });
    while (lane.inFlight > 0) await settle();
    while (openDescriptors() > before) await settle();
    await descriptorsBack(before);
  });

  it('closing a descriptor with a call in the kernel waits for the call', async () => {
    const temp = await tempVolume({ local: false });
    open.push(temp);
    temp.write('a', 'x'.repeat(1_000));
    const file = await temp.room.calls.open(at(temp.room.root, 'a'), 0);
    const reading = temp.room.calls.read(file, Buffer.alloc(1_000), 0);
    await temp.room.calls.close(file);
    expect(isOpenOn(file.fd, temp.path('a'))).toBe(true);
    await expect(reading).resolves.toBe(1_000);
    while (isOpenOn(file.fd, temp.path('a'))) await settle();
    expect(file.closed).toBe(true);
  });

  it('what could not be closed while the volume hung is closed once it answers', async () => {
    const temp = await tempVolume({ local: false });
    open.push(temp);
    temp.write('a', 'x');
    const { calls, root } = temp.room;
    const file = await calls.open(at(root, 'a'), 0);
    let thaw: () => void = () => undefined;
    const hung = temp.lane
      .run(
        () =>
          new Promise<void>((resolve) => {
            thaw = resolve;
          }),
      )
      .catch(() => undefined);
    temp.clock.advance(4_000);
    await hung;
    await expect(calls.close(file)).rejects.toMatchObject({ code: 'volume_unavailable' });
    expect(isOpenOn(file.fd, temp.path('a'))).toBe(true);
    thaw();
    await settle();
    for (let i = 0; i < 2; i++) await calls.fstat(root);
    while (isOpenOn(file.fd, temp.path('a'))) await settle();
  });

  it('a local call on a closed descriptor is a bug, not a call on a stranger', async () => {
    const temp = await tempVolume();
    open.push(temp);
    temp.write('a', 'x');
    const file = await temp.room.calls.open(at(temp.room.root, 'a'), 0);
    await temp.room.calls.close(file);
    const stranger = openSync('/dev/null', 'r');
    await expect(temp.room.calls.fstat(file)).rejects.toThrow('after it was closed');
    await temp.room.calls.close(new Descriptor(stranger));
  });
});
