import { describe, expect, it } from 'vitest';
import { heldLong } from '../../../src/doctor/lock-findings.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { anybody, callerOf, LockLab, never, resource, tokenOf } from '../../support/lock-lab.ts';

const A = resource('ledger.csv');

/** Faults of other lock services, shown at the level of the lock service with the embedded coordinator. */
describe('cases from public reports', () => {
  it('R1: two never hold one lock after a pause: the first is refused, told why, and its watch heard no later than the end', async () => {
    const lab = new LockLab();
    const stop = new AbortController();
    const a = await lab.acquire(A, { ttlMs: 5_000 });
    const events = (await lab.locks.events.watch(anybody, { of: 'resource', resource: A }, null, stop.signal))[Symbol.asyncIterator]();
    const heard = events.next();
    const b = lab.acquire(A, { waitMs: 60_000, ttlMs: 60_000 });
    await lab.clock.advanceAsync(5_000);
    expect((await b).state).toBe('held');
    expect(() => lab.locks.writeLeases.pin(A, tokenOf(a))).toThrowError(expect.objectContaining({ code: 'stale_token' }));
    expect([(await heard).value, (await events.next()).value]).toMatchObject([
      { type: 'waiting' },
      { type: 'expired', leaseRef: a.leaseRef, fencingToken: a.fencingToken },
    ]);
    stop.abort();
  });

  it('R2: whoever lost its session gets a new place behind those who wait, never its old lock', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 5_000, clientId: 'a' });
    const old = await lab.acquire(A, { sessionId, ttlMs: 60_000 });
    const b = lab.acquire(A, { waitMs: 60_000, ttlMs: 60_000 });
    await lab.clock.advanceAsync(5_000);
    await expect(lab.acquire(A, { sessionId })).rejects.toMatchObject({ code: 'session_ended' });
    const again = await lab.during(lab.acquire(A, { clientId: 'a', waitMs: 10 }), 100, 10);
    expect(again).toMatchObject({ state: 'waiting', queuePosition: 1 });
    await lab.release((await b).leaseId);
    const regained = await lab.lease(again.leaseId, 1_000);
    expect([tokenOf(old) < tokenOf(await b), tokenOf(await b) < tokenOf(regained)]).toEqual([true, true]);
  });

  it('R3: from the release call on nothing is written under the old token, and the next acquire goes ahead', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    lab.journal.hold();
    const released = lab.release(lease.leaseId);
    expect(() => lab.locks.writeLeases.pin(A, tokenOf(lease))).toThrowError(expect.objectContaining({ code: 'lease_ended' }));
    const next = lab.acquire(A);
    await settle();
    lab.journal.release();
    await released;
    expect((await next).state).toBe('held');
  });

  it('R6: a reader that waits between two writers gets its turn', async () => {
    const lab = new LockLab();
    const w1 = await lab.acquire(A);
    const reader = lab.acquire(A, { mode: 'shared', waitMs: 10_000 });
    const w2 = lab.acquire(A, { waitMs: 10_000 });
    await settle();
    await lab.release(w1.leaseId);
    const r = await reader;
    expect((await lab.locks.service.lock(A)).queueLength).toBe(1);
    await lab.release(r.leaseId);
    expect((await w2).state).toBe('held');
  });

  it('R10: a holder is told of its loss by its stream, by polling, and by its next heartbeat', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 60_000, clientId: null });
    const stop = new AbortController();
    const lease = await lab.acquire(A, { sessionId });
    const events = (await lab.locks.events.watch(anybody, { of: 'session', sessionId }, null, stop.signal))[Symbol.asyncIterator]();
    const heard = events.next();
    await settle();
    await lab.locks.breakLock(callerOf('root', null, ['admin']), { resource: A, reason: 'stuck', graceMs: 0 });
    expect((await heard).value).toMatchObject({ type: 'broken', reason: 'broken', fencingToken: lease.fencingToken });
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'broken' });
    expect((await lab.locks.service.heartbeat(anybody, sessionId)).lost).toEqual([lease.leaseId]);
    stop.abort();
  });

  it('R11: a waiter without a heartbeat ends as expired at its own time to live, is never granted, and leaves no place', async () => {
    const lab = new LockLab();
    const a = await lab.acquire(A, { ttlMs: 20_000 });
    const b = lab.acquire(A, { ttlMs: 5_000, waitMs: 60_000 });
    b.catch(() => undefined);
    await lab.clock.advanceAsync(5_000);
    await expect(b).rejects.toMatchObject({ code: 'lock_not_acquired', members: { state: 'expired' } });
    expect((await lab.locks.service.lock(A)).queueLength).toBe(0);
    await lab.release(a.leaseId);
    expect((await lab.locks.service.lock(A)).holders).toEqual([]);
  });

  it('R13: no write of the paused holder is admitted after the grant of the next, even before that one writes', async () => {
    const lab = new LockLab();
    const a = await lab.acquire(A, { ttlMs: 2_000 });
    lab.locks.writeLeases.pin(A, tokenOf(a)).leave();
    lab.clock.advance(2_000);
    const b = await lab.acquire(A);
    expect(() => lab.locks.writeLeases.pin(A, tokenOf(a))).toThrowError(expect.objectContaining({ code: 'stale_token' }));
    expect((await lab.locks.writeLeases.facts(A, tokenOf(a))).mark).toBe(b.fencingToken);
  });

  it("R14, R18: a lock is free at its holder's time to live, not at the gateway's, and both numbers are shown", async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 10_000, lockDelayMs: 3_000 });
    expect(lease).toMatchObject({ ttlMs: 10_000, expiresInMs: 10_000 });
    lab.clock.advance(9_999);
    expect((await lab.locks.service.lock(A)).holders[0]).toMatchObject({ expiresInMs: 1, ttlMs: 10_000, lockDelayMs: 3_000 });
    lab.clock.advance(1);
    const service = lab.locks.service;
    expect(await service.lock(A)).toMatchObject({ holders: [], heldBackMs: 3_000, waitEstimateMs: 3_000 });
    expect((await service.locks({ limit: 10, cursor: null })).locks).toMatchObject([{ resource: A, heldBackMs: 3_000 }]);
    expect((await service.locks({ state: 'held', limit: 10, cursor: null })).locks).toEqual([]);
    await expect(lab.acquire(A)).rejects.toMatchObject({ message: expect.stringContaining('lock-delay'), members: { held_back_ms: 3_000 } });
    lab.clock.advance(3_000);
    expect(await service.lock(A)).toMatchObject({ heldBackMs: 0, waitEstimateMs: 0 });
    expect((await lab.acquire(A)).state).toBe('held');
  });

  it('R21: three first acquires at once: one granted, two in line, and each release matches its own lease', async () => {
    const lab = new LockLab();
    const [one, two, three] = [0, 1, 2].map(() => lab.acquire(A, { waitMs: 60_000, clientId: 'same' }));
    const first = await (one as Promise<Awaited<ReturnType<typeof lab.acquire>>>);
    expect((await lab.locks.service.lock(A)).queueLength).toBe(2);
    await lab.release(first.leaseId);
    const second = await (two as typeof one);
    await lab.release(first.leaseId);
    expect((await lab.lease(second?.leaseId ?? '')).state).toBe('held');
    await lab.release(second?.leaseId ?? '');
    expect((await three)?.state).toBe('held');
  });

  it('R24: a lock that was waited for longer than its time to live is not returned expired', async () => {
    const lab = new LockLab();
    const holder = await lab.acquire(A);
    const waiter = await lab.during(lab.acquire(A, { ttlMs: 1_000, waitMs: 10 }), 100, 10);
    for (let i = 0; i < 4; i += 1) {
      await lab.clock.advanceAsync(800);
      await lab.lease(waiter.leaseId);
    }
    await lab.release(holder.leaseId);
    expect(await lab.lease(waiter.leaseId, 100)).toMatchObject({ state: 'held', expiresInMs: 1_000 });
  });

  it('R30: an expired lease is never renewed, also when nobody took the lock since', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 1_000 });
    lab.clock.advance(1_000);
    await expect(lab.locks.service.renew(anybody, lease.leaseId)).rejects.toMatchObject({
      code: 'lease_not_held',
      members: { state: 'expired', reason: 'expired' },
    });
    await expect(lab.locks.service.convert(anybody, lease.leaseId, 'shared', never)).rejects.toMatchObject({ code: 'lease_not_held' });
  });

  it.each([
    ['the longer', 30_000, 10_000],
    ['the shorter', 10_000, 30_000],
  ])(
    'R35: of two clients with different times to live the stored one of the holder counts, also when it is %s; the loser is told',
    async (_, holderMs, contenderMs) => {
      const lab = new LockLab();
      const stop = new AbortController();
      const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 3_600_000, clientId: 'holder' });
      const holder = await lab.acquire(A, { sessionId, ttlMs: holderMs });
      const told = (await lab.locks.events.watch(anybody, { of: 'session', sessionId }, null, stop.signal))[Symbol.asyncIterator]().next();
      const contender = await lab.during(lab.acquire(A, { waitMs: 1, ttlMs: contenderMs }), 10, 1);
      const step = 1_000;
      // The contender keeps its place by polling; what it would count itself is of no matter.
      while (lab.clock.monotonicMs() + step < holder.expiresInMs + 1_000) {
        await lab.clock.advanceAsync(step);
        expect((await lab.lease(contender.leaseId)).state).toBe('waiting');
      }
      expect((await lab.lease(holder.leaseId)).state).toBe('held');
      await lab.clock.advanceAsync(step);
      expect(await lab.lease(contender.leaseId)).toMatchObject({ state: 'held', ttlMs: contenderMs });
      expect((await told).value).toMatchObject({ type: 'expired', reason: 'expired', leaseRef: holder.leaseRef, fencingToken: holder.fencingToken });
      expect((await lab.locks.service.heartbeat(anybody, sessionId)).lost).toEqual([holder.leaseId]);
      stop.abort();
    },
  );

  it('R32: an owner that vanished holds nothing beyond its time, though no timer ever runs; none is without an end, and the doctor shows age, owner and fix', async () => {
    const clock = new FakeClock();
    clock.after = () => ({ cancel: () => undefined });
    const lab = new LockLab({ clock });
    await expect(lab.acquire(A, { ttlMs: LIMITS.leaseTtlMsUnbounded })).rejects.toMatchObject({ code: 'ttl_out_of_range' });
    const vanished = await lab.acquire(A, { ttlMs: 600_000, clientId: 'vanished' });
    clock.advance(599_999);
    const [found] = heldLong([...lab.locks.conditions()], lab.locks.endLease);
    expect(found?.finding).toMatchObject({
      code: 'held_long',
      evidence: { client_id: 'vanished', held_ms: 599_999, silent_ms: 599_999, how: expect.stringContaining('/v1/admin/locks/break') },
    });
    expect((await lab.locks.service.lock(A)).holders).toHaveLength(1);
    clock.advance(1);
    // Whoever reads first: each asks for itself.
    for (const read of [
      async () => (await lab.locks.service.lock(A)).holders.length,
      async () => (await lab.locks.service.locks({ limit: 10, cursor: null })).locks.length,
      async () => (await lab.sessions()).length,
    ]) {
      expect(await read()).toBe(0);
    }
    expect(await lab.lease(vanished.leaseId)).toMatchObject({ state: 'expired', reason: 'expired' });
    expect((await lab.acquire(A)).state).toBe('held');
  });

  it('B11: an acquire that fails leaves nothing behind, and the next one works', async () => {
    const lab = new LockLab();
    lab.reserveGate = () => Promise.reject(new Error('volume hangs'));
    await expect(lab.acquire(A)).rejects.toMatchObject({ code: 'internal' });
    lab.reserveGate = async () => undefined;
    expect((await lab.acquire(A)).state).toBe('held');
    expect(await lab.sessions()).toHaveLength(1);
  });

  it("B13: releasing twice never frees somebody else's lock", async () => {
    const lab = new LockLab();
    const mine = await lab.acquire(A);
    await lab.release(mine.leaseId);
    const theirs = await lab.acquire(A);
    await lab.release(mine.leaseId, { all: true });
    lab.locks.writeLeases.pin(A, tokenOf(theirs)).leave();
  });
});

describe('work per hand-over', () => {
  it('wakes exactly one of a thousand waiters, and looks at no other', async () => {
    const lab = new LockLab();
    let current = await lab.acquire(A, { ttlMs: 3_600_000 });
    const waits = Array.from({ length: 1_000 }, () => lab.acquire(A, { waitMs: 60_000, ttlMs: 3_600_000 }));
    await settle();
    expect((await lab.locks.service.lock(A)).queueLength).toBe(1_000);
    for (let i = 0; i < 50; i += 1) {
      const units = lab.journal.units.length;
      await lab.release(current.leaseId);
      current = await (waits[i] as Promise<typeof current>);
      expect(lab.journal.units.length - units).toBe(2);
    }
    await lab.locks.endAll('lost', null);
    await Promise.allSettled(waits);
  });

  it('keeps nothing in memory for resources that nobody holds', async () => {
    const lab = new LockLab();
    for (let i = 0; i < 500; i += 1) await lab.release((await lab.acquire(resource(`r${i}`))).leaseId);
    expect((await lab.locks.service.locks({ limit: 1_000, cursor: null })).locks).toEqual([]);
    expect(await lab.sessions()).toEqual([]);
    expect((await lab.locks.service.lock(resource('r1'))).highWaterMark).not.toBeNull();
  });
});
