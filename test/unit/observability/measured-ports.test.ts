import { beforeEach, describe, expect, it } from 'vitest';
import type { AuditAction, AuditDraft } from '../../../src/domain/audit-record.ts';
import { refuse } from '../../../src/domain/errors.ts';
import type { Journal, JournalOp, RefusalLog } from '../../../src/domain/journal.ts';
import type { LeaseEndState } from '../../../src/domain/lease.ts';
import type { LockService } from '../../../src/domain/lock-api.ts';
import { countingRefusals, measuredJournal, measuredLocks } from '../../../src/observability/measured-ports.ts';
import { Metrics } from '../../../src/observability/metrics.ts';
import { FakeClock } from '../../support/fake-clock.ts';

let metrics: Metrics;
let clock: FakeClock;

beforeEach(() => {
  metrics = new Metrics();
  clock = new FakeClock();
});

const draft = (action: AuditAction, leaseRef: string | null, code: string | null = null) => ({ action, leaseRef, code }) as AuditDraft;

class FakeJournal {
  #healthy = true;
  rejects = false;

  get healthy(): boolean {
    return this.#healthy;
  }

  head() {
    return { seq: this.#healthy ? 7 : 0, hash: '' };
  }

  async commit() {
    clock.advance(3);
    if (this.rejects) throw refuse('journal_unavailable', 'full');
    return { seqs: [1] };
  }
}

describe('a measured journal', () => {
  let fake: FakeJournal;
  let journal: Journal;
  const commit = (action: AuditAction, leaseRef: string) => journal.commit([{ op: 'audit', record: draft(action, leaseRef) }]);
  const end = (state: LeaseEndState, leaseRef: string) => {
    const ended: JournalOp = { op: 'lease_end', leaseRef, state, reason: state, endedAt: '' };
    return journal.commit([ended, { op: 'audit', record: draft('lease_release', leaseRef) }]);
  };

  beforeEach(() => {
    fake = new FakeJournal();
    journal = measuredJournal(fake as unknown as Journal, metrics, clock);
  });

  it('is the journal in everything else', () => {
    expect(journal.healthy).toBe(true);
    expect(journal.head()).toEqual({ seq: 7, hash: '' });
  });

  it('tells how long a decision takes to be durable', async () => {
    expect(await commit('put', 'lr_1')).toEqual({ seqs: [1] });
    expect(await metrics.text()).toContain('fencegate_journal_commit_seconds_sum 0.003');
  });

  it('tells how long a lease was held and how it ended, once', async () => {
    await commit('lease_grant', 'lr_1');
    clock.advance(2_000);
    await commit('lease_grant', 'lr_1');
    // A hold that is taken off has a record, and ends nothing.
    await commit('lease_release', 'lr_1');
    clock.advance(5_991);
    await end('expired', 'lr_1');
    await end('expired', 'lr_1');
    const text = await metrics.text();
    expect(text).toContain('fencegate_lock_hold_seconds_sum{reason="expired"} 8');
    expect(text).toContain('fencegate_lock_hold_seconds_count{reason="expired"} 1');
  });

  it('says nothing about a lease whose grant it did not see, or that did not become durable', async () => {
    await end('released', 'lr_of_an_earlier_start');
    fake.rejects = true;
    await expect(commit('lease_grant', 'lr_2')).rejects.toThrow('full');
    fake.rejects = false;
    await end('released', 'lr_2');
    await commit('lease_grant', 'lr_3');
    // Nobody knew of it.
    await end('cancelled', 'lr_3');
    expect(await metrics.text()).not.toContain('fencegate_lock_hold_seconds_count{');
  });
});

describe('counted refusals', () => {
  it('are recorded as before, and counted by code', async () => {
    const recorded: string[] = [];
    const refusals: RefusalLog = {
      refused: async ({ code }) => void recorded.push(`${code}`),
      refusedEarly: ({ code }) => void recorded.push(`early ${code}`),
      flush: async () => void recorded.push('flush'),
    };
    const counting = countingRefusals(refusals, metrics);
    await counting.refused(draft('put', null, 'stale_token'));
    counting.refusedEarly(draft('put', null, 'unauthenticated'));
    await counting.flush();
    expect(recorded).toEqual(['stale_token', 'early unauthenticated', 'flush']);
    const text = await metrics.text();
    expect(text).toContain('fencegate_refusals_total{code="stale_token"} 1');
    expect(text).toContain('fencegate_refusals_total{code="unauthenticated"} 1');
  });
});

describe('measured locks', () => {
  const acquire = (outcome: () => unknown) => {
    const answer = async () => {
      clock.advance(40);
      return outcome();
    };
    const fake = { acquire: answer } as unknown as LockService;
    const [caller, request] = [{}, { mode: 'shared' }] as unknown as [Parameters<LockService['acquire']>[0], Parameters<LockService['acquire']>[1]];
    return measuredLocks(fake, metrics, clock).acquire(caller, request, new AbortController().signal);
  };

  it('tell how long an acquisition took and what came of it', async () => {
    await acquire(() => ({ lease: { state: 'held' }, created: true }));
    const refused = () => {
      throw refuse('lock_not_acquired', 'taken');
    };
    await expect(acquire(refused)).rejects.toMatchObject({ code: 'lock_not_acquired' });
    const text = await metrics.text();
    expect(text).toContain('fencegate_lock_acquisition_seconds_sum{mode="shared",result="held"} 0.04');
    expect(text).toContain('fencegate_lock_acquisition_seconds_count{mode="shared",result="lock_not_acquired"} 1');
  });
});
