import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { durationMs, shownDuration, timeMs } from '../../../src/cli/durations.ts';

describe('durations on the command line', () => {
  it.each([
    ['30s', 30_000],
    ['500ms', 500],
    ['5m', 300_000],
    ['2h', 7_200_000],
    ['1.5s', 1_500],
    ['0', 0],
    ['0s', 0],
  ])('%s is %d ms', (text, ms) => {
    expect(durationMs(text)).toBe(ms);
  });

  it.each(['', '30', 's', '-1s', '1e3s', '1 s', '30S', 'Infinity', '1h30m', '1.s', '.5s', '1.2345s', '٣s'])('%j is none', (text) => {
    expect(durationMs(text)).toBeNull();
  });

  it('whatever is read is a whole number of milliseconds, not below 0', () => {
    fc.assert(
      fc.property(fc.string(), fc.constantFrom('ms', 's', 'm', 'h', ''), (number, unit) => {
        const ms = durationMs(number + unit);
        return ms === null || (Number.isSafeInteger(ms) && ms >= 0);
      }),
    );
  });

  it.each([
    [300, '300ms'],
    [12_340, '12.3s'],
    [59_990, '1m'],
    [60_000, '1m'],
    [245_000, '4m 5s'],
    [3_600_000, '1h'],
    [3_725_000, '1h 2m'],
  ])('%d ms is shown as %s', (ms, text) => {
    expect(shownDuration(ms)).toBe(text);
  });
});

describe('times on the command line', () => {
  it.each([
    ['2026-03-01T08:00:00Z', '2026-03-01T08:00:00.000Z'],
    ['2026-03-01t08:00:00.25z', '2026-03-01T08:00:00.250Z'],
    ['2026-03-01 08:00:00+02:00', '2026-03-01T06:00:00.000Z'],
    ['2028-02-29T23:59:59-00:30', '2028-03-01T00:29:59.000Z'],
  ])('%s is %s', (text, iso) => {
    expect(new Date(timeMs(text) ?? Number.NaN).toISOString()).toBe(iso);
  });

  it.each([
    '10',
    'last 5',
    '2026-03-01',
    '2026-03-01T08:00:00',
    '2026-03-01T08:00Z',
    '2026-02-29T08:00:00Z',
    '2026-13-01T08:00:00Z',
    '1 Mar 2026',
    '',
  ])('%j is none: nobody can know what was meant', (text) => {
    expect(timeMs(text)).toBeNull();
  });
});
