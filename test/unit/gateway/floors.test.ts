import { describe, expect, it } from 'vitest';
import { fencingToken } from '../../../src/domain/fencing-token.ts';
import type { Mark } from '../../../src/domain/journal.ts';
import { Floors } from '../../../src/gateway/floors.ts';

const mark = (token: bigint): Mark => ({ token: fencingToken(token), leaseRef: 'lease', principal: 'anna', everNamed: true });
const stored = (facts: Record<string, string>) => ({ meta: (name: string) => facts[name] ?? null });

describe('the floor of a volume', () => {
  it('stands in for every mark below it, and for those that nobody knows, with no lease behind it', () => {
    const floors = new Floors(stored({ 'floor:v': '100' }), ['v', 'w']);
    expect(floors.above('v', null)).toEqual({ token: 100n, leaseRef: null, principal: null, everNamed: false });
    expect(floors.above('v', mark(99n))).toEqual({ token: 100n, leaseRef: null, principal: null, everNamed: true });
    expect(floors.above('v', mark(101n))).toEqual(mark(101n));
    expect(floors.above('w', mark(1n))).toEqual(mark(1n));
    expect(floors.above('w', null)).toBeNull();
  });

  it('follows a rebase once that is durable', () => {
    const floors = new Floors(stored({}), ['v']);
    floors.note({ op: 'meta_put', name: 'token_base', value: '7' });
    expect(floors.above('v', null)).toBeNull();
    floors.note({ op: 'meta_put', name: 'floor:v', value: '7' });
    expect(floors.above('v', null)?.token).toBe(7n);
  });
});
