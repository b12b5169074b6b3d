import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Mark } from '../../../src/domain/journal.ts';
import { Lookups } from '../../../src/journal/lookups.ts';
import { MarkCache } from '../../../src/journal/mark-cache.ts';
import { testDatabase } from '../../support/journal-database.ts';
import { auditDraft, raise, token } from '../../support/journal-samples.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const mark = (value: number, everNamed = false): Mark => ({ token: token(value), leaseRef: `lease-${value}`, principal: null, everNamed });

describe('a stored mark', () => {
  it('never falls, and belongs to the lease that raised it', () => {
    const { db, write } = testDatabase(temporaryDirectory());
    const lookups = new Lookups(db);
    const highest = new Map<string, number>();
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom('demo/a', 'demo/b'), fc.integer({ min: 1, max: 1_000_000 }), fc.boolean()), { maxLength: 20, size: 'max' }),
        (raises) => {
          const before = new Map(highest);
          write(...raises.map(([name, value, named]) => raise(name, value, { named })));
          for (const [name, value] of raises) highest.set(name, Math.max(highest.get(name) ?? 0, value));
          for (const [name, value] of highest) {
            expect(value).toBeGreaterThanOrEqual(before.get(name) ?? 0);
            expect(lookups.mark(name)).toMatchObject({ token: BigInt(value), leaseRef: `lease-${value}` });
          }
        },
      ),
    );
  });

  it('stays named once it was', () => {
    const { db, write } = testDatabase(temporaryDirectory());
    const lookups = new Lookups(db);
    write(raise('demo/a', 5, { named: false }));
    expect(lookups.mark('demo/a')?.everNamed).toBe(false);
    write(raise('demo/a', 4, { named: true }), raise('demo/a', 6, { named: false }));
    expect(lookups.mark('demo/a')).toMatchObject({ token: 6n, everNamed: true });
  });

  it('takes a token of 63 bits whole', () => {
    const { db, write } = testDatabase(temporaryDirectory());
    const highest = 2n ** 63n - 1n;
    write(raise('demo/a', highest - 1n), raise('demo/a', highest));
    expect(new Lookups(db).mark('demo/a')?.token).toBe(highest);
  });

  it('is what a record names that asks for it, as it is in its unit, unless it knows a higher one', () => {
    const { db, write } = testDatabase(temporaryDirectory());
    const record = (known: number | null) => auditDraft({ action: 'lease_release', highWaterMark: known === null ? null : token(known) });
    write(raise('demo/a', 5), { op: 'audit', record: record(3), markOf: 'demo/a' });
    write({ op: 'audit', record: record(7), markOf: 'demo/a' }, { op: 'audit', record: record(3) });
    write({ op: 'audit', record: record(null), markOf: 'demo/b' }, { op: 'audit', record: record(null), markOf: 'demo/a' });
    write({ op: 'outcome', operationId: 'op', outcome: 'aborted', record: record(null), answer: null, markOf: 'demo/a' });
    expect(db.prepare('SELECT high_water_mark FROM audit ORDER BY seq').pluck().all()).toEqual([5, 7, 3, null, 5, 5]);
  });
});

describe('a cached mark', () => {
  it('is not lowered by an answer that a raise overtook, not even when it was evicted meanwhile', async () => {
    let answer: (mark: Mark | null) => void = () => undefined;
    const cache = new MarkCache(1, (key) =>
      key === 'a'
        ? new Promise((resolve) => {
            answer = resolve;
          })
        : Promise.resolve(null),
    );
    const slow = cache.get('a');
    cache.raise('a', mark(9));
    cache.raise('b', mark(1));
    answer(mark(5));
    expect(await slow).toEqual(mark(9));
    expect(await cache.get('a')).toEqual(mark(9));
  });

  it('never falls over any order of reads, raises, answers and evictions', async () => {
    const steps = fc.array(
      fc.oneof(
        fc.record({ kind: fc.constant('raise' as const), key: fc.constantFrom('a', 'b', 'c') }),
        fc.record({ kind: fc.constant('read' as const), key: fc.constantFrom('a', 'b', 'c') }),
        fc.constant({ kind: 'answer' as const }),
      ),
      { maxLength: 60, size: 'max' },
    );
    await fc.assert(
      fc.asyncProperty(steps, async (list) => {
        const stored = new Map<string, Mark>();
        const waiting: (() => void)[] = [];
        // The answer is what was stored when the read began: as late as can be.
        const cache = new MarkCache(
          1,
          (key) =>
            new Promise((resolve) => {
              const found = stored.get(key) ?? null;
              waiting.push(() => resolve(found));
            }),
        );
        let next = 1;
        const checks: Promise<void>[] = [];
        for (const step of list) {
          if (step.kind === 'raise') {
            const raised = mark(next++);
            stored.set(step.key, raised);
            cache.raise(step.key, raised);
          } else if (step.kind === 'read') {
            const least = stored.get(step.key)?.token ?? 0n;
            checks.push(cache.get(step.key).then((found) => expect(found?.token ?? 0n).toBeGreaterThanOrEqual(least)));
          } else {
            waiting.shift()?.();
            await Promise.resolve();
          }
        }
        for (const resolve of waiting) resolve();
        await Promise.all(checks);
      }),
    );
  });

  it('that could not be read is asked for again', async () => {
    let calls = 0;
    const cache = new MarkCache(10, () => (calls++ === 0 ? Promise.reject(new Error('busy')) : Promise.resolve(mark(3))));
    await expect(cache.get('a')).rejects.toThrow('busy');
    expect(await cache.get('a')).toEqual(mark(3));
  });
});
