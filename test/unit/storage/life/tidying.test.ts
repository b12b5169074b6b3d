import { describe, expect, it } from 'vitest';
import type { ApplyPlan, Intent } from '../../../../src/domain/intent.ts';
import { LIMITS } from '../../../../src/domain/limits.ts';
import { Tidying } from '../../../../src/storage/life/tidying.ts';
import { FakeClock, settle } from '../../../support/fake-clock.ts';
import { intentOf, tempVolume } from '../../../support/temp-volume.ts';

interface Desk {
  readonly tidying: Tidying;
  readonly clock: FakeClock;
  readonly unlinked: string[];
  /** The most calls that ran at once, and all calls. */
  most(): number;
  tries(): number;
  /** Calls fail while this is true. */
  failing: boolean;
  fenced: boolean;
}

function desk(): Desk {
  const clock = new FakeClock();
  const unlinked: string[] = [];
  let [running, most, tries] = [0, 0, 0];
  const made: Desk = {
    clock,
    unlinked,
    failing: false,
    fenced: false,
    most: () => most,
    tries: () => tries,
    tidying: new Tidying({
      clock,
      isFenced: () => made.fenced,
      unlink: async (name) => {
        running += 1;
        tries += 1;
        most = Math.max(most, running);
        await Promise.resolve();
        running -= 1;
        if (made.failing) throw new Error('the volume does not answer');
        unlinked.push(name);
      },
    }),
  };
  return made;
}

const template = await tempVolume();
await template.close();
const facts = { ino: 1n, sizeBytes: 1, mtimeNs: 1n };
const intent = (operationId: string, name: string, plan: ApplyPlan, before = false): Intent => ({
  ...intentOf(template, name, plan, { before: before ? facts : null, staged: { ...facts, name: `staged-${name}`, sha256: '' } }),
  operationId,
});
const upload = (operationId: string, count: number): Intent[] =>
  Array.from({ length: count }, (_, i) =>
    intent(operationId, `${operationId}-${i}`, { kind: 'several', manifest: `manifest-${operationId}` }, i % 2 === 0),
  );

async function until(condition: () => boolean): Promise<void> {
  for (let turns = 0; turns < 10_000 && !condition(); turns += 1) await settle();
  expect(condition()).toBe(true);
}

describe('tidying after an operation', () => {
  it('B2: takes one pass over an upload: each name once, the manifest first, one call at a time', async () => {
    const { tidying, unlinked, most } = desk();
    tidying.add(upload('op', 1_000));
    await until(() => tidying.left === 0);
    expect(unlinked).toHaveLength(1 + 500 + 1_000);
    expect(new Set(unlinked).size).toBe(unlinked.length);
    expect(unlinked.slice(0, 4)).toEqual(['manifest-op', 'manifest-op.old-0', 'staged-op-0', 'staged-op-1']);
    expect(most()).toBe(1);
  });

  it('runs few operations at once, however many end together', async () => {
    const { tidying, unlinked, most } = desk();
    for (let i = 0; i < 50; i += 1) tidying.add([intent(`op-${i}`, `${i}`, { kind: 'remove', trash: `trash-${i}` })]);
    await until(() => tidying.left === 0);
    expect(unlinked).toHaveLength(100);
    expect(most()).toBe(LIMITS.tidyOperationsMax);
  });

  it('goes on where it failed, later and later, until nothing is left', async () => {
    const one = desk();
    one.failing = true;
    one.tidying.add(upload('op', 3));
    await until(() => one.tries() === 1);
    await one.clock.advanceAsync(LIMITS.tidyRetryMsMin);
    expect(one.tries()).toBe(2);
    one.failing = false;
    await one.clock.advanceAsync(LIMITS.tidyRetryMsMin);
    expect([one.unlinked, one.tidying.left]).toEqual([[], 6]);
    await one.clock.advanceAsync(LIMITS.tidyRetryMsMin);
    await until(() => one.tidying.left === 0);
    expect(one.unlinked).toHaveLength(6);
  });

  it('remembers no more than its limit: the next start sweeps', async () => {
    const one = desk();
    one.failing = true;
    const large = upload('op', 1_000);
    for (let i = 0; i < 200; i += 1) one.tidying.add(large);
    expect(one.tidying.left).toBeLessThanOrEqual(LIMITS.tidyNamesMax);
    expect(one.tidying.left).toBeGreaterThan(LIMITS.tidyNamesMax - 1_501);
    one.tidying.stop();
    await settle();
  });

  it.each(['stopped', 'fenced'] as const)('makes no call once it is %s', async (how) => {
    const one = desk();
    one.failing = true;
    one.tidying.add(upload('op', 3));
    await until(() => one.tries() === 1);
    await settle();
    one.failing = false;
    if (how === 'stopped') one.tidying.stop();
    else one.fenced = true;
    await one.clock.advanceAsync(LIMITS.tidyRetryMsMax);
    expect([one.tries(), one.tidying.left]).toEqual([1, 0]);
  });
});
