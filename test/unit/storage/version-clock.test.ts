import type { BigIntStats } from 'node:fs';
import { constants, statSync } from 'node:fs';
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { at, Descriptor } from '../../../src/storage/descriptor.ts';
import { VersionClock } from '../../../src/storage/version-clock.ts';
import { type TempVolume, tempVolume } from '../../support/temp-volume.ts';

/** One file whose clock the test moves, on a volume that stores times in steps. */
class SteppedFile {
  naturalNs = 1_700_000_000_000_000_000n;
  readonly #stepNs: bigint;
  readonly #roundUp: boolean;
  constructor(stepNs: bigint, roundUp = false) {
    this.#stepNs = stepNs;
    this.#roundUp = roundUp;
  }
  readonly fstat = async (): Promise<BigIntStats> => ({ mtimeNs: this.naturalNs }) as BigIntStats;
  readonly setMtime = async (_: Descriptor, ns: bigint): Promise<void> => {
    this.naturalNs = ((ns + (this.#roundUp ? this.#stepNs - 1n : 0n)) / this.#stepNs) * this.#stepNs;
  };
}
const file = new Descriptor(-1);

describe('the version clock', () => {
  it('F34: two versions within one tick have two times', async () => {
    const stepped = new SteppedFile(1_000n);
    const clock = new VersionClock(stepped, { lastMtimeNs: 0n, granularityNs: 1_000n });
    const first = await clock.stamp(file);
    stepped.naturalNs = first;
    const second = await clock.stamp(file);
    expect(second).toBe(first + 1_000n);
    expect(clock.lastMtimeNs).toBe(second);
  });

  it('continues above the last time of the former process, also when the clock went back', async () => {
    const stepped = new SteppedFile(1_000n);
    const last = stepped.naturalNs + 3_600_000_000_000n;
    const clock = new VersionClock(stepped, { lastMtimeNs: last, granularityNs: 1_000n });
    expect(await clock.stamp(file)).toBe(last + 1_000n);
  });

  it.each([1_000n, 1_000_000n, 1_000_000_000n])('takes whole steps of %s ns, the granularity of the volume', async (stepNs) => {
    const stepped = new SteppedFile(stepNs);
    const clock = new VersionClock(stepped, { lastMtimeNs: 0n, granularityNs: stepNs });
    const times = [];
    for (let i = 0; i < 5; i++) {
      stepped.naturalNs += 7n;
      times.push(await clock.stamp(file));
    }
    for (const [index, time] of times.entries()) {
      expect(time % stepNs).toBe(0n);
      if (index > 0) expect(time).toBeGreaterThan(times[index - 1] ?? 0n);
    }
  });

  it('accepts what the volume stored when it rounds up, and stays above it', async () => {
    const stepped = new SteppedFile(4_000n, true);
    const clock = new VersionClock(stepped, { lastMtimeNs: 0n, granularityNs: 1_000n });
    const first = await clock.stamp(file);
    expect(await clock.stamp(file)).toBeGreaterThan(first);
  });

  it('is above the version that is replaced, also one from the future, which drags no other file along', async () => {
    const stepped = new SteppedFile(1_000n);
    const now = stepped.naturalNs;
    const clock = new VersionClock(stepped, { lastMtimeNs: 0n, granularityNs: 1_000n });
    const future = now + 10n ** 18n + 5n;
    expect(await clock.stamp(file, future)).toBe(now + 10n ** 18n + 1_000n);
    stepped.naturalNs = now;
    expect(await clock.stamp(file, now - 1n)).toBe(now + 1_000n);
    expect(clock.lastMtimeNs).toBe(now + 1_000n);
  });

  it('gives up with volume_unavailable when the volume keeps no time', async () => {
    const frozen = { fstat: async () => ({ mtimeNs: 5n }) as BigIntStats, setMtime: async () => undefined };
    const clock = new VersionClock(frozen, { lastMtimeNs: 10n, granularityNs: 1_000n });
    await expect(clock.stamp(file)).rejects.toMatchObject({ code: 'volume_unavailable' });
  });

  it('never repeats a time, whatever the clock does', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.bigInt(-10_000_000n, 10_000_000n), { maxLength: 50, size: 'max' }),
        fc.constantFrom(1_000n, 10_000n, 1_000_000n),
        async (moves, stepNs) => {
          const stepped = new SteppedFile(stepNs);
          const clock = new VersionClock(stepped, { lastMtimeNs: stepped.naturalNs, granularityNs: stepNs });
          let last = stepped.naturalNs;
          for (const move of moves) {
            stepped.naturalNs += move;
            const time = await clock.stamp(file);
            expect(time).toBeGreaterThan(last);
            last = time;
          }
        },
      ),
    );
  });
});

describe('the version clock on a real file', () => {
  let temp: TempVolume;
  beforeEach(async () => {
    temp = await tempVolume();
  });
  afterEach(() => temp.close());

  it('is stored exactly, to the microsecond, and can be given to another file again', async () => {
    const { calls, root } = temp.room;
    const clock = new VersionClock(calls, { lastMtimeNs: 0n, granularityNs: 1_000n });
    temp.write('a', 'x');
    temp.write('b', 'x');
    const [a, b] = [await calls.open(at(root, 'a'), constants.O_RDWR), await calls.open(at(root, 'b'), constants.O_RDWR)];
    const seen = new Set<bigint>();
    for (let i = 0; i < 2_000; i++) {
      const time = await clock.stamp(a);
      expect(time % 1_000n).toBe(0n);
      seen.add(time);
      await calls.setMtime(b, time);
      expect((await calls.fstat(b)).mtimeNs).toBe(time);
    }
    expect(seen.size).toBe(2_000);
    expect(statSync(temp.path('a'), { bigint: true }).mtimeNs).toBe(clock.lastMtimeNs);
    await calls.close(a);
    await calls.close(b);
  });

  it('is set exactly for any microsecond of this century', async () => {
    const { calls, root } = temp.room;
    temp.write('a', 'x');
    const a = await calls.open(at(root, 'a'), constants.O_RDWR);
    await fc.assert(
      fc.asyncProperty(fc.bigInt(1_000_000_000_000_000n, 4_000_000_000_000_000n), async (us) => {
        await calls.setMtime(a, us * 1_000n);
        expect((await calls.fstat(a)).mtimeNs).toBe(us * 1_000n);
      }),
      { numRuns: 2_000 },
    );
    await calls.close(a);
  });
});
