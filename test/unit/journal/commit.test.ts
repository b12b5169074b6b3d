import { statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { JournalOp } from '../../../src/domain/journal.ts';
import type { LeaseEndState } from '../../../src/domain/lease.ts';
import { auditOp, intentOp, outcomeOp, raise, resource, token } from '../../support/journal-samples.ts';
import { openTestJournal } from '../../support/open-journal.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const ALL = { order: 'asc', limit: 1_000, cursor: null } as const;

describe('a unit', () => {
  it('is durable and readable when its commit resolves', async () => {
    const { journal } = await openTestJournal(temporaryDirectory());
    const receipt = await journal.commit([raise('demo/a.txt', 5), auditOp(), auditOp({ path: 'b.txt' })]);
    expect(receipt.seqs).toEqual([1, 2]);
    expect(await journal.mark('demo/a.txt')).toEqual({ token: 5n, leaseRef: 'lease-5', principal: 'anna', everNamed: true });
    const page = await journal.audit({}, ALL);
    expect(page.records.map(({ path }) => path)).toEqual(['a.txt', 'b.txt']);
    expect(page.nextCursor).toBeNull();
    expect(journal.head().seq).toBe(2);
  });

  it('keeps its place: units become durable in the order of their commit calls', async () => {
    const { journal, stats } = await openTestJournal(temporaryDirectory());
    const receipts = await Promise.all(Array.from({ length: 500 }, (_, index) => journal.commit([auditOp({ requestId: `r${index}` })])));
    expect(receipts.flatMap(({ seqs }) => seqs)).toEqual(Array.from({ length: 500 }, (_, index) => index + 1));
    expect(stats().groups).toBeLessThan(20);
    const page = await journal.audit({}, ALL);
    expect(page.records.map(({ requestId }) => requestId)).toEqual(Array.from({ length: 500 }, (_, index) => `r${index}`));
  });

  it('with a bug fails alone, and leaves nothing behind', async () => {
    const { journal } = await openTestJournal(temporaryDirectory());
    await journal.commit([raise('demo/x', 9), intentOp('op-1')]);
    const results = await Promise.allSettled([
      journal.commit([auditOp({ requestId: 'before' })]),
      journal.commit([auditOp({ requestId: 'poison' }), intentOp('op-1')]),
      journal.commit([raise('demo/x', 9, { leaseRef: 'another lease' })]),
      journal.commit([auditOp({ requestId: 'after' })]),
    ]);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled']);
    expect(results[1]).toMatchObject({ reason: { code: 'internal' } });
    expect(journal.healthy).toBe(true);
    const page = await journal.audit({}, ALL);
    expect(page.records.map(({ requestId, seq }) => [seq, requestId])).toEqual([
      [1, 'req-1'],
      [2, 'before'],
      [3, 'after'],
    ]);
    expect(await journal.verify(null, AbortSignal.timeout(5_000))).toMatchObject({ valid: true, records: 3 });
  });

  it('is refused as overloaded when the queue is full, and the queued ones are still carried out', async () => {
    const { journal } = await openTestJournal(temporaryDirectory());
    const waiting = Array.from({ length: 20_001 }, () => journal.commit([raise('demo/a', 1)]));
    const results = await Promise.allSettled(waiting);
    const refused = results.filter((result) => result.status === 'rejected');
    expect(refused).toHaveLength(1);
    expect(refused[0]).toMatchObject({ reason: { code: 'overloaded' } });
  });
});

describe('what is stored', () => {
  it('is found again after a restart', async () => {
    const directory = temporaryDirectory();
    const first = await openTestJournal(directory);
    const lease = {
      leaseId: 'secret',
      leaseRef: 'ref',
      sessionId: 's',
      resources: [resource('demo/a.txt')],
      mode: 'exclusive',
      token: token(2n ** 62n),
      principal: 'anna',
      clientId: null,
      ttlMs: 30_000,
      priority: 5,
      maxHoldMs: null,
      lockDelayMs: 0,
      holds: ['h'],
      metadata: { build: 7 },
      grantedAt: '2026-01-01T00:00:00.000Z',
      acquiredZnodePath: null,
    } as const;
    const { maxHoldMs: _hold, lockDelayMs: _delay, holds: _holds, ...known } = lease;
    const wait = { ...known, leaseId: 'a wait', token: null, grantedAt: null, acquiredZnodePath: null, waiting: true } as const;
    const session = {
      sessionId: 's',
      sessionRef: 'sref',
      principal: 'anna',
      clientId: null,
      ttlMs: 1_000,
      createdAt: '2026-01-01T00:00:00.000Z',
      implied: true,
    };
    await first.journal.commit([
      { op: 'lease_put', lease },
      { op: 'lease_put', lease: { ...lease, leaseRef: 'ended' } },
      ...['waits', 'granted', 'cancelled', 'lost'].map((leaseRef): JournalOp => ({ op: 'wait_put', wait: { ...wait, leaseRef } })),
      { op: 'session_put', session },
      { op: 'session_put', session: { ...session, sessionRef: 'gone' } },
      { op: 'lock_delay', resourceKey: 'demo/d', delayMs: 5_000 },
      { op: 'lock_delay', resourceKey: 'demo/e', delayMs: 5_000 },
      { op: 'incarnation_put', volume: 'demo', incarnation: 'i1' },
      { op: 'incarnation_put', volume: 'demo', incarnation: 'i2' },
      { op: 'incarnation_put', volume: 'other', incarnation: 'i3' },
      { op: 'meta_put', name: 'base', value: '12' },
      { op: 'meta_put', name: 'gone', value: '1' },
      raise('demo/a.txt', 2n ** 63n - 1n),
    ]);
    const end = (leaseRef: string, state: LeaseEndState): JournalOp => ({
      op: 'lease_end',
      leaseRef,
      state,
      reason: state,
      endedAt: '2026-01-01T00:00:01.000Z',
    });
    await first.journal.commit([
      end('ended', 'expired'),
      { op: 'lease_put', lease: { ...lease, leaseRef: 'granted' } },
      end('cancelled', 'expired'),
      end('lost', 'lost'),
      { op: 'session_end', sessionRef: 'gone' },
      { op: 'lock_delay', resourceKey: 'demo/e', delayMs: null },
      { op: 'incarnation_gone', volume: 'demo', incarnation: 'i1' },
      { op: 'meta_put', name: 'gone', value: null },
    ]);
    await first.close();

    const second = await openTestJournal(directory);
    const { start, journal } = second;
    expect(second.takeOver).toBeNull();
    expect(start.leases().map(({ leaseRef }) => leaseRef)).toEqual(['granted', 'ref']);
    expect(start.leases()).toContainEqual(lease);
    expect(start.waits()).toEqual([{ ...wait, leaseRef: 'waits' }]);
    // A wait that ran out is its client's doing.
    const lost = { sessionId: 's', endedAt: '2026-01-01T00:00:01.000Z' };
    expect([...start.lostLeases()]).toEqual([
      { ...lost, leaseId: 'secret' },
      { ...lost, leaseId: 'a wait' },
    ]);
    expect(await journal.endedLease('lost')).toMatchObject({ state: 'lost', lease: { ...wait, leaseRef: 'lost' } });
    expect(start.sessions()).toEqual([session]);
    expect(start.lockDelays()).toEqual([{ resourceKey: 'demo/d', delayMs: 5_000 }]);
    expect(start.incarnations('demo')).toEqual(['i2']);
    expect(start.meta('base')).toBe('12');
    expect(start.meta('gone')).toBeNull();
    expect(start.highestMark()).toBe(2n ** 63n - 1n);
    expect(start.journalUuid).toBe(first.start.journalUuid);
    expect(start.gatewayUuid).toBe(first.start.gatewayUuid);
    expect(start.markedAsBackup).toBe(false);
    expect(await journal.endedLease('ended')).toMatchObject({
      leaseRef: 'ended',
      state: 'expired',
      reason: 'expired',
      endedAt: '2026-01-01T00:00:01.000Z',
    });
    expect(await journal.endedLease('ref')).toBeNull();
    expect(await journal.mark('demo/a.txt')).toMatchObject({ token: 2n ** 63n - 1n });
    expect(await journal.mark('demo/none')).toBeNull();
  });

  it('lies in files that only their owner may read', async () => {
    const directory = join(temporaryDirectory(), 'data');
    const { journal } = await openTestJournal(directory);
    await journal.commit([auditOp()]);
    const modes = ['', 'journal.sqlite', 'journal.sqlite-wal', 'journal.sqlite-shm', 'gateway-uuid'].map((name) =>
      (statSync(join(directory, name)).mode & 0o777).toString(8),
    );
    expect(modes).toEqual(['700', '600', '600', '600', '600']);
  });
});

describe('the last word on an operation', () => {
  it('is what is shown, and the record it supersedes stays in the chain', async () => {
    const { journal } = await openTestJournal(temporaryDirectory());
    await journal.commit([intentOp('op-1'), intentOp('op-1', 'demo/b.txt')]);
    await journal.commit([outcomeOp('op-1', 'aborted', { code: 'insufficient_storage', status: 507 })]);
    journal.settled('op-1');
    const page = await journal.audit({}, ALL);
    expect(page.records.map(({ seq, path, outcome }) => [seq, path, outcome])).toEqual([
      [2, 'b.txt', 'committed'],
      [3, 'a.txt', 'aborted'],
    ]);
    expect(await journal.operation({ by: 'operation_id', operationId: 'op-1' })).toMatchObject({
      outcome: 'aborted',
      code: 'insufficient_storage',
      resource: 'demo/a.txt',
    });
    expect(await journal.verify(null, AbortSignal.timeout(5_000))).toMatchObject({ valid: true, records: 3 });
  });

  it('is pending between the intent and its settlement', async () => {
    const { journal } = await openTestJournal(temporaryDirectory());
    await journal.commit([intentOp('op-1'), auditOp({ path: 'c.txt' })]);
    const outcomes = async (): Promise<unknown[]> => (await journal.audit({}, ALL)).records.map(({ outcome }) => outcome);
    const count = async (outcome: 'pending' | 'committed'): Promise<number> => (await journal.audit({ outcome }, ALL)).records.length;
    expect(await outcomes()).toEqual(['pending', 'committed']);
    expect([await count('pending'), await count('committed')]).toEqual([1, 1]);
    expect(await journal.operation({ by: 'request_id', requestId: 'req-1' })).toMatchObject({ operationId: 'op-1', outcome: 'pending' });
    journal.settled('op-1');
    expect(await outcomes()).toEqual(['committed', 'committed']);
    expect([await count('pending'), await count('committed')]).toEqual([0, 2]);
    expect(await journal.operation({ by: 'operation_id', operationId: 'op-1' })).toEqual({
      operationId: 'op-1',
      action: 'put',
      resource: 'demo/a.txt',
      outcome: 'committed',
      code: null,
      at: '2026-01-01T00:00:00.000Z',
      etag: '"1-2-3"',
      fencingToken: null,
    });
    expect(await journal.operation({ by: 'operation_id', operationId: 'none' })).toBeNull();
  });
});
