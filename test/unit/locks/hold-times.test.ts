import { describe, expect, it } from 'vitest';
import { HoldTimes } from '../../../src/locks/hold-times.ts';
import { anybody, LockLab, resource } from '../../support/lock-lab.ts';

const A = resource('a');
const free = (heldMs: number) => ({ heldMs, atMostMs: Number.POSITIVE_INFINITY });

describe('the estimate of a wait', () => {
  it('is not known before the first lease has ended, and 0 only for who need not wait', () => {
    const times = new HoldTimes();
    expect([times.estimateMs([], 0), times.estimateMs([free(5)], 0)]).toEqual([0, null]);
    times.ended(0.2);
    expect([times.estimateMs([], 0), times.estimateMs([free(0)], 0), times.estimateMs([], 1)]).toEqual([0, 1, 1]);
  });

  it('gives each turn before it the average of the past', () => {
    const times = new HoldTimes();
    times.ended(1_000);
    expect(times.estimateMs([free(0)], 0)).toBe(1_000);
    expect(times.estimateMs([free(900)], 3)).toBe(4_000);
    times.ended(2_000);
    expect(times.estimateMs([], 1)).toBe(1_100);
  });

  it('takes a holder that holds for longer than others did to hold for as long again', () => {
    const times = new HoldTimes();
    times.ended(5);
    expect(times.estimateMs([free(600_000)], 1)).toBe(600_005);
    // Of several readers the last one counts.
    expect(times.estimateMs([free(10), free(60_000)], 0)).toBe(60_000);
  });

  it('knows no longer rest than the end of the longest hold, or of a grace', () => {
    const times = new HoldTimes();
    times.ended(5);
    expect(times.estimateMs([{ heldMs: 600_000, atMostMs: 1_000 }], 1)).toBe(1_005);
    expect(times.estimateMs([{ heldMs: 600_000, atMostMs: -1 }], 0)).toBe(1);
  });

  it('in a lock: the present holder with its bounds, readers side by side one turn, an upgrade one of its own', async () => {
    const lab = new LockLab();
    const past = await lab.acquire(A);
    lab.clock.advance(1_000);
    await lab.release(past.leaseId);
    const estimate = async () => (await lab.locks.service.lock(A)).waitEstimateMs;
    const holder = await lab.acquire(A, { ttlMs: 3_600_000, maxHoldMs: 90_000 });
    lab.clock.advance(40_000);
    expect(await estimate()).toBe(40_000);
    lab.clock.advance(20_000);
    expect(await estimate()).toBe(30_000);
    await lab.locks.breakLock(anybody, { resource: A, reason: 'slow', graceMs: 10_000 });
    expect(await estimate()).toBe(10_000);
    for (const mode of ['shared', 'shared', 'exclusive', 'shared'] as const) {
      await lab.during(lab.acquire(A, { mode, waitMs: 1, ttlMs: 3_600_000 }), 1, 1);
    }
    expect(await estimate()).toBe(10_000 - 4 + 3 * 1_000);
    expect(holder.state).toBe('held');
  });
});
