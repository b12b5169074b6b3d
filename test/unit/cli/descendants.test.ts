import { describe, expect, it } from 'vitest';
import { familyOf, type ProcessFacts, statFacts } from '../../../src/cli/child/descendants.ts';

const one = (pid: number, parent: number, group: number, started = '1'): ProcessFacts => ({ pid, parent, group, started });
const pids = (family: readonly ProcessFacts[]): number[] => family.map(({ pid }) => pid).toSorted((a, b) => a - b);

describe('what a command has started', () => {
  it('is its group, and all that descends from it, in whatever group', () => {
    const all = [one(1, 0, 1), one(40, 30, 40), one(10, 1, 10), one(30, 12, 12), one(12, 10, 12), one(50, 1, 50), one(11, 1, 10)];
    expect(pids(familyOf(10, [], all))).toEqual([10, 11, 12, 30, 40]);
  });

  it('is also what was seen before its parents ended, but not a later process with the same number', () => {
    const seen = [one(12, 10, 12, '7'), one(13, 10, 13, '8')];
    expect(pids(familyOf(10, seen, [one(12, 1, 12, '7'), one(13, 1, 13, '9'), one(14, 12, 14)]))).toEqual([12, 14]);
  });

  it('is read as /proc tells it, whatever the name of a program is', () => {
    const [self] = statFacts(7, '7 (a) b) (c) S 3 5 5 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 11 0 12345 99');
    expect(self).toEqual({ pid: 7, parent: 3, group: 5, started: '12345' });
  });

  it('has nothing in it that has ended and waits for its parent only', () => {
    expect(statFacts(7, '7 (a) Z 3 5 5 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 11 0 12345 99')).toEqual([]);
  });
});
