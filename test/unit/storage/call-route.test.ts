import { closeSync, fstatSync, openSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { LIMITS } from '../../../src/domain/limits.ts';
import { CallRoute } from '../../../src/storage/call-route.ts';
import { Descriptor } from '../../../src/storage/descriptor.ts';
import { Lane } from '../../../src/storage/lane.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const now = (): string => 'at once';
const pooled = (): Promise<string> => Promise.resolve('pooled');

function routeOf(local: boolean): { route: CallRoute; clock: FakeClock; directory: Descriptor; hangs(): { ends(): Promise<void> } } {
  const clock = new FakeClock();
  const lane = new Lane({ volume: 'vol', inFlightMax: 4, queueMax: 4, deadlineMs: 4_000, clock });
  const route = new CallRoute(local, lane);
  const directory = new Descriptor(openSync(temporaryDirectory(), 'r'));
  // A change that does not come back in time, until it is let go.
  const hangs = (): { ends(): Promise<void> } => {
    let end = (): void => undefined;
    const call = route.change([], () => new Promise<void>((resolve) => (end = resolve)));
    call.catch(() => undefined);
    return {
      ends: () => {
        end();
        return settle();
      },
    };
  };
  return { route, clock, directory, hangs };
}

/** The disk has answered, as a touch of the directory shows it. */
async function answering(): Promise<ReturnType<typeof routeOf>> {
  const made = routeOf(true);
  made.route.touchAt(made.directory);
  await vi.waitFor(async () => expect(await made.route.look([], now, pooled)).toBe('at once'));
  return made;
}

describe('where a call on a volume is made', () => {
  it('a look at a local disk that has answered just now is made at once, one whose disk has not goes to the pool', async () => {
    const { route, clock } = await answering();
    clock.advance(LIMITS.volumeTouchAgeMsMax);
    expect(await route.look([], now, pooled)).toBe('pooled');
    // That look had the disk touched, and it has answered.
    await vi.waitFor(async () => expect(await route.look([], now, pooled)).toBe('at once'));
  });

  it('where no directory of its own is known, and on any other file system, no disk is known to answer', async () => {
    const { route } = routeOf(true);
    expect(await route.look([], now, pooled)).toBe('pooled');
    const network = routeOf(false);
    network.route.touchAt(network.directory);
    await network.route.look([], now, pooled);
    expect([await network.route.look([], now, pooled), await network.route.lookAtHeld([], now, pooled)]).toEqual(['pooled', 'pooled']);
  });

  it('a look is not made at once while a change takes longer than on a disk that is well; one at what is held open is', async () => {
    const { route, clock, hangs } = await answering();
    const hung = hangs();
    clock.advance(LIMITS.volumeLateMs);
    expect([await route.look([], now, pooled), await route.lookAtHeld([], now, pooled)]).toEqual(['pooled', 'at once']);
    await hung.ends();
    expect(await route.look([], now, pooled)).toBe('at once');
  });

  it('a descriptor is closed when its last call has really ended, also when its caller was told long before that it failed', async () => {
    const { route, clock, directory } = routeOf(false);
    let end = (): void => undefined;
    const call = route.pooled([directory], () => new Promise<void>((resolve) => (end = resolve)));
    const told = expect(call).rejects.toMatchObject({ code: 'volume_unavailable' });
    clock.advance(4_000);
    await told;
    await route.close(directory);
    expect(fstatSync(directory.fd).isDirectory()).toBe(true);
    end();
    await vi.waitFor(() => expect(() => fstatSync(directory.fd)).toThrow('EBADF'));
    await expect(route.look([directory], now, pooled)).rejects.toThrow();
  });

  it('a descriptor whose volume does not answer is closed once it does', async () => {
    const { route, clock, directory, hangs } = routeOf(false);
    const hung = hangs();
    clock.advance(4_000);
    await settle();
    await expect(route.close(directory)).rejects.toMatchObject({ code: 'volume_unavailable' });
    expect(fstatSync(directory.fd).isDirectory()).toBe(true);
    await hung.ends();
    clock.advance(LIMITS.volumeCanaryMs);
    await route.change([], () => Promise.resolve());
    await route.look([], now, pooled);
    await vi.waitFor(() => expect(() => fstatSync(directory.fd)).toThrow('EBADF'));
  });

  it('a descriptor that was closed is used by nobody: its number may be a file of somebody else', async () => {
    const { route, directory } = await answering();
    await route.close(directory);
    expect(() => closeSync(directory.fd)).toThrow('EBADF');
    await expect(route.look([directory], now, pooled)).rejects.toThrow('after it was closed');
    await expect(route.change([directory], pooled)).rejects.toThrow('after it was closed');
  });
});
