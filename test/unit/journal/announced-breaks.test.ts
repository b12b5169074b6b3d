import { describe, expect, it } from 'vitest';
import type { AuditDraft } from '../../../src/domain/audit-record.ts';
import type { AnnouncedBreak, Journal, JournalOp, StoredLease } from '../../../src/domain/journal.ts';
import { auditDraft, outcomeOp, resource, token } from '../../support/journal-samples.ts';
import { openTestJournal } from '../../support/open-journal.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const ALL = { order: 'asc', limit: 1_000, cursor: null } as const;
const A = resource('demo/a.txt');

const about: Partial<AuditDraft> = { action: 'lease_break', leaseRef: 'lease-1', operationId: 'op_1', fencingToken: token(7) };

const announced: AnnouncedBreak = {
  resource: A,
  reason: 'stuck',
  graceMs: 20_000,
  untilWallMs: Date.UTC(2026, 0, 1),
  by: { principal: 'root', authenticated: true, clientId: null, remoteAddress: '127.0.0.1', requestId: 'req-1' },
  leases: [{ leaseRef: 'lease-1', operationId: 'op_1' }],
};
const put: JournalOp = { op: 'break_put', announced, records: [auditDraft(about)] };

const lease: StoredLease = {
  leaseId: 'l1',
  leaseRef: 'lease-1',
  sessionId: 's1',
  resources: [A],
  mode: 'exclusive',
  token: token(7),
  principal: 'anna',
  clientId: null,
  ttlMs: 30_000,
  priority: 5,
  maxHoldMs: null,
  lockDelayMs: 0,
  holds: ['h'],
  metadata: null,
  grantedAt: '2026-01-01T00:00:00.000Z',
  acquiredZnodePath: null,
};
const leaseEnd: JournalOp = { op: 'lease_end', leaseRef: 'lease-1', state: 'released', reason: 'released', endedAt: lease.grantedAt };

async function shown(journal: Journal): Promise<string[]> {
  const { records } = await journal.audit({ action: 'lease_break' }, ALL);
  return records.map(({ outcome }) => outcome);
}

async function matches(journal: Journal): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const outcome of ['pending', 'committed', 'aborted'] as const)
    found[outcome] = (await journal.audit({ action: 'lease_break', outcome }, ALL)).records.length;
  return found;
}

describe('an announced break', () => {
  it('takes its last word once, whichever of several units brings it', async () => {
    const { journal } = await openTestJournal(temporaryDirectory());
    await journal.commit([{ op: 'lease_put', lease }, put]);
    const record = auditDraft({ ...about, outcome: 'aborted' });
    const word: JournalOp = { op: 'outcome', operationId: 'op_1', outcome: 'aborted', record, answer: null, once: true };
    expect(await journal.commit([leaseEnd, word])).toEqual({ seqs: [2] });
    expect(await journal.commit([leaseEnd, word])).toEqual({ seqs: [] });
    expect((await journal.verify(null, new AbortController().signal)).records).toBe(2);
  });

  it('is shown as pending, to every query, until its last word; then only that is shown, and the chain keeps both', async () => {
    const { journal } = await openTestJournal(temporaryDirectory());
    expect(await journal.commit([{ op: 'lease_put', lease }, put])).toEqual({ seqs: [1] });
    expect([await shown(journal), await matches(journal)]).toEqual([['pending'], { pending: 1, committed: 0, aborted: 0 }]);
    const operation = { operationId: 'op_1', action: 'lease_break', resource: 'demo/a.txt', fencingToken: 7n };
    expect(await journal.operation({ by: 'operation_id', operationId: 'op_1' })).toMatchObject({ ...operation, outcome: 'pending' });
    expect(await journal.operation({ by: 'request_id', requestId: 'req-1' })).toMatchObject(operation);
    await journal.commit([leaseEnd, outcomeOp('op_1', 'aborted', about)]);
    journal.settled('op_1');
    expect([await shown(journal), await matches(journal)]).toEqual([['aborted'], { pending: 0, committed: 0, aborted: 1 }]);
    expect(await journal.operation({ by: 'operation_id', operationId: 'op_1' })).toMatchObject({ ...operation, outcome: 'aborted' });
    expect(await journal.verify(null, AbortSignal.timeout(5_000))).toMatchObject({ valid: true, records: 2 });
  });

  it('is found again by the next start, still pending while its lease lives', async () => {
    const directory = temporaryDirectory();
    const first = await openTestJournal(directory);
    await first.journal.commit([{ op: 'lease_put', lease }, put]);
    await first.close();
    const second = await openTestJournal(directory);
    expect(second.start.announcedBreaks()).toEqual([announced]);
    expect(await shown(second.journal)).toEqual(['pending']);
    // Not a write: recovery is told nothing of it.
    expect(second.start.knows('op_1')).not.toBe('settled');
    expect(second.start.unsettledIntents('demo')).toEqual([]);
    await second.journal.commit([leaseEnd, outcomeOp('op_1', 'committed', about)]);
    await second.close();
    const third = await openTestJournal(directory);
    expect([third.start.announcedBreaks(), await shown(third.journal)]).toEqual([[announced], ['committed']]);
    await third.journal.commit([{ op: 'break_gone', resourceKey: A.key }]);
    expect(third.start.announcedBreaks()).toEqual([]);
  });

  it('is one a resource: the latest', async () => {
    const { journal, start } = await openTestJournal(temporaryDirectory());
    const other = { ...announced, resource: resource('demo/b.txt') };
    await journal.commit([
      put,
      { op: 'break_put', announced: other, records: [] },
      { op: 'break_put', announced: { ...announced, reason: 'again' }, records: [] },
    ]);
    await journal.commit([{ op: 'meta_put', name: 'breakfast', value: 'x' }]);
    expect(start.announcedBreaks().map(({ resource: { name }, reason }) => [name, reason])).toEqual([
      ['demo/a.txt', 'again'],
      ['demo/b.txt', 'stuck'],
    ]);
  });
});
