import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { leaseTimes } from '../../../src/cli/child/lease-times.ts';
import { UsageError } from '../../../src/cli/usage-error.ts';

describe('the times of a command under a lease', () => {
  it('are 30 s, with 5 s from SIGTERM to SIGKILL, unless others are given', () => {
    expect(leaseTimes({})).toEqual({ ttlMs: 30_000, graceMs: 5_000, marginMs: 8_000 });
    expect(leaseTimes({ ttl: 1_000 })).toEqual({ ttlMs: 1_000, graceMs: 166, marginMs: 266 });
  });

  it('a grace that would not fit is refused, with a time to live for which it would', () => {
    expect(() => leaseTimes({ ttl: 10_000, grace: 5_000 })).toThrow(new UsageError('a grace of 5s needs a lease of 15s or more; write --ttl 15s'));
  });

  it('a longest hold shortens what is not given, and one that would leave the command no time is refused with what it must be longer than', () => {
    expect(leaseTimes({ maxHold: 6_000 })).toEqual({ ttlMs: 30_000, graceMs: 1_000, marginMs: 1_600 });
    expect(() => leaseTimes({ maxHold: 2_000, grace: 5_000 })).toThrow(
      new UsageError('--max-hold 2s leaves the command no time: it is ended 5.2s before; write a longer one, or a shorter --grace'),
    );
    expect(() => leaseTimes({ maxHold: 5_500, grace: 5_000 })).toThrow(UsageError);
    expect(leaseTimes({ maxHold: 5_600, grace: 5_000 }).marginMs).toBe(5_560);
  });

  it('the whole grace lies before the end of the lease, and a renewal in time still before the margin', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1_000, max: 3_600_000 }), fc.integer({ min: 0, max: 1_000 }), (ttl, part) => {
        const { graceMs, marginMs } = leaseTimes({ ttl, grace: Math.floor((ttl * part) / 3_000) });
        return marginMs > graceMs && marginMs < (ttl * 2) / 3;
      }),
    );
  });
});
