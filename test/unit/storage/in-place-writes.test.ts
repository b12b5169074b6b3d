import { describe, expect, it } from 'vitest';
import { InPlaceWrites } from '../../../src/storage/in-place-writes.ts';

describe('in-place writes and who reads meanwhile', () => {
  it('a reader that was there is cut, one of another file is not', () => {
    const writes = new InPlaceWrites();
    const [reader, other] = [writes.enter(1n), writes.enter(2n)];
    writes.begin('op', 1n);
    expect([reader.cut, other.cut]).toEqual([true, false]);
  });

  it('a reader that comes while one runs is cut, one that comes afterwards is not', () => {
    const writes = new InPlaceWrites();
    writes.begin('op', 1n);
    expect(writes.isRunning(1n)).toBe(true);
    expect(writes.enter(1n).cut).toBe(true);
    writes.end('op');
    expect(writes.isRunning(1n)).toBe(false);
    expect(writes.enter(1n).cut).toBe(false);
  });

  it('a cut reader stays cut', () => {
    const writes = new InPlaceWrites();
    const reader = writes.enter(1n);
    writes.begin('op', 1n);
    writes.end('op');
    expect(reader.cut).toBe(true);
  });

  it('the end of one operation does not end another, and an unknown one ends nothing', () => {
    const writes = new InPlaceWrites();
    writes.begin('one', 1n);
    writes.end('other');
    expect(writes.isRunning(1n)).toBe(true);
  });

  it('a reader that left is not touched, also when others are still there', () => {
    const writes = new InPlaceWrites();
    const [gone, stays] = [writes.enter(1n), writes.enter(1n)];
    gone.leave();
    gone.leave();
    writes.begin('op', 1n);
    expect([gone.cut, stays.cut]).toEqual([false, true]);
  });
});
