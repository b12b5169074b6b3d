import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chooseVictim, findCycle } from '../../../src/locks/wait-for-graph.ts';
import { TIER } from '../../support/tier.ts';

const RUNS = { numRuns: TIER.propertyRuns };

const graph = (edges: Readonly<Record<number, readonly number[]>>) => (node: number) =>
  (edges[node] ?? []).map((to) => ({ to, wait: `${node}>${to}` }));

describe('the wait-for graph', { timeout: 300_000 }, () => {
  it('finds the shortest cycle through the start and names the wait of each step', () => {
    const cycle = findCycle(1, graph({ 1: [2, 3], 2: [4], 4: [1], 3: [1] }), 100);
    expect(cycle?.map(({ wait }) => wait)).toEqual(['1>3', '3>1']);
  });

  it('finds none where there is none, nor one that the start is not part of', () => {
    expect(findCycle(1, graph({ 1: [2], 2: [3] }), 100)).toBeNull();
    expect(findCycle(1, graph({ 1: [2], 2: [3], 3: [2] }), 100)).toBeNull();
  });

  it('gives up beyond the number of nodes it may look at', () => {
    const chain = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [i, [(i + 1) % 50]]));
    expect(findCycle(0, graph(chain), 10)).toBeNull();
    expect(findCycle(0, graph(chain), 100)).toHaveLength(50);
  });

  it('answers with a path of real edges from the start to itself, exactly when one exists', () => {
    const edges = fc.dictionary(fc.integer({ min: 0, max: 7 }).map(String), fc.array(fc.integer({ min: 0, max: 7 }), { maxLength: 3 }));
    fc.assert(
      fc.property(edges, (drawn) => {
        const of = graph(drawn);
        const cycle = findCycle(0, of, 100);
        if (cycle === null) expect(reaches(0, 0, of)).toBe(false);
        else
          for (const [i, { from, to }] of cycle.entries()) {
            expect(drawn[from]).toContain(to);
            expect(to).toBe(cycle[i + 1]?.from ?? 0);
          }
      }),
      RUNS,
    );
  });

  it('chooses the least important, among equals the youngest', () => {
    const waits = [
      { priority: 5, createdOrder: 9 },
      { priority: 3, createdOrder: 1 },
      { priority: 3, createdOrder: 2 },
    ];
    expect(chooseVictim(waits)).toBe(waits[2]);
    expect(() => chooseVictim([])).toThrow(RangeError);
  });
});

function reaches(from: number, to: number, of: (node: number) => readonly { readonly to: number }[]): boolean {
  const seen = new Set<number>();
  const stack = of(from).map((edge) => edge.to);
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (node === to) return true;
    if (seen.has(node)) continue;
    seen.add(node);
    stack.push(...of(node).map((edge) => edge.to));
  }
  return false;
}
