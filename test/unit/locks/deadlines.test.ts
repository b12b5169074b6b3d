import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Deadlines, type Timed } from '../../../src/locks/deadlines.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { TIER } from '../../support/tier.ts';

const RUNS = { numRuns: TIER.propertyRuns };

const item = (): Timed => ({ heapIndex: -1, dueMs: 0 });

describe('deadlines', { timeout: 300_000 }, () => {
  it('are taken earliest first, however they were set, moved and removed', () => {
    const step = fc.record({ what: fc.constantFrom('set', 'set', 'remove', 'take'), pick: fc.nat(9), dueMs: fc.nat(100) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100, size: 'max' }), (steps) => {
        const deadlines = new Deadlines(new FakeClock(), () => undefined);
        const items = Array.from({ length: 10 }, item);
        const model = new Map<Timed, number>();
        for (const { what, pick, dueMs } of steps) {
          const chosen = items[pick] as Timed;
          if (what === 'set') {
            deadlines.set(chosen, dueMs);
            model.set(chosen, dueMs);
          } else if (what === 'remove') {
            deadlines.remove(chosen);
            model.delete(chosen);
          } else {
            const earliest = Math.min(...model.values());
            const taken = deadlines.takeDue(dueMs);
            if (earliest > dueMs) expect(taken).toBeNull();
            else expect(model.get(taken as Timed)).toBe(earliest);
            if (taken !== null) model.delete(taken);
          }
          expect(deadlines.size).toBe(model.size);
        }
      }),
      RUNS,
    );
  });

  it('wake when the earliest is due, with one timer', () => {
    const clock = new FakeClock();
    const taken: Timed[] = [];
    const deadlines = new Deadlines<Timed>(clock, () => {
      for (let due = deadlines.takeDue(clock.monotonicMs()); due !== null; due = deadlines.takeDue(clock.monotonicMs())) taken.push(due);
    });
    const [early, late] = [item(), item()];
    deadlines.set(late, clock.monotonicMs() + 500);
    deadlines.set(early, clock.monotonicMs() + 100);
    clock.advance(100);
    expect(taken).toEqual([early]);
    clock.advance(400);
    expect(taken).toEqual([early, late]);
  });

  it('stay quiet after stop', () => {
    const clock = new FakeClock();
    let wakes = 0;
    const deadlines = new Deadlines<Timed>(clock, () => {
      wakes += 1;
    });
    deadlines.set(item(), clock.monotonicMs() + 100);
    deadlines.stop();
    clock.advance(1_000);
    expect(wakes).toBe(0);
  });
});
