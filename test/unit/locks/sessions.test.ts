import { describe, expect, it } from 'vitest';
import { COORDINATORS } from '../../support/coordinators.ts';
import { settle } from '../../support/fake-clock.ts';
import { anybody, callerOf, resource, tokenOf } from '../../support/lock-lab.ts';

const [A, B] = [resource('a'), resource('b')];

describe.each(COORDINATORS)('a session ($coordinator)', ({ LockLab }) => {
  it('keeps all its leases alive with one heartbeat, waiters too', async () => {
    const lab = new LockLab();
    await lab.acquire(B, { ttlMs: 3_600_000 });
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 5_000, clientId: 'c' });
    const held = await lab.acquire(A, { sessionId, ttlMs: 5_000 });
    const waiting = await lab.during(lab.acquire(B, { sessionId, ttlMs: 5_000, waitMs: 10 }), 100, 10);
    for (let i = 0; i < 10; i += 1) {
      lab.clock.advance(4_000);
      expect(await lab.locks.service.heartbeat(anybody, sessionId)).toEqual({ expiresInMs: 5_000, lost: [] });
    }
    expect([(await lab.lease(held.leaseId)).state, (await lab.lease(waiting.leaseId)).state]).toEqual(['held', 'waiting']);
    expect((await lab.sessions()).find((s) => s.sessionId === sessionId)).toMatchObject({ leaseCount: 2, clientId: 'c' });
  });

  it('is listed page by page, in the order in which they were made; one that ended between two pages costs nobody its place', async () => {
    const lab = new LockLab();
    const made: string[] = [];
    for (const clientId of ['a', 'b', 'c', 'd', 'e'])
      made.push((await lab.locks.service.createSession(anybody, { ttlMs: 60_000, clientId })).sessionId);
    const page = (cursor: string | null) => lab.locks.service.sessionPage({ limit: 2, cursor });
    const first = await page(null);
    expect(first.sessions.map(({ clientId }) => clientId)).toEqual(['a', 'b']);
    await lab.locks.service.endSession(anybody, made[1] ?? '');
    const second = await page(first.nextCursor);
    expect(second.sessions.map(({ clientId }) => clientId)).toEqual(['c', 'd']);
    const last = await page(second.nextCursor);
    expect([last.sessions.map(({ clientId }) => clientId), last.nextCursor]).toEqual([['e'], null]);
    await expect(page('x')).rejects.toMatchObject({ code: 'invalid_request' });
  });

  it('lends its label to a lease that has none, to its refusals, and to their records', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 60_000, clientId: 'batch' });
    expect((await lab.acquire(A, { sessionId })).clientId).toBe('batch');
    expect((await lab.acquire(resource('own'), { sessionId, clientId: 'own' })).clientId).toBe('own');
    expect((await lab.acquire(resource('header'), { sessionId }, callerOf(null, 'header'))).clientId).toBe('header');
    expect((await lab.locks.service.lock(A)).holders).toMatchObject([{ clientId: 'batch' }]);
    await lab.acquire(B);
    await expect(lab.acquire(B, { sessionId })).rejects.toMatchObject({ code: 'lock_not_acquired' });
    expect(lab.journal.records.filter(({ path }) => path === 'a' || path === 'b').map(({ action, clientId }) => `${action} ${clientId}`)).toEqual([
      'lease_grant batch',
      'lease_grant null',
      'lease_refuse batch',
    ]);
    // Of somebody else's session nothing is said.
    await expect(lab.acquire(B, { sessionId }, callerOf('bob', null))).rejects.toMatchObject({ code: 'forbidden' });
    expect(lab.journal.records.at(-1)).toMatchObject({ principal: 'bob', clientId: null });
  });

  it('loses everything when it dies, and a late heartbeat brings nothing back', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 5_000, clientId: null });
    const lease = await lab.acquire(A, { sessionId, ttlMs: 60_000 });
    await lab.clock.advanceAsync(5_000);
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'expired', reason: 'session_ended' });
    await expect(lab.locks.service.heartbeat(anybody, sessionId)).rejects.toMatchObject({ code: 'session_ended' });
    expect(lab.journal.sessions.size).toBe(0);
    expect((await lab.acquire(A)).state).toBe('held');
  });

  it('a heartbeat does not revive a lease of it that has run out', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 60_000, clientId: null });
    const lease = await lab.acquire(A, { sessionId, ttlMs: 2_000 });
    await lab.sessions();
    lab.clock.advance(2_000);
    expect(await lab.locks.service.heartbeat(anybody, sessionId)).toMatchObject({ lost: [lease.leaseId] });
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'expired', reason: 'expired' });
  });

  it('releases everything when its client ends it, and cancels its waits', async () => {
    const lab = new LockLab();
    await lab.acquire(B);
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: null, clientId: null });
    const held = await lab.acquire(A, { sessionId, lockDelayMs: 10_000 });
    const waiting = await lab.during(lab.acquire(B, { sessionId, waitMs: 10 }), 100, 10);
    await lab.locks.service.endSession(anybody, sessionId);
    expect(await lab.lease(held.leaseId)).toMatchObject({ state: 'released', reason: 'session_ended' });
    expect(await lab.lease(waiting.leaseId)).toMatchObject({ state: 'cancelled' });
    // A clean end: no lock-delay.
    expect((await lab.acquire(A)).state).toBe('held');
  });

  it('may be ended again, by its owner: the end is told once it is durable, and tried again when the journal refused it', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(callerOf('ann'), { ttlMs: null, clientId: null });
    await lab.acquire(A, { sessionId }, callerOf('ann'));
    const end = (name: string) => lab.locks.service.endSession(callerOf(name), sessionId);
    lab.journal.hold();
    const told: string[] = [];
    const both = ['first', 'second'].map((name) => end('ann').then(() => void told.push(name)));
    await settle();
    expect(told).toEqual([]);
    lab.journal.failing = true;
    lab.journal.release();
    expect((await Promise.allSettled(both)).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await expect(end('ann')).rejects.toMatchObject({ code: 'outcome_unknown' });
    lab.journal.failing = false;
    await end('ann');
    expect([lab.journal.sessions.size, lab.journal.leases.size]).toEqual([0, 0]);
    await end('ann');
    await expect(end('bob')).rejects.toMatchObject({ code: 'forbidden' });
  });

  it('is ended by an administrator by its ref: its leases are fenced and broken', async () => {
    const lab = new LockLab();
    const { sessionId, sessionRef } = await lab.locks.service.createSession(callerOf('ann'), { ttlMs: null, clientId: null });
    const lease = await lab.acquire(A, { sessionId }, callerOf('ann'));
    await lab.locks.service.endSessionByRef(callerOf('root', null, ['admin']), sessionRef);
    expect(await lab.lease(lease.leaseId, 0, callerOf('ann'))).toMatchObject({ state: 'broken', reason: 'session_ended' });
    expect(lab.journal.marks.get(A.key)?.token).toBeGreaterThan(tokenOf(lease));
    await expect(lab.locks.service.endSessionByRef(callerOf('root', null, ['admin']), 'nobody')).rejects.toMatchObject({ code: 'session_not_found' });
  });

  it('is made for a lease that names none, and ends with it', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { clientId: 'label' });
    const other = await lab.acquire(B, { clientId: 'label' });
    expect(lease.sessionId).not.toBe(other.sessionId);
    expect(lab.journal.sessions.size).toBe(2);
    await lab.release(lease.leaseId);
    expect(lab.journal.sessions.size).toBe(1);
    expect(await lab.sessions()).toHaveLength(1);
  });

  it('does not come to be when the journal refuses it', async () => {
    const lab = new LockLab();
    lab.journal.failing = true;
    await expect(lab.locks.service.createSession(anybody, { ttlMs: null, clientId: null })).rejects.toMatchObject({ code: 'journal_unavailable' });
    expect(await lab.sessions()).toEqual([]);
  });
});
