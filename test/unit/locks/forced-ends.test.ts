import { describe, expect, it } from 'vitest';
import { anybody, callerOf, LockLab, resource } from '../../support/lock-lab.ts';

const A = resource('a');
const B = resource('b');
const root = callerOf('root', null, ['admin']);

describe('a session that an administrator ends', () => {
  it('is broken where it holds, with reason, operation and what it committed; where it waits it is cancelled, and the holder there goes on', async () => {
    const lab = new LockLab();
    const session = await lab.locks.service.createSession(anybody, { ttlMs: 600_000, clientId: null });
    const { sessionId, sessionRef } = session;
    const other = await lab.acquire(B, { ttlMs: 600_000 });
    const held = await lab.acquire(A, { sessionId, ttlMs: 600_000 });
    const waits = lab.acquire(B, { sessionId, ttlMs: 600_000, waitMs: 1 });
    await lab.clock.advanceAsync(1);
    const waiter = await waits;
    const [, grant] = lab.journal.records;
    if (grant === undefined) throw new Error('no record');
    await lab.journal.commit([
      { op: 'audit', record: { ...grant, outcome: 'committed', action: 'put', operationId: 'op-1', etagBefore: null, etagAfter: '"1"' } },
    ]);
    await lab.locks.service.endSessionByRef(root, sessionRef);
    expect(await lab.lease(held.leaseId)).toMatchObject({ state: 'broken', reason: 'session_ended' });
    expect(await lab.lease(waiter.leaseId)).toMatchObject({ state: 'cancelled' });
    expect(await lab.lease(other.leaseId)).toMatchObject({ state: 'held' });
    const record = lab.journal.records.filter(({ action }) => action === 'lease_break');
    expect(record).toMatchObject([{ leaseRef: held.leaseRef, principal: 'root', operationId: expect.stringMatching(/./) }]);
    expect(JSON.parse(record[0]?.detail ?? '')).toMatchObject({ reason: 'session_ended', committed: [{ operation_id: 'op-1' }] });
    expect(lab.journal.records.filter(({ action }) => action === 'lease_cancel')).toMatchObject([{ leaseRef: waiter.leaseRef, principal: 'root' }]);
  });

  it('that only waits leaves a record of the forced end itself beside that of its wait', async () => {
    const lab = new LockLab();
    const { sessionId, sessionRef } = await lab.locks.service.createSession(anybody, { ttlMs: 600_000, clientId: null });
    await lab.acquire(B, { ttlMs: 600_000 });
    const waits = lab.acquire(B, { sessionId, ttlMs: 600_000, waitMs: 1 });
    await lab.clock.advanceAsync(1);
    await waits;
    await lab.locks.service.endSessionByRef(root, sessionRef);
    expect(lab.journal.decisions().slice(1).sort()).toEqual(['lease_break', 'lease_cancel']);
  });
});
