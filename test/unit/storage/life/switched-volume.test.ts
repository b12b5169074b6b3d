import * as fs from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LIMITS } from '../../../../src/domain/limits.ts';
import type { StartMode } from '../../../../src/storage/life/start-deps.ts';
import type { VolumeStartResult } from '../../../../src/storage/life/start-report.ts';
import { startVolume } from '../../../../src/storage/life/start-volume.ts';
import { SwitchedVolume } from '../../../../src/storage/life/switched-volume.ts';
import { settle } from '../../../support/fake-clock.ts';
import { put } from '../../../support/hand-made-writes.ts';
import { type Life, LivingVolume } from '../../../support/living-volume.ts';
import { sealAs } from '../../../support/seal.ts';
import { testPolicy } from '../../../support/temp-volume.ts';
import { onTheServer } from '../../../support/volume-base.ts';

let living: LivingVolume;
let volume: SwitchedVolume;
let starts: StartMode[];
let told: (string | null)[];
let doubt: string | null;
/** Starts that are not over: they make real calls, for which a test's clock does not wait by itself. */
let running: number;
const made: SwitchedVolume[] = [];

function switched(life: Life = {}, start?: (mode: StartMode) => Promise<VolumeStartResult>): SwitchedVolume {
  starts = [];
  told = [];
  doubt = null;
  running = 0;
  volume = new SwitchedVolume({
    policy: testPolicy({ path: living.root, ...life.policy }),
    clock: living.clock,
    doubt: () => doubt,
    onChange: (changed) => told.push(changed.state().reason),
    start: async (mode) => {
      starts.push(mode);
      running += 1;
      try {
        return await (start?.(mode) ?? startVolume({ ...living.deps(life), onFenced: () => volume.reincarnate() }, mode));
      } finally {
        running -= 1;
      }
    },
  });
  made.push(volume);
  return volume;
}

beforeEach(() => {
  living = new LivingVolume();
});
afterEach(async () => {
  for (const one of made.splice(0)) await one.stop();
  living.remove();
});

describe('a volume over the life of the process', () => {
  it('says why it cannot be used before it is started, and serves afterwards', async () => {
    switched();
    expect(volume.state().state).toBe('unavailable');
    expect(() => volume.assertWritable()).toThrow(/not been started/);
    await volume.start();
    expect(volume.state().state).toBe('open');
    await volume.reserve(1n);
    expect(volume.covers(1n)).toBe(true);
  });

  it('that has to wait for its start is touched by nobody until then, whoever asks', async () => {
    switched();
    volume.waitFor('It waits.');
    expect(volume.state()).toEqual({ state: 'unavailable', reason: 'It waits.' });
    for (const mode of ['adopt', 'rebase'] as const)
      await expect(volume.restart(mode)).rejects.toMatchObject({ code: 'volume_unavailable', message: expect.stringContaining('It waits.') });
    await living.clock.advanceAsync(60_000);
    expect([starts, fs.readdirSync(living.root)]).toEqual([[], []]);
    await volume.start();
    expect([starts, volume.state().state]).toEqual([['plain'], 'open']);
    await volume.restart('rebase');
  });

  it("is not said to be open while it may be somebody else's; what it says of itself when it is not served stays", async () => {
    switched();
    doubt = 'It is not known whose it is.';
    expect(volume.state().reason).toBe('It has not been started yet.');
    doubt = null;
    await volume.start();
    doubt = 'It is not known whose it is.';
    expect(volume.state()).toEqual({ state: 'unavailable', reason: doubt });
    // Who writes is judged by the lease, and told more.
    expect(() => volume.assertWritable()).not.toThrow();
    doubt = null;
    expect(volume.state()).toEqual({ state: 'open', reason: null });
  });

  it('is tried again by itself when it is missing at start, less and less often, and holds nobody up', async () => {
    fs.rmSync(living.root, { recursive: true });
    switched();
    await volume.start();
    expect(volume.state()).toMatchObject({ state: 'unavailable', reason: 'Its directory is missing.' });
    expect(told).toEqual(['It is being started.', 'Its directory is missing.']);
    await expect(volume.open(living.resource('a'))).rejects.toMatchObject({ code: 'volume_unavailable' });
    const attempts: number[] = [];
    for (let second = 0; second < 130; second += 1) {
      await living.clock.advanceAsync(1_000);
      do await settle();
      while (running > 0);
      attempts.push(starts.length);
    }
    expect(starts.length).toBeGreaterThan(5);
    expect(attempts.at(-1)).toBeLessThanOrEqual(1 + 5 + Math.ceil(130_000 / LIMITS.volumeRetryMsMax));
    fs.mkdirSync(living.root);
    living.clock.advance(LIMITS.volumeRetryMsMax);
    await expect.poll(() => volume.state().state).toBe('open');
  });

  it('starts a new incarnation when it finds that its directory was removed, and then takes writes again', async () => {
    switched();
    await volume.start();
    const { incarnation } = volume;
    const place = await volume.locate(living.resource('a'));
    const staging = await volume.stage({ sha512: false });
    await staging.write(Buffer.from('x'));
    const staged = await sealAs(volume, staging, null);
    fs.rmSync(onTheServer(living.control(incarnation)), { recursive: true });
    const intent = {
      operationId: 'op-1',
      resource: living.resource('a'),
      before: null,
      staged,
      plan: { kind: 'replace' as const },
      incarnation,
      audit: undefined as never,
    };
    await expect(volume.apply(intent, place, null)).rejects.toMatchObject({ code: 'outcome_unknown' });
    await expect.poll(() => volume.state().state).toBe('open');
    expect(volume.incarnation).not.toBe(incarnation);
    await expect(volume.apply(intent, place, null)).rejects.toMatchObject({ code: 'outcome_unknown' });
    await put({ living, volume: volume as never, operationId: 'op-2' }, 'a', 'again');
    expect(living.read('a')).toBe('again');
  });

  it('B36: stays closed for another gateway without trying again, until it is adopted', async () => {
    await (await living.open({ owner: 'gateway-9' })).close();
    living.record.directories.length = 0;
    switched();
    await volume.start();
    expect(volume.state()).toMatchObject({ state: 'closed' });
    expect(volume.state().reason).toContain('gateway-9');
    expect(volume.ownedByAnother).toBe(true);
    await living.clock.advanceAsync(10 * LIMITS.volumeRetryMsMax);
    expect(starts).toEqual(['plain']);
    await expect(volume.restart('plain')).rejects.toMatchObject({ code: 'volume_unavailable' });
    await volume.restart('adopt');
    expect(volume.state().state).toBe('open');
    expect(volume.incarnation).toBe(living.incarnationDirectories()[0]);
  });

  it('R33: is readable and refuses every write over another journal, until the rebase', async () => {
    living.write('a', 'bytes');
    await (await living.open()).close();
    switched({ journalUuid: 'journal-2' });
    await volume.start();
    expect(volume.state().state).toBe('read_only');
    expect(() => volume.assertWritable()).toThrow(/rebase/);
    await expect(volume.stage({ sha512: false })).rejects.toMatchObject({ code: 'volume_unavailable' });
    const opened = await volume.open(living.resource('a'));
    await opened.close();
    await volume.restart('rebase');
    await volume.rebase((volume.ceilingFound ?? 0n) + 1n);
    volume.assertWritable();
    expect(volume.state().state).toBe('open');
  });

  it('has only its title to claim, and nothing to reserve or write, when it is only for locks', async () => {
    switched({ policy: { path: null } });
    await volume.start();
    await volume.reserve(99n);
    expect(volume.covers(99n)).toBe(true);
    expect(volume.state().state).toBe('lock_only');
    expect(starts).toEqual(['plain']);
    await expect(volume.locate(living.resource('a'))).rejects.toMatchObject({ code: 'volume_unavailable' });
  });

  describe('stopped during a start', () => {
    let release: () => void;
    let closed: number;
    beforeEach(() => {
      closed = 0;
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      switched({}, async () => {
        await held;
        const opened = await living.open();
        return {
          ...opened,
          close: async () => {
            closed += 1;
            // As on a network mount: nothing goes on until the calls of the pool have ended.
            await new Promise((resolve) => void setImmediate(resolve));
            await opened.close();
          },
        };
      });
    });

    it('is over once the start is, and what that opened is closed', async () => {
      const starting = volume.start();
      await settle();
      let over = false;
      const stopping = volume.stop().then(() => {
        over = true;
      });
      await settle();
      expect(over).toBe(false);
      release();
      await Promise.all([stopping, starting]);
      expect(closed).toBe(1);
      expect(volume.state().state).toBe('closed');
    });

    it('waits for a start that hangs no longer than the limit, and closes what it opens all the same', async () => {
      const starting = volume.start();
      await settle();
      const stopping = volume.stop();
      await living.clock.advanceAsync(LIMITS.volumeStartEndMsMax);
      await stopping;
      expect(closed).toBe(0);
      release();
      await starting;
      expect(closed).toBe(1);
      expect(volume.state().state).toBe('closed');
    });

    it('begins no other start, whoever waits for one', async () => {
      const starting = volume.start();
      volume.renew();
      const asked = expect(volume.restart('rebase')).rejects.toMatchObject({ code: 'volume_unavailable' });
      await settle();
      const stopping = volume.stop();
      release();
      await Promise.all([stopping, starting, asked]);
      expect(starts).toEqual(['plain']);
      expect(volume.state()).toMatchObject({ state: 'closed', reason: 'The gateway is shutting down.' });
    });
  });
});
