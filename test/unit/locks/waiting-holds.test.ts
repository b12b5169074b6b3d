import { describe, expect, it } from 'vitest';
import type { LeaseView } from '../../../src/domain/lock-api.ts';
import { COORDINATORS } from '../../support/coordinators.ts';
import { settle } from '../../support/fake-clock.ts';
import { anybody, type LockLab, resource } from '../../support/lock-lab.ts';

/** Several requests of one session that wait for the same resource: each has a hold of its own, and leaves alone. */

const A = resource('a');

async function inLine(lab: LockLab): Promise<{ readonly holder: LeaseView; readonly sessionId: string }> {
  const holder = await lab.acquire(A, { ttlMs: 3_600_000 });
  const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 3_600_000, clientId: null });
  return { holder, sessionId };
}

async function queueLength(lab: LockLab): Promise<number> {
  await settle();
  return (await lab.locks.service.lock(A)).queueLength;
}

/** A request that waits until it is ended by `leave`. */
function waiting(lab: LockLab, sessionId: string, holdId: string, waitMs: number | null = null) {
  const gone = new AbortController();
  const answer = lab.acquire(A, { sessionId, holdId, waitMs, ttlMs: 3_600_000 }, anybody, gone.signal);
  const ended = answer.then(
    ({ state }) => state,
    (thrown: Error & { code?: string }) => thrown.code ?? thrown.message,
  );
  return { answer, ended, leave: () => gone.abort(new Error('gone')) };
}

describe.each(COORDINATORS)('requests of one session that wait together ($coordinator)', ({ LockLab }) => {
  it('leave one by one; the last takes the waiter with it', async () => {
    const lab = new LockLab();
    const { holder, sessionId } = await inLine(lab);
    const [one, two, three] = [waiting(lab, sessionId, 'h1'), waiting(lab, sessionId, 'h2', 60_000), waiting(lab, sessionId, 'h3')];
    expect(await queueLength(lab)).toBe(1);
    one.leave();
    expect(await one.ended).toBe('gone');
    expect(await queueLength(lab)).toBe(1);
    two.leave();
    expect(await two.ended).toBe('gone');
    expect(await queueLength(lab)).toBe(1);
    await lab.release(holder.leaseId);
    expect(await three.ended).toBe('held');
    const lease = await three.answer;
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'held', holdCount: 1 });
    expect([...(lab.journal.leases.get(lease.leaseRef)?.holds ?? [])]).toEqual(['h3']);
  });

  it('that all leave take the waiter out of the line', async () => {
    const lab = new LockLab();
    const { sessionId } = await inLine(lab);
    const both = [waiting(lab, sessionId, 'h1'), waiting(lab, sessionId, 'h2')];
    expect(await queueLength(lab)).toBe(1);
    for (const one of both) one.leave();
    expect(await Promise.all(both.map(({ ended }) => ended))).toEqual(['gone', 'gone']);
    expect(await queueLength(lab)).toBe(0);
    expect(lab.journal.decisions().filter((decision) => decision === 'lease_cancel')).toHaveLength(1);
  });

  it('are released one by one, too: each is told, and the others wait on', async () => {
    const lab = new LockLab();
    const { holder, sessionId } = await inLine(lab);
    const [one, two] = [waiting(lab, sessionId, 'h1'), waiting(lab, sessionId, 'h2')];
    await settle();
    const place = await lab.during(lab.acquire(A, { sessionId, holdId: 'h3', waitMs: 10 }), 1_000, 10);
    expect(place).toMatchObject({ state: 'waiting', holdCount: 3 });
    await lab.release(place.leaseId, { holdId: 'h1' });
    await lab.release(place.leaseId, { holdId: 'h1' });
    expect(await one.ended).toBe('lock_not_acquired');
    expect(await lab.lease(place.leaseId)).toMatchObject({ state: 'waiting', holdCount: 2 });
    await lab.release(place.leaseId, { holdId: 'h3' });
    await lab.release(holder.leaseId);
    expect(await two.ended).toBe('held');
    expect((await lab.lease(place.leaseId)).holdCount).toBe(1);
  });

  it('are all ended by all', async () => {
    const lab = new LockLab();
    const { sessionId } = await inLine(lab);
    const both = [waiting(lab, sessionId, 'h1'), waiting(lab, sessionId, 'h2')];
    await settle();
    const place = await lab.during(lab.acquire(A, { sessionId, holdId: 'h3', waitMs: 10 }), 1_000, 10);
    await lab.release(place.leaseId, { all: true });
    expect(await Promise.all(both.map(({ ended }) => ended))).toEqual(['lock_not_acquired', 'lock_not_acquired']);
    expect(await queueLength(lab)).toBe(0);
  });

  it('a request that was repeated keeps its hold when the first connection turns out to be gone', async () => {
    const lab = new LockLab();
    const { holder, sessionId } = await inLine(lab);
    const [first, again] = [waiting(lab, sessionId, 'h1'), waiting(lab, sessionId, 'h1')];
    await settle();
    first.leave();
    expect(await first.ended).toBe('gone');
    expect(await queueLength(lab)).toBe(1);
    await lab.release(holder.leaseId);
    const lease = await again.answer;
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'held', holdCount: 1 });
  });

  it('also when the repeated one was answered with a place in line already', async () => {
    const lab = new LockLab();
    const { sessionId } = await inLine(lab);
    const first = waiting(lab, sessionId, 'h1', 60_000);
    const again = await lab.during(lab.acquire(A, { sessionId, holdId: 'h1', waitMs: 10 }), 1_000, 10);
    first.leave();
    expect(await first.ended).toBe('gone');
    expect(await lab.lease(again.leaseId)).toMatchObject({ state: 'waiting', holdCount: 1 });
  });

  it('one that goes while the grant becomes durable leaves no hold behind, not even over a restart', async () => {
    const lab = new LockLab();
    const { holder, sessionId } = await inLine(lab);
    const [one, two] = [waiting(lab, sessionId, 'h1'), waiting(lab, sessionId, 'h2')];
    await settle();
    lab.journal.hold();
    const released = lab.release(holder.leaseId);
    await settle();
    one.leave();
    expect(await one.ended).toBe('gone');
    lab.journal.release();
    await released;
    const lease = await two.answer;
    await settle();
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'held', holdCount: 1 });
    expect([...(lab.journal.leases.get(lease.leaseRef)?.holds ?? [])]).toEqual(['h2']);
  });
});

describe.each(COORDINATORS)('a request that stays open ($coordinator)', ({ LockLab }) => {
  it('keeps its place for longer than the time to live, and is never expired', async () => {
    const lab = new LockLab();
    const holder = await lab.acquire(A, { ttlMs: 3_600_000 });
    const waiter = lab.acquire(A, { waitMs: null, ttlMs: 1_000 });
    await lab.clock.advanceAsync(60_000);
    expect((await lab.locks.service.lock(A)).queueLength).toBe(1);
    await lab.release(holder.leaseId);
    expect((await lab.during(waiter, 1_000)).state).toBe('held');
  });

  it('is bounded by a limit of its own, also where it joins a wait that has none', async () => {
    const lab = new LockLab();
    const { sessionId } = await inLine(lab);
    const first = waiting(lab, sessionId, 'h1');
    await settle();
    const second = lab.acquire(A, { sessionId, holdId: 'h2', waitMs: null, maxWaitMs: 5_000 });
    await expect(lab.during(second, 6_000)).rejects.toMatchObject({ code: 'lock_not_acquired', members: { state: 'cancelled', reason: 'max_wait' } });
    expect(await queueLength(lab)).toBe(1);
    first.leave();
    await first.ended;
    expect(await queueLength(lab)).toBe(0);
  });

  it('waits so for an upgrade as well', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 3_600_000, clientId: null });
    const mine = await lab.acquire(A, { sessionId, mode: 'shared', ttlMs: 3_600_000 });
    const other = await lab.acquire(A, { mode: 'shared', ttlMs: 3_600_000 });
    const upgraded = lab.acquire(A, { sessionId, waitMs: null, maxWaitMs: 600_000 });
    await lab.clock.advanceAsync(120_000);
    await lab.release(other.leaseId);
    expect(await lab.during(upgraded, 1_000)).toMatchObject({ leaseId: mine.leaseId, mode: 'exclusive', state: 'held' });
  });
});
