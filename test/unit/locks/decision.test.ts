import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LeaseMode } from '../../../src/domain/lease.ts';
import { admit, conflict, holdingOf, type Standing, watched, watchedByUpgrader } from '../../../src/locks/decision.ts';
import { compareOrder, orderKey, PASS_PER_STEP, PRIORITY_MAX } from '../../../src/locks/order-key.ts';
import { TIER } from '../../support/tier.ts';

const RUNS = { numRuns: TIER.propertyRuns };

interface Party {
  readonly id: number;
  readonly mode: LeaseMode;
  readonly sequence: number;
  readonly priority: number;
  /** Who wakes it; `null`: it was told to look now. */
  watches: Party | null;
}

/** A lock kept only by the pure rule: waiters act when the one they watch is gone, and never otherwise. */
class Model {
  holders: Party[] = [];
  line: Party[] = [];
  #sequence = 0;
  readonly granted: Party[] = [];
  wakeUps = 0;

  arrive(mode: LeaseMode, priority: number): Party {
    this.#sequence += 1;
    const party: Party = { id: this.#sequence, mode, priority, sequence: this.#sequence, watches: null };
    this.line.push(party);
    this.line.sort(compareOrder);
    this.look(party);
    return party;
  }

  leave(party: Party): number {
    this.holders = this.holders.filter((other) => other !== party);
    this.line = this.line.filter((other) => other !== party);
    const woken = this.line.filter(({ watches }) => watches === party);
    this.wakeUps += woken.length;
    for (const waiter of woken) this.look(waiter);
    return woken.length;
  }

  /** The waiter's own decision: may I hold; if not, whom do I watch now. */
  look(party: Party): void {
    const { admitted } = admit(holdingOf(this.holders), this.line);
    if (!admitted.includes(party)) {
      party.watches = watched(party, this.holders, this.line.slice(0, this.line.indexOf(party)));
      return;
    }
    this.line = this.line.filter((other) => other !== party);
    this.holders.push(party);
    this.granted.push(party);
  }
}

const arrivals = fc.array(
  fc.record({
    what: fc.constantFrom('arrive', 'arrive', 'leave'),
    shared: fc.boolean(),
    priority: fc.integer({ min: 0, max: PRIORITY_MAX }),
    pick: fc.nat(),
  }),
  { maxLength: 80, size: 'max' },
);

/** Runs a schedule; `check` looks after every step. */
function run(
  steps: readonly { readonly what: string; readonly shared: boolean; readonly priority: number; readonly pick: number }[],
  equals: boolean,
  check: (model: Model) => void,
): Model {
  const model = new Model();
  for (const { what, shared, priority, pick } of steps) {
    const all = [...model.holders, ...model.line];
    const leaver = all[pick % Math.max(1, all.length)];
    if (what === 'leave' && leaver !== undefined) model.leave(leaver);
    else if (what === 'arrive') model.arrive(shared ? 'shared' : 'exclusive', equals ? 5 : priority);
    check(model);
  }
  return model;
}

describe('the decision who may hold', { timeout: 300_000 }, () => {
  it('never lets two hold that conflict', () => {
    fc.assert(
      fc.property(arrivals, fc.boolean(), (steps, equals) => {
        run(steps, equals, ({ holders }) => {
          expect(holders.every((a) => holders.every((b) => a === b || !conflict(a.mode, b.mode)))).toBe(true);
        });
      }),
      RUNS,
    );
  });

  it('loses no wake-up: whoever could hold does, although waiters act only when the one they watch is gone', () => {
    fc.assert(
      fc.property(arrivals, fc.boolean(), (steps, equals) => {
        run(steps, equals, ({ holders, line }) => expect(admit(holdingOf(holders), line).admitted).toEqual([]));
      }),
      RUNS,
    );
  });

  it('has everybody watch somebody before them, so watches form no cycle', () => {
    fc.assert(
      fc.property(arrivals, fc.boolean(), (steps, equals) => {
        run(steps, equals, ({ holders, line }) => {
          const isBefore = (waiter: Party, place: number): boolean => {
            const blocker = watched(waiter, holders, line.slice(0, place));
            return blocker !== null && (holders.includes(blocker) || line.indexOf(blocker) < place);
          };
          expect(line.every(isBefore)).toBe(true);
        });
      }),
      RUNS,
    );
  });

  it('serves equals first in, first out: writers in order, and no reader before an earlier writer', () => {
    fc.assert(
      fc.property(arrivals, (steps) => {
        const { granted } = run(steps, true, () => undefined);
        for (const [i, earlier] of granted.entries()) {
          for (const later of granted.slice(i + 1)) if (conflict(earlier.mode, later.mode)) expect(earlier.id).toBeLessThan(later.id);
        }
      }),
      RUNS,
    );
  });

  it('wakes exactly one writer, or one group of readers, when a writer among equals ends', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: 2, maxLength: 40, size: 'max' }), (modes) => {
        const model = new Model();
        const first = model.arrive('exclusive', 5);
        for (const shared of modes) model.arrive(shared ? 'shared' : 'exclusive', 5);
        const group = modes.findIndex((shared) => !shared);
        const readers = group === -1 ? modes.length : group;
        expect(model.leave(first)).toBe(Math.max(1, readers));
      }),
      RUNS,
    );
  });

  it('lets a more important one pass at most 16 per step of priority', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 8 }),
        fc.array(fc.integer({ min: 1, max: PRIORITY_MAX }), { maxLength: 400, size: 'max' }),
        (priority, others) => {
          const victim = { sequence: 0, priority };
          for (let step = 1; step <= PRIORITY_MAX; step += 1) {
            const passed = others.filter((p, i) => p === step && compareOrder({ sequence: i + 1, priority: p }, victim) < 0).length;
            expect(passed).toBeLessThanOrEqual(PASS_PER_STEP * Math.max(0, step - priority));
          }
        },
      ),
      RUNS,
    );
  });

  it('starves nobody: whoever came later was let in before only within 16 arrivals for each step of priority that it is ahead', () => {
    fc.assert(
      fc.property(arrivals, (steps) => {
        const { granted, line } = run(steps, false, () => undefined);
        for (const [i, before] of granted.entries()) {
          for (const passed of [...granted.slice(i + 1), ...line]) {
            if (before.sequence < passed.sequence) continue;
            expect(before.sequence - passed.sequence).toBeLessThan(PASS_PER_STEP * (before.priority - passed.priority));
          }
        }
      }),
      RUNS,
    );
  });

  it('lets nobody past a contender of another recipe, and never grants it', () => {
    const foreign: Standing = { mode: 'shared', foreign: true };
    expect(admit<Standing>(holdingOf([]), [foreign, { mode: 'shared' }]).admitted).toEqual([]);
    expect(watched<Standing>({ mode: 'shared' }, [], [foreign])).toBe(foreign);
  });

  it('makes an upgrader wait for every other reader, and everybody else for it', () => {
    const [a, b] = [{ mode: 'shared' as const, upgrading: true }, { mode: 'shared' as const }];
    const waiting = [{ mode: 'shared' as const }];
    expect(admit(holdingOf([a, b]), waiting)).toEqual({ upgrade: false, admitted: [] });
    expect(admit(holdingOf([a]), waiting)).toEqual({ upgrade: true, admitted: [] });
    expect(watchedByUpgrader(a, [a, b])).toBe(b);
    expect(watchedByUpgrader(a, [a])).toBeNull();
    expect(watched({ mode: 'shared' as const }, [b, a], [])).toBe(a);
  });

  it('orders by the fixed key, ties by arrival', () => {
    expect(orderKey(16, 6)).toBe(orderKey(0, 5));
    expect(compareOrder({ sequence: 0, priority: 5 }, { sequence: 16, priority: 6 })).toBeLessThan(0);
    expect(compareOrder({ sequence: 0, priority: 5 }, { sequence: 15, priority: 6 })).toBeGreaterThan(0);
  });
});
