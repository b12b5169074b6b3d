import { describe, expect, it } from 'vitest';
import { COORDINATORS } from '../../support/coordinators.ts';
import { settle } from '../../support/fake-clock.ts';
import { anybody, resource } from '../../support/lock-lab.ts';

const A = resource('a');

describe.each(COORDINATORS)('a grant whose answer did not get to its client ($coordinator)', ({ LockLab }) => {
  it('is given back at once, and whoever is next has the lock', async () => {
    const lab = new LockLab();
    const lost = await lab.acquire(A, { ttlMs: 3_600_000, holdId: 'h1' });
    const next = lab.acquire(A, { waitMs: null });
    lab.locks.service.undelivered(anybody, lost.leaseId, 'h1');
    expect((await next).state).toBe('held');
    expect(lab.journal.decisions()).toEqual(['lease_grant', 'lease_cancel', 'lease_grant']);
    expect(await lab.lease(lost.leaseId)).toMatchObject({ state: 'cancelled' });
  });

  it('stays when the same request was answered again under its hold id', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: null, clientId: null });
    const first = await lab.acquire(A, { sessionId, holdId: 'h1' });
    await lab.acquire(A, { sessionId, holdId: 'h1' });
    lab.locks.service.undelivered(anybody, first.leaseId, 'h1');
    await settle();
    expect(await lab.lease(first.leaseId)).toMatchObject({ state: 'held', holdCount: 1 });
    lab.locks.service.undelivered(anybody, first.leaseId, 'h1');
    await settle();
    expect(await lab.lease(first.leaseId)).toMatchObject({ state: 'cancelled' });
  });

  it('takes its own hold off only, also in the journal, and does nothing to a lease that is over or unknown', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: null, clientId: null });
    const { leaseId, leaseRef } = await lab.acquire(A, { sessionId, holdId: 'h1' });
    await lab.acquire(A, { sessionId, holdId: 'h2' });
    lab.locks.service.undelivered(anybody, leaseId, 'h2');
    await settle();
    expect(await lab.lease(leaseId)).toMatchObject({ state: 'held', holdCount: 1 });
    expect([...(lab.journal.leases.get(leaseRef)?.holds ?? [])]).toEqual(['h1']);
    await lab.release(leaseId);
    lab.locks.service.undelivered(anybody, leaseId, 'h1');
    lab.locks.service.undelivered(anybody, 'nobody', 'h1');
    expect(await lab.lease(leaseId)).toMatchObject({ state: 'released' });
  });

  it('goes although the journal holds up the grant, as soon as that is durable', async () => {
    const lab = new LockLab();
    lab.journal.hold();
    const gone = new AbortController();
    const acquired = lab.acquire(A, { ttlMs: 3_600_000 }, anybody, gone.signal).catch((thrown: Error) => thrown.message);
    await settle();
    gone.abort(new Error('gone'));
    lab.journal.release();
    expect(await acquired).toBe('gone');
    await settle();
    expect((await lab.locks.service.lock(A)).holders).toEqual([]);
  });
});
