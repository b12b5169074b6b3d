import fc from 'fast-check';
import { expect, test } from 'vitest';
import { GatewayError } from '../../../src/domain/errors.ts';
import { byteRanges } from '../../../src/http/byte-ranges.ts';

test('a suffix longer than the file is the whole file', () => {
  expect(byteRanges('bytes=-100', 10)).toEqual([{ start: 0, end: 10 }]);
});

test('of several ranges those outside the file are left out', () => {
  expect(byteRanges('bytes=0-1, 50-, 4-5', 10)).toEqual([
    { start: 0, end: 2 },
    { start: 4, end: 6 },
  ]);
});

test('an empty file has no range', () => {
  expect(() => byteRanges('bytes=0-', 0)).toThrow(GatewayError);
  expect(() => byteRanges('bytes=-5', 0)).toThrow(GatewayError);
});

test('numbers beyond 2^53 do no harm', () => {
  expect(byteRanges('bytes=0-99999999999999999999', 10)).toEqual([{ start: 0, end: 10 }]);
  expect(() => byteRanges('bytes=99999999999999999999-', 10)).toThrow(GatewayError);
});

test('ranges lie inside the file and do not overlap, whatever is asked for', () => {
  const spec = fc.oneof(
    fc.tuple(fc.nat(30), fc.option(fc.nat(30))).map(([a, b]) => `${a}-${b ?? ''}`),
    fc.nat(30).map((n) => `-${n}`),
    fc.string({ maxLength: 5 }),
  );
  fc.assert(
    fc.property(fc.array(spec, { maxLength: 20, size: 'max' }), fc.nat(25), (specs, size) => {
      let ranges: ReturnType<typeof byteRanges>;
      try {
        ranges = byteRanges(`bytes=${specs.join(',')}`, size);
      } catch (error) {
        expect(error).toMatchObject({ code: 'range_not_satisfiable', members: { size_bytes: size } });
        return;
      }
      const seen = new Set<number>();
      for (const { start, end } of ranges ?? []) {
        expect(start >= 0 && start < end && end <= size).toBe(true);
        for (let at = start; at < end; at += 1) {
          expect(seen.has(at)).toBe(false);
          seen.add(at);
        }
      }
    }),
  );
});
