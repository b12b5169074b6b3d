import { describe, expect, it } from 'vitest';
import { systemRandom } from '../../../src/observability/system-random.ts';

describe('the random source', () => {
  it('never gives the same bytes twice, across the refills of its pool', () => {
    const names = Array.from({ length: 3_000 }, () => Buffer.from(systemRandom.bytes(16)).toString('hex'));
    expect(new Set(names).size).toBe(names.length);
  });

  it('leaves bytes alone that were given out', () => {
    const bytes = systemRandom.bytes(16);
    const before = Buffer.from(bytes).toString('hex');
    for (let i = 0; i < 1_000; i++) systemRandom.bytes(24);
    expect(Buffer.from(bytes).toString('hex')).toBe(before);
  });

  it.each([0, 1, 4_096, 4_097, 100_000])('gives %i bytes when asked for so many', (count) => {
    const bytes = systemRandom.bytes(count);
    expect(bytes.byteLength).toBe(count);
    if (count > 16) expect(bytes.some((byte) => byte !== 0)).toBe(true);
  });
});
