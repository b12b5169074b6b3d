import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ContenderLine, type Queued } from '../../../src/locks/embedded/contender-line.ts';
import { compareOrder } from '../../../src/locks/order-key.ts';
import { TIER } from '../../support/tier.ts';

const RUNS = { numRuns: TIER.propertyRuns };

interface Item extends Queued<Item> {
  readonly sequence: number;
}

describe('a line of contenders', { timeout: 300_000 }, () => {
  it('is always in the order of the keys, whatever joins, leaves or changes its priority', () => {
    const step = fc.record({ what: fc.constantFrom('add', 'add', 'remove', 'rekey'), priority: fc.integer({ min: 0, max: 9 }), pick: fc.nat() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120, size: 'max' }), (steps) => {
        const line = new ContenderLine<Item>();
        let model: Item[] = [];
        for (const [sequence, { what, priority, pick }] of steps.entries()) {
          const item = model[pick % Math.max(1, model.length)];
          if (what === 'add') {
            const added = { sequence, priority, next: null, previous: null };
            line.add(added);
            model.push(added);
          } else if (item !== undefined && what === 'remove') {
            line.remove(item);
            model = model.filter((other) => other !== item);
          } else if (item !== undefined) {
            line.rekey(item, priority);
          }
          model.sort(compareOrder);
          expect([...line.inOrder()].every((waiter, place) => waiter === model[place])).toBe(true);
          expect([line.size, line.topPriority()]).toEqual([model.length, Math.max(-1, ...model.map((i) => i.priority))]);
          expect(model.every((waiter, place) => line.countBefore(waiter) === place)).toBe(true);
        }
      }),
      RUNS,
    );
  });
});
