import { describe, expect, it } from 'vitest';
import { asGatewayError } from '../../../src/domain/errors.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { settle } from '../../support/fake-clock.ts';
import { anybody, callerOf, LockLab, never, resource, tokenOf } from '../../support/lock-lab.ts';

const [A, B] = [resource('a'), resource('b')];

describe('a restart', () => {
  it('R33: brings leases and sessions back with a fresh time to live, tokens unchanged, and never mints a number twice', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 10_000, clientId: null });
    const named = await lab.acquire(A, { sessionId, ttlMs: 10_000, holdId: 'h', metadata: { x: 1 } });
    const implied = await lab.acquire(B, { ttlMs: 10_000 });
    lab.clock.advance(9_000);
    const after = await lab.restarted();
    for (const before of [named, implied]) {
      expect(await after.lease(before.leaseId)).toMatchObject({
        state: 'held',
        fencingToken: before.fencingToken,
        expiresInMs: 10_000,
        metadata: before.metadata,
        holdCount: 1,
      });
    }
    expect(await after.sessions()).toHaveLength(2);
    await expect(after.acquire(A)).rejects.toMatchObject({ code: 'lock_not_acquired' });
    after.locks.writeLeases.pin(A, tokenOf(named)).leave();
    await after.release(named.leaseId, { holdId: 'h' });
    expect(tokenOf(await after.acquire(A))).toBeGreaterThan(tokenOf(implied));
    await after.clock.advanceAsync(10_000);
    expect((await after.lease(implied.leaseId)).state).toBe('expired');
  });

  it('does not begin ages anew: of a hold, of its maximum, and in the list', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 3_600_000, clientId: null });
    const [bounded, free] = [
      await lab.acquire(A, { sessionId, ttlMs: 3_600_000, maxHoldMs: 300_000 }),
      await lab.acquire(B, { sessionId, ttlMs: 3_600_000 }),
    ];
    lab.clock.advance(298_000);
    const after = await lab.restarted();
    expect([...after.locks.conditions()].map(({ ageMs }) => ageMs)).toEqual([299_000, 299_000]);
    const older = (olderThanMs: number) => after.locks.service.locks({ olderThanMs, limit: 10, cursor: null });
    expect((await older(299_000)).locks).toHaveLength(2);
    expect((await older(299_001)).locks).toEqual([]);
    after.clock.advance(999);
    expect((await after.lease(bounded.leaseId)).state).toBe('held');
    after.clock.advance(1);
    await settle();
    expect(await after.lease(bounded.leaseId)).toMatchObject({ state: 'expired', reason: 'max_hold' });
    expect(after.journal.marks.get(A.key)?.token).toBeGreaterThan(tokenOf(bounded));
    expect((await after.lease(free.leaseId)).state).toBe('held');
  });

  it('ends a hold whose maximum was over before the restart at once, fenced first', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 60_000, maxHoldMs: 1_000 });
    lab.clock.advance(999);
    const after = await lab.restarted();
    after.clock.advance(0);
    await settle();
    expect(await after.lease(lease.leaseId)).toMatchObject({ state: 'expired', reason: 'max_hold' });
    expect(after.journal.marks.get(A.key)?.token).toBeGreaterThan(tokenOf(lease));
    const fence = after.journal.marks.get(A.key)?.token ?? 0n;
    expect(tokenOf(await after.acquire(A))).toBeGreaterThan(fence);
  });

  it('brings a lease back with the time to live that a renewal gave it', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 2_000 });
    await lab.locks.service.renew(anybody, lease.leaseId, 60_000);
    const after = await lab.restarted();
    expect(await after.lease(lease.leaseId)).toMatchObject({ state: 'held', ttlMs: 60_000, expiresInMs: 60_000 });
    after.clock.advance(59_000);
    expect((await after.lease(lease.leaseId)).state).toBe('held');
  });

  it('goes on above the highest ceiling, also when the journal forgot', async () => {
    const lab = new LockLab();
    await lab.acquire(A);
    const after = await lab.restarted({ above: 5_000_000n, comeBack: false });
    expect(tokenOf(await after.acquire(A))).toBe(5_000_001n);
  });

  it('brings nothing back when the journal is not the one the volumes know', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    const after = await lab.restarted({ comeBack: false });
    expect([lab.journal.leases.size, lab.journal.sessions.size]).toEqual([0, 0]);
    expect(await after.lease(lease.leaseId)).toMatchObject({ state: 'lost', reason: 'lost' });
    await expect(after.locks.service.renew(anybody, lease.leaseId)).rejects.toMatchObject({ code: 'lease_not_held' });
    await after.release(lease.leaseId);
  });

  it.each([true, false])(
    'R24: the lock-delay of a lease that is lost at the start keeps others out, also over another start (the journal is the known one: %s)',
    async (comeBack) => {
      const lab = new LockLab();
      const lease = await lab.acquire(A, { lockDelayMs: 20_000 });
      // Its session is not in the journal: it cannot come back.
      lab.journal.sessions.clear();
      const after = await lab.restarted({ comeBack });
      expect(await after.lease(lease.leaseId)).toMatchObject({ state: 'lost' });
      await expect(after.acquire(A)).rejects.toMatchObject({ code: 'lock_not_acquired' });
      const again = await after.restarted({ seed: 3 });
      await expect(again.acquire(A)).rejects.toMatchObject({ code: 'lock_not_acquired' });
      await again.clock.advanceAsync(20_000);
      expect((await again.acquire(A)).state).toBe('held');
      expect(lab.journal.lockDelays.size).toBe(0);
    },
  );

  it('answers a waiter of before that the journal did not take with lost, for an hour; an id of nobody is not found', async () => {
    const lab = new LockLab();
    await lab.acquire(A);
    lab.journal.failing = 1;
    const waiter = await lab.during(lab.acquire(A, { waitMs: 1 }), 10, 1);
    const after = await lab.restarted();
    const known = { leaseId: waiter.leaseId, leaseRef: waiter.leaseRef, state: 'lost', reason: 'lost' };
    const unknown = { resources: [], mode: null, sessionId: null, priority: null, ttlMs: null, clientId: null, cycle: null };
    expect(await after.lease(waiter.leaseId)).toMatchObject({ ...known, ...unknown });
    await expect(after.lease('l!')).rejects.toMatchObject({ code: 'lease_not_found' });
    // Of the form, from before, and of nobody.
    const [epoch = ''] = waiter.leaseId.split('.');
    for (const invented of [`${epoch}.${'A'.repeat(32)}`, `l0.${waiter.leaseId.slice(-32)}`, `${waiter.leaseId.slice(0, -1)}~`]) {
      await expect(after.lease(invented)).rejects.toMatchObject({ code: 'lease_not_found' });
      await expect(after.release(invented)).rejects.toMatchObject({ code: 'lease_not_found' });
    }
    after.clock.advance(3_600_001);
    await expect(after.lease(waiter.leaseId)).rejects.toMatchObject({ code: 'lease_not_found' });
  });

  it('ends an upgrade that waited like every wait, and says so to who polls the lease, until it converts again', async () => {
    const lab = new LockLab();
    const mine = await lab.acquire(A, { mode: 'shared', ttlMs: 60_000 });
    const other = await lab.acquire(A, { mode: 'shared', ttlMs: 60_000 });
    expect(await lab.locks.service.convert(anybody, mine.leaseId, 'exclusive', never)).toMatchObject({ mode: 'shared', queuePosition: 1 });
    const after = await lab.restarted();
    expect(await after.lease(mine.leaseId, 60_000)).toMatchObject({
      state: 'held',
      mode: 'shared',
      fencingToken: mine.fencingToken,
      queuePosition: null,
      reason: 'upgrade_lost',
    });
    expect((await after.lease(other.leaseId)).reason).toBeNull();
    expect(await after.locks.service.convert(anybody, mine.leaseId, 'exclusive', never)).toMatchObject({ queuePosition: 1, reason: null });
    await after.release(other.leaseId);
    expect(await after.lease(mine.leaseId, 1_000)).toMatchObject({ mode: 'exclusive', reason: null });
    const last = await after.restarted({ seed: 3 });
    expect(await last.lease(mine.leaseId)).toMatchObject({ mode: 'exclusive', reason: null });
  });

  it.each([
    ['given up', async (lab: LockLab, leaseId: string) => lab.locks.service.convert(anybody, leaseId, 'shared', never)],
    ['refused for a deadlock', async (lab: LockLab) => lab.clock.advanceAsync(500)],
  ])('says nothing of an upgrade that was %s before', async (_, over) => {
    const lab = new LockLab();
    const sessions = await Promise.all([1, 2].map(() => lab.locks.service.createSession(anybody, { ttlMs: 600_000, clientId: null })));
    const [one, two] = sessions.map(({ sessionId }) => ({ sessionId, ttlMs: 600_000 }));
    const mine = await lab.acquire(A, { ...one, mode: 'shared', priority: 1 });
    await lab.acquire(A, { ...two, mode: 'shared' });
    await lab.acquire(B, { ...one });
    lab.acquire(B, { ...two, waitMs: 60_000 }).catch(() => undefined);
    await settle();
    await lab.locks.service.convert(anybody, mine.leaseId, 'exclusive', never);
    await over(lab, mine.leaseId);
    await settle();
    const after = await lab.restarted();
    expect(await after.lease(mine.leaseId)).toMatchObject({ state: 'held', mode: 'shared', reason: null });
  });

  it('does not say that an upgrade waits which the journal refused to keep', async () => {
    const lab = new LockLab();
    const [mine, other] = [await lab.acquire(A, { mode: 'shared' }), await lab.acquire(A, { mode: 'shared' })];
    lab.journal.failing = 1;
    await expect(lab.locks.service.convert(anybody, mine.leaseId, 'exclusive', never)).rejects.toMatchObject({ code: 'journal_unavailable' });
    expect((await lab.locks.service.lock(A)).waiters).toEqual([]);
    await lab.release(other.leaseId);
    expect(await lab.lease(mine.leaseId)).toMatchObject({ mode: 'shared', queuePosition: null });
  });

  it('forgets the lease of a token-less write: a restart must not lock a file for nobody', async () => {
    const lab = new LockLab();
    const implicit = await lab.locks.writeLeases.acquireImplicit({
      resources: [A],
      caller: anybody,
      waitMs: 0,
      signal: new AbortController().signal,
    });
    await lab.journal.commit(implicit.grantOps);
    const after = await lab.restarted();
    expect(tokenOf(await after.acquire(A))).toBeGreaterThan(implicit.lease.token);
  });

  it('keeps only the newer of two leases that claim one resource', async () => {
    const lab = new LockLab();
    const old = await lab.acquire(A);
    const stored = lab.journal.leases.get(old.leaseRef);
    await lab.release(old.leaseId);
    const current = await lab.acquire(A);
    // As if the end had been lost.
    if (stored !== undefined) lab.journal.leases.set(old.leaseRef, stored);
    const session = [...lab.journal.sessions.values()][0];
    if (session !== undefined && stored !== undefined) lab.journal.sessions.set('x', { ...session, sessionRef: 'x', sessionId: stored.sessionId });
    const after = await lab.restarted();
    expect((await after.lease(current.leaseId)).state).toBe('held');
    expect((await after.lease(old.leaseId)).state).toBe('lost');
  });

  it('gives each session of a storm one turn: whoever comes when it was told to is let in, ten thousand of one client in batches, too', async () => {
    const lab = new LockLab();
    const made = await Promise.all(Array.from({ length: 10_000 }, () => lab.locks.service.createSession(anybody, { ttlMs: 30_000, clientId: null })));
    const after = await lab.restarted();
    const startMs = after.clock.monotonicMs();
    let [coming, roundsLeft, admitted] = [made.map(({ sessionId }) => sessionId), 3, 0];
    while (coming.length > 0 && roundsLeft > 0) {
      const refused: string[] = [];
      let retryMs = 0;
      for (const sessionId of coming) {
        const { retryAfterMs = 0 } = await after.locks.service.heartbeat(anybody, sessionId).then(
          () => ({ retryAfterMs: 0 }),
          (thrown: unknown) => asGatewayError(thrown),
        );
        if (retryAfterMs > 0) refused.push(sessionId);
        retryMs = Math.max(retryMs, retryAfterMs);
      }
      admitted += coming.length - refused.length;
      const spentS = (after.clock.monotonicMs() - startMs) / 1_000;
      expect(admitted).toBeLessThanOrEqual(LIMITS.reconnectBurstMax + LIMITS.reconnectsPerSecondMax * spentS + 1);
      // A batch is told one time for all of them, in whole seconds: the latest turn of any, and a jitter.
      expect(retryMs).toBeLessThanOrEqual((made.length / LIMITS.reconnectsPerSecondMax) * 1_000 + LIMITS.reconnectJitterMs);
      after.clock.advance(Math.ceil(retryMs / 1_000) * 1_000);
      coming = refused;
      roundsLeft -= 1;
    }
    expect([coming.length, roundsLeft]).toEqual([0, 1]);
    expect(await after.sessions()).toHaveLength(10_000);
  });

  it('takes 10,000 clients that come back at once in at a bounded rate, each at a time of its own, and no lease of theirs is lost', async () => {
    const lab = new LockLab();
    const ttlMs = 12_000;
    const leases = await Promise.all(Array.from({ length: 10_000 }, (_, i) => lab.acquire(resource(`r/${i}`), { ttlMs })));
    const after = await lab.restarted();
    const startMs = after.clock.monotonicMs();
    let waiting = leases.map(({ leaseId }) => ({ leaseId, dueMs: startMs }));
    let letIn = 0;
    const told = new Set<number>();
    while (waiting.length > 0) {
      const nowMs = after.clock.monotonicMs();
      expect(nowMs - startMs).toBeLessThan(ttlMs);
      const again: typeof waiting = [];
      for (const client of waiting) {
        if (client.dueMs > nowMs) {
          again.push(client);
          continue;
        }
        const refusal: unknown = await after.locks.service.renew(anybody, client.leaseId).catch((thrown: unknown) => thrown);
        const { code, retryAfterMs = 0 } = refusal as { readonly code?: string; readonly retryAfterMs?: number };
        if (code === undefined) letIn += 1;
        else {
          expect(code).toBe('overloaded');
          told.add(retryAfterMs);
          again.push({ ...client, dueMs: nowMs + retryAfterMs });
        }
      }
      expect(letIn).toBeLessThanOrEqual(LIMITS.reconnectBurstMax + (LIMITS.reconnectsPerSecondMax * (nowMs - startMs)) / 1_000 + 1);
      waiting = again;
      after.clock.advance(500);
    }
    // 9,000 turns, spread over seconds, and none of them a common one.
    expect(told.size).toBeGreaterThan(3_000);
    expect([...after.locks.conditions()].filter(({ state }) => state === 'held')).toHaveLength(10_000);
    for (const [i, { leaseId, fencingToken }] of leases.entries())
      if (i % 10 === 0) expect((await after.lease(leaseId)).fencingToken).toBe(fencingToken);
    expect(after.journal.decisions().filter((decision) => decision !== 'lease_grant')).toEqual([]);
  }, 60_000);

  it('takes a storm of returning sessions in at a bounded rate, tells when to come again, and loses no live lease', async () => {
    const lab = new LockLab();
    const count = LIMITS.reconnectBurstMax + 3_000;
    const sessions = await Promise.all(
      Array.from({ length: count }, () => lab.locks.service.createSession(anybody, { ttlMs: 10_000, clientId: null })),
    );
    for (const [i, { sessionId }] of sessions.entries()) if (i % 100 === 0) await lab.acquire(resource(`r/${i}`), { sessionId, ttlMs: 10_000 });
    const after = await lab.restarted();
    let back = sessions.map(({ sessionId }) => ({ sessionId, dueMs: after.clock.monotonicMs() }));
    let busiest = 0;
    for (let turn = 0; back.length > 0; turn += 1) {
      expect(turn).toBeLessThan(2_000);
      const again: typeof back = [];
      let accepted = 0;
      for (const client of back) {
        if (client.dueMs > after.clock.monotonicMs()) {
          again.push(client);
          continue;
        }
        const refusal: unknown = await after.locks.service.heartbeat(anybody, client.sessionId).then(
          () => null,
          (thrown: unknown) => thrown,
        );
        if (refusal === null) {
          accepted += 1;
          continue;
        }
        expect(refusal).toMatchObject({ code: 'overloaded', retryAfterMs: expect.any(Number) });
        again.push({ ...client, dueMs: after.clock.monotonicMs() + (refusal as { retryAfterMs: number }).retryAfterMs });
      }
      if (turn > 0) busiest = Math.max(busiest, accepted);
      back = again;
      after.clock.advance(100);
    }
    expect(busiest).toBeLessThanOrEqual(LIMITS.reconnectBurstMax);
    expect(await after.sessions()).toHaveLength(count);
    expect((await after.locks.service.locks({ limit: 1_000, cursor: null })).locks).toHaveLength(count / 100);
  });
});

describe('the end of everything', () => {
  it('on shutdown answers the waiters, refuses newcomers, and leaves holders to the next start', async () => {
    const lab = new LockLab();
    const held = await lab.acquire(A);
    const wait = lab.acquire(A, { waitMs: 60_000 });
    wait.catch(() => undefined);
    await settle();
    await lab.locks.endAll('shutdown', null);
    await expect(wait).rejects.toMatchObject({ code: 'lock_not_acquired', members: { state: 'lost' } });
    await expect(lab.acquire(B)).rejects.toMatchObject({ code: 'draining' });
    const after = await lab.restarted();
    expect((await after.lease(held.leaseId)).state).toBe('held');
  });

  it('on loss voids every lease of the volume, tells its sessions, and touches no other volume', async () => {
    const lab = new LockLab();
    const other = resource('a', 'other');
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: null, clientId: null });
    const lease = await lab.acquire(A, { sessionId });
    const spared = await lab.acquire(other, { sessionId });
    await lab.locks.endAll('lost', 'vol');
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'lost', reason: 'lost' });
    expect((await lab.lease(spared.leaseId)).state).toBe('held');
    expect((await lab.locks.service.heartbeat(anybody, sessionId)).lost).toEqual([lease.leaseId]);
  });

  it('a rebase voids all and goes on above the base', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    await lab.locks.rebase(9_000n);
    expect((await lab.lease(lease.leaseId)).state).toBe('lost');
    expect(tokenOf(await lab.acquire(A))).toBe(9_001n);
  });
});

describe('a journal that refuses', () => {
  it('means that the grant did not happen: 503, and the next one tries', async () => {
    const lab = new LockLab();
    lab.journal.failing = 1;
    await expect(lab.acquire(A)).rejects.toMatchObject({ code: 'journal_unavailable' });
    expect((await lab.acquire(A)).state).toBe('held');
  });

  it('means that nobody is told of an end; the lease writes no more, and the next release makes it durable', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    lab.journal.failing = true;
    await expect(lab.release(lease.leaseId)).rejects.toMatchObject({ code: 'outcome_unknown' });
    expect(() => lab.locks.writeLeases.pin(A, tokenOf(lease))).toThrowError(expect.objectContaining({ code: 'lease_ended' }));
    await expect(lab.lease(lease.leaseId)).rejects.toMatchObject({ code: 'journal_unavailable' });
    lab.journal.failing = false;
    await lab.release(lease.leaseId);
    expect(lab.journal.ended.get(lease.leaseRef)?.reason).toBe('released');
    expect(lab.journal.decisions()).toEqual(['lease_grant', 'lease_release']);
  });

  it('a refused end travels with the next grant, so the old lease cannot come back beside the new one', async () => {
    const lab = new LockLab();
    const old = await lab.acquire(A);
    lab.journal.failing = 1;
    await expect(lab.release(old.leaseId)).rejects.toMatchObject({ code: 'outcome_unknown' });
    const implicit = await lab.locks.writeLeases.acquireImplicit({
      resources: [A],
      caller: callerOf(null),
      waitMs: 0,
      signal: new AbortController().signal,
    });
    expect(implicit.grantOps.map(({ op }) => op)).toEqual(['lease_end', 'raise_mark']);
    await lab.journal.commit(implicit.grantOps);
    expect(lab.journal.leases.size).toBe(0);
  });

  it('an end that is still under way travels with the next grant as well', async () => {
    const lab = new LockLab();
    const old = await lab.acquire(A);
    lab.journal.hold();
    const released = lab.release(old.leaseId);
    const next = lab.acquire(A);
    await settle();
    lab.journal.release();
    await Promise.all([released, next]);
    expect(lab.journal.units.at(-1)?.map(({ op }) => op)).toEqual(['lease_end', 'raise_mark', 'session_put', 'lease_put', 'audit']);
  });
});
