import { describe, expect, it } from 'vitest';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { LockEvent, LockReset, WatchScope } from '../../../src/domain/lock-events.ts';
import { COORDINATORS } from '../../support/coordinators.ts';
import { settle } from '../../support/fake-clock.ts';
import { anybody, callerOf, type LockLab, resource } from '../../support/lock-lab.ts';

const [A, B] = [resource('dir/a'), resource('other/b')];
type Seen = LockEvent | LockReset;

/** Follows a scope in the background. */
async function follow(lab: LockLab, scope: WatchScope, afterSeq: number | null = null) {
  const stop = new AbortController();
  const seen: Seen[] = [];
  const events = await lab.locks.events.watch(anybody, scope, afterSeq, stop.signal);
  const done = (async () => {
    for await (const event of events) seen.push(event);
  })();
  await settle();
  return {
    seen,
    types: () => seen.map(({ type }) => type),
    end: () => {
      stop.abort();
      return done;
    },
  };
}

const ofA: WatchScope = { of: 'resource', resource: A };

describe.each(COORDINATORS)('a watch ($coordinator)', ({ LockLab }) => {
  it('tells the transitions of one resource in order, with token and reason, and of no other', async () => {
    const lab = new LockLab();
    const watch = await follow(lab, ofA);
    const first = await lab.acquire(A, { clientId: 'c' });
    await lab.acquire(B);
    const waiter = await lab.during(lab.acquire(A, { waitMs: 1, mode: 'shared' }), 5, 1);
    await lab.release(first.leaseId);
    await lab.clock.advanceAsync(30_000);
    await watch.end();
    expect(watch.types()).toEqual(['granted', 'waiting', 'released', 'granted', 'expired']);
    expect(watch.seen[0]).toMatchObject({
      resource: 'vol/dir/a',
      leaseRef: first.leaseRef,
      clientId: 'c',
      mode: 'exclusive',
      fencingToken: first.fencingToken,
      reason: null,
    });
    expect(watch.seen[4]).toMatchObject({ leaseRef: waiter.leaseRef, reason: 'expired' });
    const seqs = watch.seen.map(({ seq }) => seq);
    expect(seqs).toEqual([...seqs].sort((a, b) => a - b));
  });

  it('hears of nothing before it is durable', async () => {
    const lab = new LockLab();
    const watch = await follow(lab, ofA);
    lab.journal.hold();
    const acquired = lab.acquire(A);
    await settle();
    expect(watch.seen).toEqual([]);
    lab.journal.release();
    await acquired;
    await settle();
    expect(watch.types()).toEqual(['granted']);
    await watch.end();
  });

  it('resumes after the last event it saw, without a gap and without a repetition', async () => {
    const lab = new LockLab();
    const first = await follow(lab, ofA);
    const lease = await lab.acquire(A);
    await settle();
    await first.end();
    await lab.release(lease.leaseId);
    const second = await follow(lab, ofA, first.seen[0]?.seq ?? null);
    await lab.acquire(A);
    await settle();
    await second.end();
    expect(second.types()).toEqual(['released', 'granted']);
  });

  it('that comes from too far back, or from before a restart, begins with the present state', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    const watch = await follow(lab, ofA, 7);
    await lab.release(lease.leaseId);
    await settle();
    await watch.end();
    expect(watch.seen[0]).toMatchObject({ type: 'reset', locks: [{ resource: A, holders: [{ leaseRef: lease.leaseRef }] }] });
    expect(watch.types()).toEqual(['reset', 'released']);
    const after = await lab.restarted();
    const late = await follow(after, ofA, watch.seen[1]?.seq ?? null);
    await late.end();
    expect(late.types()).toEqual(['reset']);
  });

  it('that is too slow for its buffer gets the present state instead', async () => {
    const lab = new LockLab();
    const stop = new AbortController();
    const events = (await lab.locks.events.watch(anybody, ofA, null, stop.signal))[Symbol.asyncIterator]();
    const first = events.next();
    await settle();
    for (let i = 0; i <= LIMITS.lockEventsBufferMax / 2 + 1; i += 1) await lab.release((await lab.acquire(A)).leaseId);
    expect((await first).value).toMatchObject({ type: expect.stringMatching(/granted|reset/) });
    expect((await events.next()).value).toMatchObject({ type: 'reset' });
    stop.abort();
  });

  it('tells that an upgrade waits as it tells of a waiter, and what came of it; of a try nothing', async () => {
    const lab = new LockLab();
    const upgrades = async (work: (leaseId: string, other: string, sessionId: string) => Promise<unknown>): Promise<string[]> => {
      const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 3_600_000, clientId: null });
      const mine = await lab.acquire(A, { mode: 'shared', sessionId, ttlMs: 3_600_000 });
      const other = await lab.acquire(A, { mode: 'shared', ttlMs: 3_600_000 });
      const watch = await follow(lab, ofA);
      await work(mine.leaseId, other.leaseId, sessionId);
      await settle();
      await watch.end();
      await lab.locks.endAll('lost', null);
      return watch.seen.flatMap((event) =>
        event.type !== 'reset' && event.leaseRef === mine.leaseRef ? `${event.type} ${event.mode} ${event.reason}` : [],
      );
    };
    const convert = (leaseId: string, mode: 'shared' | 'exclusive') =>
      lab.locks.service.convert(anybody, leaseId, mode, new AbortController().signal);
    const again = (sessionId: string, maxWaitMs: number | null) =>
      lab.during(lab.acquire(A, { sessionId, waitMs: maxWaitMs, maxWaitMs }), 500, 10).catch(() => undefined);

    const granted = async (mine: string, other: string): Promise<void> => {
      await convert(mine, 'exclusive');
      await lab.release(other);
    };
    expect(await upgrades(granted)).toEqual(['waiting shared upgrade', 'converted exclusive null']);
    const givenUp = async (mine: string): Promise<void> => {
      await convert(mine, 'exclusive');
      await convert(mine, 'shared');
    };
    expect(await upgrades(givenUp)).toEqual(['waiting shared upgrade', 'converted shared upgrade_given_up']);
    const ranOut = (_mine: string, _other: string, sessionId: string) => again(sessionId, 50);
    expect(await upgrades(ranOut)).toEqual(['waiting shared upgrade', 'converted shared max_wait']);
    expect(await upgrades((_mine, _other, sessionId) => again(sessionId, 0))).toEqual([]);
    const ended = async (mine: string): Promise<void> => {
      await convert(mine, 'exclusive');
      await lab.release(mine, { all: true });
    };
    expect(await upgrades(ended)).toEqual(['waiting shared upgrade', 'released shared released']);
    const refusedByJournal = async (mine: string, other: string): Promise<void> => {
      await convert(mine, 'exclusive');
      lab.journal.hold();
      const released = lab.release(other);
      await settle();
      lab.journal.failing = 2;
      lab.journal.release();
      await released.catch(() => undefined);
      await lab.clock.advanceAsync(1_000);
    };
    expect(await upgrades(refusedByJournal)).toEqual(['waiting shared upgrade', 'converted exclusive null']);
    const refused = async (mine: string, other: string): Promise<void> => {
      await convert(mine, 'exclusive');
      lab.reserveGate = () => Promise.reject(new RangeError('beyond the last number'));
      await lab.release(other);
      await settle();
      lab.reserveGate = async () => undefined;
    };
    expect(await upgrades(refused)).toEqual(['waiting shared upgrade', 'converted shared internal']);
    const stopped = async (mine: string): Promise<void> => {
      await convert(mine, 'exclusive');
      await lab.locks.endAll('shutdown', null);
    };
    expect(await upgrades(stopped)).toEqual(['waiting shared upgrade', 'converted shared upgrade_lost']);
  });

  it('of a prefix and of a session hear what concerns them', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 5_000, clientId: null });
    const prefix = await follow(lab, { of: 'prefix', volume: 'vol', pathPrefix: 'dir/' });
    const session = await follow(lab, { of: 'session', sessionId });
    await lab.acquire(A);
    await lab.acquire(B, { sessionId });
    await lab.clock.advanceAsync(5_000);
    await Promise.all([prefix.end(), session.end()]);
    expect(prefix.types()).toEqual(['granted']);
    expect(session.types()).toEqual(['granted', 'expired']);
    expect(JSON.stringify(session.seen, (_, v) => (typeof v === 'bigint' ? String(v) : v))).not.toContain(sessionId);
  });

  it('of a session is for its owner', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(callerOf('ann'), { ttlMs: null, clientId: null });
    const signal = new AbortController().signal;
    await expect(lab.locks.events.watch(callerOf('bob'), { of: 'session', sessionId }, null, signal)).rejects.toMatchObject({ code: 'forbidden' });
    await expect(lab.locks.events.watch(anybody, { of: 'session', sessionId: 's.none' }, null, signal)).rejects.toMatchObject({
      code: 'session_not_found',
    });
  });

  it('tells all that happened before its end, and then ends', async () => {
    const lab = new LockLab();
    const watch = await follow(lab, { of: 'prefix', volume: 'vol', pathPrefix: '' });
    await Promise.all([lab.acquire(A), lab.acquire(B), lab.acquire(resource('c'))]);
    await settle();
    await lab.locks.endAll('lost', null);
    await watch.end();
    expect(watch.types().sort()).toEqual(['granted', 'granted', 'granted', 'lost', 'lost', 'lost']);
  });

  it('that is lost costs no lease', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    const watch = await follow(lab, ofA);
    await watch.end();
    expect((await lab.lease(lease.leaseId)).state).toBe('held');
  });
});

describe.each(COORDINATORS)('the list of locks ($coordinator)', ({ LockLab }) => {
  it('is paged, and filtered by volume, state and age', async () => {
    const lab = new LockLab();
    for (let i = 0; i < 5; i += 1) await lab.acquire(resource(`f${i}`), { ttlMs: 3_600_000 });
    await lab.acquire(resource('g', 'other'), { ttlMs: 3_600_000 });
    await lab.during(lab.acquire(resource('f3'), { waitMs: 1, ttlMs: 3_600_000 }), 5, 1);
    const all = lab.locks.service;
    const first = await all.locks({ volume: 'vol', limit: 3, cursor: null });
    const second = await all.locks({ volume: 'vol', limit: 3, cursor: first.nextCursor });
    expect([...first.locks, ...second.locks].map(({ resource: r }) => r.path)).toEqual(['f0', 'f1', 'f2', 'f3', 'f4']);
    expect(second.nextCursor).toBeNull();
    expect((await all.locks({ state: 'waiting', limit: 10, cursor: null })).locks.map(({ resource: r }) => r.path)).toEqual(['f3']);
    lab.clock.advance(300_000);
    await lab.acquire(resource('young'));
    expect((await all.locks({ olderThanMs: 300_000, limit: 10, cursor: null })).locks).toHaveLength(6);
    await expect(all.locks({ limit: 1, cursor: 'x' })).rejects.toMatchObject({ code: 'invalid_request' });
    expect([...lab.locks.conditions()].filter(({ state, ageMs }) => state === 'held' && ageMs >= 300_000)).toHaveLength(6);
  });

  it('R20: shows what a holder and a waiter say they are for, shortened, and nothing else of their metadata', async () => {
    const lab = new LockLab();
    await lab.acquire(A, { metadata: { reason: 'nightly close', note: 'mine alone' } });
    for (const reason of [`${'x'.repeat(255)}\u{1f600}tail`, 7, '']) await lab.during(lab.acquire(A, { waitMs: 1, metadata: { reason } }), 5, 1);
    const { holders, waiters } = await lab.locks.service.lock(A);
    expect(holders.map(({ reason }) => reason)).toEqual(['nightly close']);
    expect(waiters.map(({ reason }) => reason)).toEqual([`${'x'.repeat(255)}\u{1f600}`, null, null]);
    expect(JSON.stringify(holders)).not.toContain('mine alone');
  });

  it('estimates the wait from how long leases are held', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    expect((await lab.locks.service.lock(A)).waitEstimateMs).toBeNull();
    lab.clock.advance(4_000);
    await lab.release(lease.leaseId);
    expect((await lab.locks.service.lock(A)).waitEstimateMs).toBe(0);
    await lab.acquire(A);
    expect((await lab.locks.service.lock(A)).waitEstimateMs).toBe(4_000);
  });

  it('of a name never locked is empty', async () => {
    expect(await new LockLab().locks.service.lock(resource('x%/y'))).toEqual({
      resource: resource('x%/y'),
      mode: null,
      highWaterMark: null,
      holders: [],
      waiters: [],
      queueLength: 0,
      waitEstimateMs: 0,
      heldBackMs: 0,
      znodePath: '/locks/vol/x%25%2Fy',
      foreign: [],
      fenceLevel: 'incarnation',
    });
  });
});
