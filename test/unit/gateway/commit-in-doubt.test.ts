import { describe, expect, it } from 'vitest';
import { refuse } from '../../../src/domain/errors.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { noSteps } from '../../../src/domain/steps.ts';
import { commitSection, type Section } from '../../../src/gateway/commit.ts';
import type { WriteDeps } from '../../../src/gateway/deps.ts';
import type { Operation } from '../../../src/gateway/operation.ts';
import { ResourceMutex } from '../../../src/gateway/resource-mutex.ts';
import { createSettleLoop } from '../../../src/gateway/settle-loop.ts';
import type { WriteRight } from '../../../src/gateway/write-lease.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { intent, resource, token } from '../../support/journal-samples.ts';

/** One commit section over a journal that answers as told. What it did to the volume is written down. */
function lab(journalSays: 'outcome_unknown' | 'journal_unavailable', goneForGood: boolean) {
  const clock = new FakeClock();
  const did: string[] = [];
  const settled: string[] = [];
  let pinned = 0;
  const deps = {
    clock,
    mutex: new ResourceMutex(clock),
    settleLoop: createSettleLoop(clock, () => undefined),
    mtimes: { raise: () => [] },
    leases: {
      pin: () => {
        pinned += 1;
        return { leave: () => (pinned -= 1) };
      },
    },
    journal: { commit: () => Promise.reject(refuse(journalSays, 'no')), settled: (id: string) => settled.push(id) },
  } as unknown as WriteDeps;
  const operation = {
    id: 'op-1',
    intended: false,
    envelope: { signal: new AbortController().signal, idempotency: null },
    reached: noSteps.reached,
  } as unknown as Operation;
  const target = resource('demo/a.txt');
  const right = { grants: [{ resource: target, token: token(7) }], ops: [] } as unknown as WriteRight;
  const note = (what: string) => async () => void did.push(what);
  const section = {
    volume: { name: 'demo', tidy: () => did.push('tidy'), settle: note('settle') },
    intents: [intent('op-1')],
    companions: [],
    sync: async () => undefined,
    apply: note('apply'),
    discard: note('discard'),
    discardForGood: async () => {
      did.push('discard for good');
      return goneForGood;
    },
    answer: { status: 204, headers: {}, body: null },
  } as unknown as Section;
  const run = () => commitSection(deps, operation, right, async () => section).catch((thrown: unknown) => thrown);
  return { run, did, settled, operation, clock, deps, pinned: () => pinned, enter: () => deps.mutex.enter([target.key], operation.envelope.signal) };
}

describe('a section whose intent is in doubt', () => {
  it('is outcome_unknown with its operation where the next start could finish it; it stays entered, and this process never does', async () => {
    const { run, did, settled, operation, clock, deps, pinned, enter } = lab('outcome_unknown', false);
    expect(await run()).toMatchObject({ code: 'outcome_unknown', members: { operation_id: 'op-1' } });
    expect([operation.intended, pinned(), settled]).toEqual([true, 1, []]);
    const next = enter().catch((thrown: unknown) => thrown);
    await clock.advanceAsync(LIMITS.commitDeadlineMs + 10 * LIMITS.settleRetryMs);
    expect(await next).toMatchObject({ code: 'volume_unavailable' });
    // Nothing was applied or looked at, and what recovery needs is where it was.
    expect(did).toEqual(['discard for good']);
    expect(deps.settleLoop.open()).toMatchObject([{ operationId: 'op-1', untilNextStart: true }]);
  });

  it('is "nothing was changed" where the staged bytes are gone for good; it is left, and its records wait for recovery', async () => {
    const { run, did, settled, operation, deps, pinned, enter } = lab('outcome_unknown', true);
    expect(await run()).toMatchObject({ code: 'journal_unavailable', members: {} });
    expect([operation.intended, pinned(), settled, did]).toEqual([false, 0, ['op-1'], ['discard for good']]);
    expect(deps.settleLoop.open()).toEqual([]);
    (await enter())();
  });

  it('is another thing than one whose intent was refused for certain: that leaves nothing at all', async () => {
    const { run, did, pinned, enter } = lab('journal_unavailable', false);
    expect(await run()).toMatchObject({ code: 'journal_unavailable' });
    expect([pinned(), did]).toEqual([0, ['discard', 'tidy']]);
    (await enter())();
  });
});
