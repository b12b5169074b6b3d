import { describe, expect, it } from 'vitest';
import { COORDINATORS } from '../../support/coordinators.ts';
import { settle } from '../../support/fake-clock.ts';
import { anybody, callerOf, never, request, resource, tokenOf } from '../../support/lock-lab.ts';

const A = resource('a');
const B = resource('b');

describe.each(COORDINATORS)('a lease ($coordinator)', ({ LockLab }) => {
  it('is one unit of the journal: mark, session, lease and record, before anybody is told', async () => {
    const lab = new LockLab();
    lab.journal.hold();
    let told = false;
    const acquired = lab.acquire(A, { clientId: 'c', metadata: { job: 1 } }).then((lease) => {
      told = true;
      return lease;
    });
    await settle();
    expect([told, lab.journal.waiting]).toEqual([false, 1]);
    lab.journal.release();
    const lease = await acquired;
    expect(lab.journal.units.map((unit) => unit.map(({ op }) => op))).toEqual([['raise_mark', 'session_put', 'lease_put', 'audit']]);
    expect(lab.journal.records[0]).toMatchObject({
      action: 'lease_grant',
      volume: 'vol',
      path: 'a',
      leaseRef: lease.leaseRef,
      fencingToken: lease.fencingToken,
      clientId: 'c',
      outcome: 'committed',
    });
    expect(lab.reserved).toEqual([{ volume: 'vol', token: lease.fencingToken }]);
  });

  it('is not issued before the volume has a ceiling above its token', async () => {
    const lab = new LockLab();
    let open = (): void => undefined;
    lab.reserveGate = () =>
      new Promise((resolve) => {
        open = resolve;
      });
    const acquired = lab.acquire(A);
    await settle();
    expect(lab.journal.units).toEqual([]);
    open();
    expect((await acquired).state).toBe('held');
  });

  it('keeps its secrets out of the audit log', async () => {
    const lab = new LockLab();
    const session = await lab.locks.service.createSession(anybody, { ttlMs: null, clientId: null });
    const lease = await lab.acquire(A, { sessionId: session.sessionId });
    await lab.release(lease.leaseId);
    const text = JSON.stringify(lab.journal.records, (_, value) => (typeof value === 'bigint' ? String(value) : value));
    expect(text).toContain(lease.leaseRef);
    expect(text).not.toContain(lease.leaseId);
    expect(text).not.toContain(session.sessionId);
  });

  it('is renewed by its owner only, and released by its owner only', async () => {
    const lab = new LockLab();
    const [ann, bob] = [callerOf('ann'), callerOf('bob')];
    const lease = await lab.acquire(A, {}, ann);
    for (const act of [
      () => lab.locks.service.renew(bob, lease.leaseId),
      () => lab.locks.service.convert(bob, lease.leaseId, 'shared', never),
      () => lab.release(lease.leaseId, {}, bob),
      () => lab.lease(lease.leaseId, 0, bob),
    ])
      await expect(act()).rejects.toMatchObject({ code: 'not_lease_owner' });
    await lab.release(lease.leaseId, {}, ann);
    expect(lab.journal.decisions()).toEqual([
      'lease_grant',
      'lease_refuse:not_lease_owner',
      'lease_refuse:not_lease_owner',
      'lease_refuse:not_lease_owner',
      'lease_release',
    ]);
  });

  it('lives on while it is renewed, and ends at its time to live when it is not', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 2_000 });
    for (let i = 0; i < 10; i += 1) {
      lab.clock.advance(1_999);
      expect((await lab.locks.service.renew(anybody, lease.leaseId)).expiresInMs).toBe(2_000);
    }
    lab.clock.advance(2_000);
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'expired', reason: 'expired', expiresInMs: 0 });
  });

  it('is not renewed by polling while it is held', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 2_000 });
    lab.clock.advance(1_500);
    expect((await lab.lease(lease.leaseId)).expiresInMs).toBe(500);
  });

  it('is over at the moment it is looked at, timer or not; a jump of the wall clock changes nothing', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 2_000 });
    lab.clock.jumpWall(-86_400_000);
    lab.clock.jumpWall(3 * 86_400_000);
    expect(lab.locks.writeLeases.holder(A)).not.toBeNull();
    lab.locks.stop();
    const asleep = new LockLab({ clock: lab.clock, journal: lab.journal });
    const other = await asleep.acquire(B, { ttlMs: 2_000 });
    // Like a suspended machine: time passes, no timer has run yet.
    const { after } = lab.clock;
    lab.clock.after = () => ({ cancel: () => undefined });
    lab.clock.advance(10_000);
    lab.clock.after = after;
    expect(() => asleep.locks.writeLeases.pin(B, tokenOf(other))).toThrowError(expect.objectContaining({ code: 'lease_ended' }));
    await expect(asleep.locks.service.renew(anybody, other.leaseId)).rejects.toMatchObject({ code: 'lease_not_held' });
    expect(lease.state).toBe('held');
  });

  it('is released idempotently, and a late release never frees somebody else', async () => {
    const lab = new LockLab();
    const first = await lab.acquire(A);
    await lab.release(first.leaseId);
    const second = await lab.acquire(A);
    await lab.release(first.leaseId);
    await lab.release(first.leaseId, { all: true });
    expect((await lab.lease(second.leaseId)).state).toBe('held');
    await expect(lab.release('l1.unknown')).rejects.toMatchObject({ code: 'lease_not_found' });
  });

  it('is known for an hour after its end, then no more', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    await lab.release(lease.leaseId);
    lab.clock.advance(3_600_000);
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'released', reason: 'released', fencingToken: lease.fencingToken });
    lab.journal.ended.clear();
    lab.clock.advance(1);
    await expect(lab.lease(lease.leaseId)).rejects.toMatchObject({ code: 'lease_not_found' });
  });

  it('ends when it was held for as long as is allowed, fenced first', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 10_000, maxHoldMs: 15_000 });
    lab.clock.advance(9_000);
    await lab.locks.service.renew(anybody, lease.leaseId);
    await lab.clock.advanceAsync(6_000);
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'expired', reason: 'max_hold' });
    expect(lab.journal.marks.get(A.key)?.token).toBeGreaterThan(tokenOf(lease));
  });

  it('ends as one for several resources, and the records name each of them', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire([B, A]);
    expect(lease.resources.map(({ path }) => path)).toEqual(['a', 'b']);
    await lab.release(lease.leaseId);
    expect(lab.journal.records.map(({ action, path }) => `${action} ${path}`)).toEqual([
      'lease_grant a',
      'lease_grant b',
      'lease_release a',
      'lease_release b',
    ]);
  });
});

describe.each(COORDINATORS)('waiting ($coordinator)', ({ LockLab }) => {
  it('ends with the wait limit of the whole wait', async () => {
    const lab = new LockLab();
    await lab.acquire(A, { ttlMs: 100_000 });
    await expect(lab.during(lab.acquire(A, { waitMs: 60_000, maxWaitMs: 5_000 }), 10_000)).rejects.toMatchObject({
      code: 'lock_not_acquired',
      members: { reason: 'max_wait', state: 'cancelled' },
    });
    expect(lab.journal.decisions()).toContain('lease_cancel:lock_not_acquired');
  });

  it('keeps the place while it is polled, and loses it when nobody polls', async () => {
    const lab = new LockLab();
    await lab.acquire(A, { ttlMs: 3_600_000 });
    const waiter = await lab.during(lab.acquire(A, { waitMs: 10, ttlMs: 2_000 }), 100, 10);
    for (let i = 0; i < 5; i += 1) {
      lab.clock.advance(1_900);
      expect(await lab.lease(waiter.leaseId)).toMatchObject({ state: 'waiting', queuePosition: 1 });
    }
    lab.clock.advance(2_000);
    expect(await lab.lease(waiter.leaseId)).toMatchObject({ state: 'expired' });
    expect((await lab.locks.service.lock(A)).queueLength).toBe(0);
  });

  it('is cancelled by a release', async () => {
    const lab = new LockLab();
    await lab.acquire(A);
    const waiter = await lab.during(lab.acquire(A, { waitMs: 10 }), 100, 10);
    const poll = lab.lease(waiter.leaseId, 10_000);
    await lab.release(waiter.leaseId);
    expect(await poll).toMatchObject({ state: 'cancelled', reason: 'cancelled' });
  });

  it('never gives a lock to somebody who went while the grant was becoming durable', async () => {
    const lab = new LockLab();
    lab.journal.hold();
    const gone = new AbortController();
    const acquired = lab.acquire(A, {}, anybody, gone.signal);
    acquired.catch(() => undefined);
    await settle();
    gone.abort(new Error('gone'));
    await settle();
    lab.journal.release();
    await expect(acquired).rejects.toThrow('gone');
    await settle();
    expect((await lab.locks.service.lock(A)).holders).toEqual([]);
    expect(lab.journal.leases.size).toBe(0);
    expect(lab.journal.decisions()).toEqual(['lease_grant', 'lease_cancel']);
  });

  it('is answered with the lock when a try finds the grant under way, not with a refusal', async () => {
    const lab = new LockLab();
    lab.journal.hold();
    const acquired = lab.acquire(A, { waitMs: 0 });
    await lab.clock.advanceAsync(5_000);
    lab.journal.release();
    expect((await acquired).state).toBe('held');
  });
});

describe.each(COORDINATORS)('acquiring again in one session ($coordinator)', ({ LockLab }) => {
  it('gives the same lease and token, counts holds, and counts a retried request once', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: null, clientId: null });
    const first = await lab.acquire(A, { sessionId, holdId: 'h1' });
    const { lease: second, created } = await lab.locks.service.acquire(anybody, request(A, { sessionId, holdId: 'h2', mode: 'shared' }), never);
    const again = await lab.acquire(A, { sessionId, holdId: 'h2' });
    expect([second.leaseId, second.fencingToken, created, second.holdCount, again.holdCount]).toEqual([
      first.leaseId,
      first.fencingToken,
      false,
      2,
      2,
    ]);
    expect(second.mode).toBe('exclusive');
    expect([...(lab.journal.leases.get(first.leaseRef)?.holds ?? [])]).toEqual(['h1', 'h2']);
    await lab.release(first.leaseId, { holdId: 'h2' });
    await lab.release(first.leaseId, { holdId: 'h2' });
    expect(await lab.lease(first.leaseId)).toMatchObject({ state: 'held', holdCount: 1 });
    await lab.release(first.leaseId);
    expect((await lab.lease(first.leaseId)).state).toBe('released');
  });

  it('is released at once by all', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: null, clientId: null });
    const lease = await lab.acquire(A, { sessionId });
    await lab.acquire(A, { sessionId });
    await lab.release(lease.leaseId, { all: true });
    expect((await lab.lease(lease.leaseId)).state).toBe('released');
  });

  it('shares a place in line with the first request, each with its own wait', async () => {
    const lab = new LockLab();
    const holder = await lab.acquire(A);
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: null, clientId: null });
    const [one, two] = [lab.acquire(A, { sessionId, waitMs: 10_000 }), lab.acquire(A, { sessionId, waitMs: 10_000 })];
    await expect(lab.acquire(A, { sessionId })).rejects.toMatchObject({ code: 'lock_not_acquired' });
    await settle();
    expect((await lab.locks.service.lock(A)).queueLength).toBe(1);
    await lab.release(holder.leaseId);
    expect((await one).leaseId).toBe((await two).leaseId);
    expect((await lab.lease((await one).leaseId)).holdCount).toBe(2);
  });

  it('refuses a lease that overlaps another of the session', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: null, clientId: null });
    await lab.acquire([A, B], { sessionId });
    await expect(lab.acquire(A, { sessionId })).rejects.toMatchObject({ code: 'overlapping_lease' });
    await expect(lab.acquire([A, resource('c')], { sessionId })).rejects.toMatchObject({ code: 'overlapping_lease' });
    expect((await lab.acquire([B, A], { sessionId })).holdCount).toBe(2);
  });

  it('in a stronger mode is an upgrade, with a new token', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: null, clientId: null });
    const reader = await lab.acquire(A, { sessionId, mode: 'shared' });
    const writer = await lab.acquire(A, { sessionId });
    expect(writer).toMatchObject({ leaseId: reader.leaseId, mode: 'exclusive', holdCount: 2 });
    expect(tokenOf(writer)).toBeGreaterThan(tokenOf(reader));
    await lab.locks.service.convert(anybody, reader.leaseId, 'shared', never);
    await lab.acquire(A, { mode: 'shared' });
    await expect(lab.acquire(A, { sessionId })).rejects.toMatchObject({ code: 'lock_not_acquired' });
    expect(await lab.lease(reader.leaseId)).toMatchObject({ mode: 'shared', state: 'held', holdCount: 2 });
  });
});

describe.each(COORDINATORS)('renewing with another time to live ($coordinator)', ({ LockLab }) => {
  it('counts from now on, longer or shorter, and is durable before it is told', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 2_000 });
    lab.journal.hold();
    let told = false;
    const longer = lab.locks.service.renew(anybody, lease.leaseId, 60_000).finally(() => {
      told = true;
    });
    await settle();
    expect(told).toBe(false);
    lab.journal.release();
    expect(await longer).toMatchObject({ ttlMs: 60_000, expiresInMs: 60_000, fencingToken: lease.fencingToken });
    lab.clock.advance(50_000);
    expect(await lab.locks.service.renew(anybody, lease.leaseId, null)).toMatchObject({ expiresInMs: 60_000 });
    expect([...lab.journal.sessions.values()]).toMatchObject([{ ttlMs: 60_000 }]);
    expect(await lab.locks.service.renew(anybody, lease.leaseId, 1_000)).toMatchObject({ ttlMs: 1_000, expiresInMs: 1_000 });
    await lab.clock.advanceAsync(1_000);
    expect((await lab.locks.service.lock(A)).holders).toEqual([]);
    await expect(lab.locks.service.renew(anybody, lease.leaseId, 5)).rejects.toMatchObject({ code: 'lease_not_held' });
  });

  it('out of bounds is refused, and renews nothing; so is one that the journal does not take', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 10_000 });
    lab.clock.advance(4_000);
    await expect(lab.locks.service.renew(anybody, lease.leaseId, 10)).rejects.toMatchObject({ code: 'ttl_out_of_range', members: { min_ms: 1_000 } });
    expect(await lab.lease(lease.leaseId)).toMatchObject({ ttlMs: 10_000, expiresInMs: 6_000 });
    lab.journal.failing = 1;
    await expect(lab.locks.service.renew(anybody, lease.leaseId, 60_000)).rejects.toMatchObject({ code: 'journal_unavailable' });
    // A sign of life all the same.
    expect(await lab.lease(lease.leaseId)).toMatchObject({ ttlMs: 10_000, expiresInMs: 10_000 });
  });

  it('keeps the place of a waiter for so long', async () => {
    const lab = new LockLab();
    await lab.acquire(A, { ttlMs: 3_600_000 });
    const waiter = await lab.during(lab.acquire(A, { waitMs: 10, ttlMs: 1_000 }), 100, 10);
    expect(await lab.locks.service.renew(anybody, waiter.leaseId, 20_000)).toMatchObject({ state: 'waiting', ttlMs: 20_000 });
    lab.clock.advance(19_000);
    expect((await lab.lease(waiter.leaseId)).state).toBe('waiting');
  });

  it('lives no longer than the session that the client made', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 5_000, clientId: null });
    const lease = await lab.acquire(A, { sessionId, ttlMs: 5_000 });
    expect(await lab.locks.service.renew(anybody, lease.leaseId, 60_000)).toMatchObject({ ttlMs: 60_000, expiresInMs: 5_000 });
  });
});
