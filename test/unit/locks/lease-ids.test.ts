import { describe, expect, it } from 'vitest';
import type { JournalOp } from '../../../src/domain/journal.ts';
import { LeaseIds } from '../../../src/locks/lease-ids.ts';
import { FakeClock, seededRandom } from '../../support/fake-clock.ts';

const MARK = 'coordinator';

/** A process of one gateway, whose journal is `facts`; `wallMs` is what its clock says when it starts. */
async function started(facts: Map<string, string>, wallMs: number, seed: number): Promise<LeaseIds> {
  const clock = new FakeClock();
  clock.jumpWall(wallMs - clock.wallMs());
  const ids = new LeaseIds({ clock, random: seededRandom(seed), marks: () => [MARK], shared: true });
  const commit = async (ops: readonly JournalOp[]) => {
    for (const op of ops) if (op.op === 'meta_put' && op.value !== null) facts.set(op.name, op.value);
    return { seqs: [] };
  };
  await ids.begin({ meta: (name) => facts.get(name) ?? null }, { commit });
  return ids;
}

describe('the lease ids of gateways that share a coordinator', () => {
  it('are never the same, also of two that start in the same millisecond', async () => {
    const [one, two] = [await started(new Map(), 1_000, 1), await started(new Map(), 1_000, 2)];
    const made = [one, two].flatMap((ids) => Array.from({ length: 1_000 }, () => ids.next()));
    expect(new Set(made).size).toBe(2_000);
  });

  it('of an earlier start are lost, of a later one nobody knows; neither is ever taken for a lease that lives', async () => {
    const standby = await started(new Map(), 2_000, 1);
    const [before, after] = [await started(new Map(), 1_000, 2), await started(new Map(), 3_000, 3)];
    expect(standby.lostAt(before.next())).not.toBeNull();
    expect(standby.lostAt(after.next())).toBeNull();
    expect(standby.lostAt(standby.next())).toBeNull();
  });

  it('grow from start to start of one gateway, although its wall clock was set back', async () => {
    const facts = new Map<string, string>();
    const first = await started(facts, 5_000, 1);
    const second = await started(facts, 1_000, 2);
    expect(second.lostAt(first.next())).not.toBeNull();
    expect(first.lostAt(second.next())).toBeNull();
  });
});
