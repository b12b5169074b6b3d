import { describe, expect, it } from 'vitest';
import { type AuditDraft, fixDetail } from '../../../src/domain/audit-record.ts';
import { refuse } from '../../../src/domain/errors.ts';
import type { JournalOp } from '../../../src/domain/journal.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { CountingRefusalLog } from '../../../src/journal/refusal-log.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { rejection, token } from '../../support/journal-samples.ts';

/** A journal that keeps what is committed, fails on demand, and can be slow. */
class FakeJournal {
  readonly records: AuditDraft[] = [];
  failing = false;
  gate: Promise<void> = Promise.resolve();

  async commit(ops: readonly JournalOp[]): Promise<{ seqs: number[] }> {
    await this.gate;
    if (this.failing) throw refuse('journal_unavailable', 'full');
    for (const op of ops) if (op.op === 'audit') this.records.push(op.record);
    return { seqs: [] };
  }

  counts(): number[] {
    return this.records.map(({ count }) => count);
  }
}

function setUp(): { journal: FakeJournal; clock: FakeClock; log: CountingRefusalLog } {
  const journal = new FakeJournal();
  const clock = new FakeClock();
  return { journal, clock, log: new CountingRefusalLog(journal, clock) };
}

describe('a refusal', () => {
  it('is durable before its answer, and equal ones within a second become one record with a count', async () => {
    const { journal, clock, log } = setUp();
    await log.refused(rejection());
    expect(journal.counts()).toEqual([1]);
    for (let n = 0; n < 50; n++) await log.refused(rejection({ requestId: `r${n}` }));
    expect(journal.counts()).toEqual([1]);
    await clock.advanceAsync(LIMITS.refusalWindowMs);
    expect(journal.counts()).toEqual([1, 50]);
    expect(journal.records[1]?.requestId).toBe('r49');
    await clock.advanceAsync(LIMITS.refusalWindowMs * 2);
    expect(journal.counts()).toEqual([1, 50]);
    await log.refused(rejection());
    expect(journal.counts()).toEqual([1, 50, 1]);
  });

  it('is another one with another principal, client, address, token, code, resource or detail', async () => {
    const { journal, log } = setUp();
    const changes: Partial<AuditDraft>[] = [
      {},
      { principal: 'bert' },
      { clientId: 'c' },
      { remoteAddress: '::1' },
      { fencingToken: token(9) },
      { fencingToken: null },
      { code: 'lease_ended' },
      { path: 'b' },
      { volume: 'v' },
      { detail: fixDetail('one', null) },
      { detail: fixDetail('another', null) },
    ];
    for (const change of changes) await log.refused(rejection(change));
    expect(journal.counts()).toEqual(changes.map(() => 1));
  });

  it('is not answered while the first of its kind is not durable, and fails with it', async () => {
    const { journal, log } = setUp();
    let open: () => void = () => undefined;
    journal.gate = new Promise((resolve) => {
      open = resolve;
    });
    journal.failing = true;
    const answers = [log.refused(rejection()), log.refused(rejection())];
    const settled: string[] = [];
    for (const answer of answers)
      answer.then(
        () => settled.push('answered'),
        () => settled.push('failed'),
      );
    await settle();
    expect(settled).toEqual([]);
    open();
    await Promise.allSettled(answers);
    expect(settled).toEqual(['failed', 'failed']);
    journal.failing = false;
    await log.refused(rejection());
    expect(journal.counts()).toEqual([1]);
  });

  it('that is only counted becomes durable on flush, also when its window is just ending', async () => {
    const { journal, clock, log } = setUp();
    await log.refused(rejection());
    await log.refused(rejection());
    await log.flush();
    expect(journal.counts()).toEqual([1, 1]);
    await log.flush();
    expect(journal.counts()).toEqual([1, 1]);
    await log.refused(rejection());
    clock.advance(LIMITS.refusalWindowMs);
    await log.flush();
    expect(journal.counts()).toEqual([1, 1, 1]);
  });

  it('stays counted while the journal cannot be written, and flush does not fail', async () => {
    const { journal, clock, log } = setUp();
    await log.refused(rejection());
    await log.refused(rejection());
    journal.failing = true;
    await log.flush();
    await clock.advanceAsync(LIMITS.refusalWindowMs * 3);
    expect(journal.counts()).toEqual([1]);
    await log.refused(rejection());
    journal.failing = false;
    await clock.advanceAsync(LIMITS.refusalWindowMs);
    expect(journal.counts()).toEqual([1, 2]);
  });

  it('of more kinds than are counted is written by itself', async () => {
    const { journal, log } = setUp();
    await Promise.all(Array.from({ length: LIMITS.refusalKeysMax + 5 }, (_, n) => log.refused(rejection({ path: `p${n}` }))));
    await log.refused(rejection({ path: `p${LIMITS.refusalKeysMax + 3}` }));
    expect(journal.counts()).toHaveLength(LIMITS.refusalKeysMax + 6);
  });
});

describe('an early refusal', () => {
  const early = (remoteAddress: string, code: 'unauthenticated' | 'rate_limited' = 'unauthenticated'): AuditDraft =>
    rejection({ remoteAddress, code, principal: null, volume: null, path: null });

  it('is one record per address, code and minute', async () => {
    const { journal, clock, log } = setUp();
    for (let n = 0; n < 30; n++) log.refusedEarly(early('10.0.0.1'));
    log.refusedEarly(early('10.0.0.2'));
    log.refusedEarly(early('10.0.0.1', 'rate_limited'));
    await clock.advanceAsync(LIMITS.refusalEarlyWindowMs - 1);
    expect(journal.counts()).toEqual([]);
    await clock.advanceAsync(1);
    expect(journal.records.map(({ remoteAddress, code, count }) => [remoteAddress, code, count])).toEqual([
      ['10.0.0.1', 'unauthenticated', 30],
      ['10.0.0.2', 'unauthenticated', 1],
      ['10.0.0.1', 'rate_limited', 1],
    ]);
  });

  it('becomes durable on flush', async () => {
    const { journal, log } = setUp();
    log.refusedEarly(early('10.0.0.1'));
    await log.flush();
    expect(journal.counts()).toEqual([1]);
  });

  it('of more addresses than are counted is counted without its address', async () => {
    const { journal, log } = setUp();
    for (let n = 0; n < LIMITS.refusalKeysMax + 20; n++) log.refusedEarly(early(`addr-${n}`));
    await log.flush();
    expect(journal.records.filter(({ remoteAddress }) => remoteAddress === null)).toMatchObject([{ count: 20 }]);
  });
});
