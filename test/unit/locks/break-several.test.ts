import { describe, expect, it } from 'vitest';
import { LIMITS } from '../../../src/domain/limits.ts';
import { COORDINATORS } from '../../support/coordinators.ts';
import { settle } from '../../support/fake-clock.ts';
import { anybody, callerOf, never, resource, tokenOf } from '../../support/lock-lab.ts';

const [A, B, C] = [resource('a'), resource('b'), resource('c')];
const root = callerOf('root', null, ['admin']);
const announced = { resource: A, reason: 'stuck', graceMs: 5_000 };
const LONG = { ttlMs: 3_600_000 };

describe.each(COORDINATORS)('a break with a grace of who holds the first of several names ($coordinator)', ({ LockLab }) => {
  const holdingTheFirst = async (mode: 'exclusive' | 'shared' = 'exclusive') => {
    const lab = new LockLab();
    const other = await lab.acquire(B, LONG);
    const waiting = await lab.during(lab.acquire([A, B], { ...LONG, mode, waitMs: 1 }), 1_000, 1);
    expect(waiting.state).toBe('waiting');
    return { lab, other, waiting };
  };

  it('names it in its answer, without a token', async () => {
    const { lab, waiting } = await holdingTheFirst();
    const report = await lab.locks.breakLock(root, announced);
    expect(report).toMatchObject({ state: 'breaking', highWaterMark: null });
    expect(report.leases).toEqual([
      {
        leaseRef: waiting.leaseRef,
        clientId: null,
        mode: 'exclusive',
        fencingToken: null,
        operationId: expect.any(String),
        committed: { writes: [], truncated: false },
      },
    ]);
  });

  it('lets it in nowhere in the grace, also where it waits; then it is over, and who stands behind it comes in', async () => {
    const { lab, other, waiting } = await holdingTheFirst();
    await lab.locks.breakLock(root, announced);
    await lab.release(other.leaseId);
    const behind = lab.acquire(B, { ...LONG, waitMs: 60_000 });
    await lab.clock.advanceAsync(4_900);
    expect(await lab.lease(waiting.leaseId)).toMatchObject({ state: 'waiting', fencingToken: null, queuePosition: 1 });
    await lab.clock.advanceAsync(100);
    expect(await lab.lease(waiting.leaseId)).toMatchObject({ state: 'broken', fencingToken: null });
    expect((await behind).state).toBe('held');
    expect(lab.journal.records.filter(({ leaseRef }) => leaseRef === waiting.leaseRef).map(({ action }) => action)).not.toContain('lease_grant');
    expect((await lab.acquire(A)).state).toBe('held');
  });

  it('lets readers past a reader that is being broken elsewhere', async () => {
    const { lab, other, waiting } = await holdingTheFirst('shared');
    const reader = lab.acquire(B, { ...LONG, mode: 'shared', waitMs: 60_000 });
    await settle();
    await lab.locks.breakLock(root, announced);
    await lab.release(other.leaseId);
    await lab.clock.advanceAsync(10);
    expect((await reader).state).toBe('held');
    expect((await lab.lease(waiting.leaseId)).state).toBe('waiting');
  });

  it('lets it in after all when the announcement did not become durable', async () => {
    const { lab, other, waiting } = await holdingTheFirst();
    lab.journal.hold();
    const breaking = lab.locks.breakLock(root, announced);
    const refused = expect(breaking).rejects.toMatchObject({ code: 'journal_unavailable' });
    await lab.clock.advanceAsync(10);
    const released = lab.release(other.leaseId);
    await lab.clock.advanceAsync(10);
    expect((await lab.lease(waiting.leaseId)).state).toBe('waiting');
    lab.journal.failing = 1;
    lab.journal.release();
    await refused;
    await released;
    await lab.clock.advanceAsync(LIMITS.grantRetryMs);
    expect((await lab.lease(waiting.leaseId)).state).toBe('held');
  });

  it('does not make a lease over several names exclusive in the grace of one of them', async () => {
    const lab = new LockLab();
    const mine = await lab.acquire([A, B], { ...LONG, mode: 'shared' });
    const other = await lab.acquire(B, { ...LONG, mode: 'shared' });
    await lab.locks.service.convert(anybody, mine.leaseId, 'exclusive', never);
    await lab.clock.advanceAsync(10);
    await lab.locks.breakLock(root, announced);
    await lab.release(other.leaseId);
    await lab.clock.advanceAsync(4_000);
    expect(await lab.lease(mine.leaseId)).toMatchObject({ state: 'held', mode: 'shared', fencingToken: mine.fencingToken });
    await lab.clock.advanceAsync(1_000);
    expect((await lab.lease(mine.leaseId)).state).toBe('broken');
  });

  it('does not grant in the grace what the journal refused before', async () => {
    const lab = new LockLab();
    const other = await lab.acquire(C, LONG);
    const waiting = await lab.during(lab.acquire(C, { ...LONG, waitMs: 1 }), 1_000, 1);
    lab.journal.failing = 2;
    await lab.release(other.leaseId).catch(() => undefined);
    await lab.clock.advanceAsync(10);
    lab.journal.failing = false;
    expect((await lab.lease(waiting.leaseId)).state).toBe('waiting');
    const report = await lab.locks.breakLock(root, { ...announced, resource: C });
    expect(report.leases).toMatchObject([{ leaseRef: waiting.leaseRef }]);
    await lab.clock.advanceAsync(4_900);
    expect((await lab.lease(waiting.leaseId)).state).toBe('waiting');
    await lab.clock.advanceAsync(100);
    expect(await lab.lease(waiting.leaseId)).toMatchObject({ state: 'broken', fencingToken: null });
  });
});

describe.each(COORDINATORS)('a break at once of who has been granted nothing yet ($coordinator)', ({ LockLab }) => {
  const atOnce = { resource: A, reason: 'stuck', graceMs: 0 };
  const none = JSON.stringify({ reason: 'stuck', committed: [], committed_truncated: false });

  it('has the reason, the list and the mark in its records, and leaves the names that it did not hold as they were', async () => {
    const lab = new LockLab();
    const before = await lab.acquire(A, LONG);
    const other = await lab.acquire(B, LONG);
    const waiting = await lab.during(lab.acquire([A, B], { ...LONG, waitMs: 1 }), 1_000, 1);
    await lab.release(before.leaseId);
    await lab.clock.advanceAsync(10);
    expect(await lab.locks.breakLock(root, atOnce)).toMatchObject({ state: 'broken', leases: [{ leaseRef: waiting.leaseRef, fencingToken: null }] });
    expect(await lab.lease(waiting.leaseId)).toMatchObject({ state: 'broken', reason: 'broken' });
    const records = lab.journal.records.filter(({ action }) => action === 'lease_break');
    expect(records).toMatchObject([
      { path: 'a', principal: 'root', detail: none, fencingToken: null, highWaterMark: before.fencingToken },
      { path: 'b', principal: 'root', detail: none, fencingToken: null, highWaterMark: other.fencingToken },
    ]);
    expect(() => lab.locks.writeLeases.pin(B, tokenOf(other)).leave()).not.toThrow();
    expect((await lab.acquire(A)).state).toBe('held');
  });

  it('while its grant is under way raises the mark above its token', async () => {
    const lab = new LockLab();
    lab.journal.hold();
    const asked = lab.acquire(A, LONG);
    await lab.clock.advanceAsync(10);
    const breaking = lab.locks.breakLock(root, atOnce);
    await lab.clock.advanceAsync(10);
    lab.journal.release();
    const report = await breaking;
    const granted = lab.journal.records.find(({ action }) => action === 'lease_grant');
    expect(granted?.fencingToken).toBeLessThan(report.highWaterMark ?? 0n);
    expect(lab.journal.records.at(-1)).toMatchObject({
      action: 'lease_break',
      fencingToken: granted?.fencingToken,
      highWaterMark: report.highWaterMark,
    });
    await asked.catch(() => undefined);
  });

  it('by its ref says why, also where it holds nothing', async () => {
    const lab = new LockLab();
    await lab.acquire(A, LONG);
    const waiting = await lab.during(lab.acquire(A, { ...LONG, waitMs: 1 }), 1_000, 1);
    await lab.locks.endLease(root, waiting.leaseRef, 'stuck');
    expect(lab.journal.records.at(-1)).toMatchObject({ action: 'lease_cancel', principal: 'root', detail: none, fencingToken: null });
    expect(lab.journal.records.at(-1)?.highWaterMark).not.toBeNull();
  });
});
