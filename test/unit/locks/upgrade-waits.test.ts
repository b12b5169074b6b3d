import { describe, expect, it } from 'vitest';
import { LIMITS } from '../../../src/domain/limits.ts';
import { COORDINATORS } from '../../support/coordinators.ts';
import { settle } from '../../support/fake-clock.ts';
import { heard } from '../../support/heard-events.ts';
import { anybody, LockLab as EmbeddedLab, type LockLab, never, resource, tokenOf } from '../../support/lock-lab.ts';

/** Who acquires as the writer what its session reads, and is answered that it waits, keeps its place like every waiter. */

const [A, B] = [resource('a'), resource('b')];
const LONG = { ttlMs: 3_600_000 };

async function session(lab: LockLab, ttlMs = LONG.ttlMs): Promise<string> {
  return (await lab.locks.service.createSession(anybody, { ttlMs, clientId: null })).sessionId;
}

/** A reader that has asked to be the writer, behind another reader, and was answered after `waitMs`. */
async function waitsToWrite(lab: LockLab, changes: { readonly waitMs?: number; readonly maxWaitMs?: number; readonly ttlMs?: number } = {}) {
  const { ttlMs = LONG.ttlMs, waitMs = 300, maxWaitMs = null } = changes;
  const sessionId = await session(lab);
  const mine = await lab.acquire(A, { mode: 'shared', sessionId, holdId: 'reads', ttlMs });
  const other = await lab.acquire(A, { mode: 'shared', ...LONG });
  const answer = await lab.during(lab.acquire(A, { sessionId, holdId: 'writes', waitMs, maxWaitMs, ttlMs }), 2_000, 50);
  return { sessionId, mine, other, answer };
}

const converts = (lab: LockLab) => lab.journal.records.filter(({ action }) => action === 'lease_convert');
const ended = (lab: LockLab) => converts(lab).map(({ outcome, detail }) => `${outcome} ${detail === undefined ? '' : JSON.parse(detail).reason}`);

describe.each(COORDINATORS)('an upgrade by acquiring again whose wait_ms runs out ($coordinator)', ({ LockLab }) => {
  it('waits on with its hold: what it has stays readable, newer readers stand behind it, and the poll is answered by the grant', async () => {
    const lab = new LockLab();
    const events = await heard(lab);
    const { sessionId, mine, other, answer } = await waitsToWrite(lab);
    expect(answer).toMatchObject({ leaseId: mine.leaseId, state: 'held', mode: 'shared', queuePosition: 1, holdId: 'writes', holdCount: 2 });
    expect(await lab.lease(mine.leaseId)).toMatchObject({ state: 'held', mode: 'shared', queuePosition: 1, reason: null });
    await expect(lab.acquire(A, { mode: 'shared', ...LONG })).rejects.toMatchObject({ code: 'lock_not_acquired' });
    expect((await lab.locks.service.lock(A)).waiters.map(({ leaseRef }) => leaseRef)).toEqual([mine.leaseRef]);
    // A second one of another session would wait for it, and it for that one.
    await expect(lab.locks.service.convert(anybody, other.leaseId, 'exclusive', never)).rejects.toMatchObject({ code: 'upgrade_conflict' });
    const poll = lab.lease(mine.leaseId, 60_000);
    await lab.release(other.leaseId);
    const upgraded = await poll;
    expect(upgraded).toMatchObject({ state: 'held', mode: 'exclusive', queuePosition: null, holdCount: 2 });
    expect(tokenOf(upgraded)).toBeGreaterThan(tokenOf(mine));
    // The same request again is the same hold.
    expect(await lab.acquire(A, { sessionId, holdId: 'writes' })).toMatchObject({ mode: 'exclusive', holdCount: 2 });
    expect(events.slice(2).map(({ type, mode, reason }) => `${type} ${mode} ${reason}`)).toEqual([
      'waiting shared upgrade',
      'released shared released',
      'converted exclusive null',
    ]);
    expect(ended(lab)).toEqual(['committed ']);
  });

  it('of a try is refused at once, and leaves no hold and no wish', async () => {
    const lab = new LockLab();
    const sessionId = await session(lab);
    const mine = await lab.acquire(A, { mode: 'shared', sessionId, ...LONG });
    await lab.acquire(A, { mode: 'shared', ...LONG });
    await expect(lab.during(lab.acquire(A, { sessionId, waitMs: 0 }), 100, 10)).rejects.toMatchObject({ code: 'lock_not_acquired' });
    expect(await lab.lease(mine.leaseId)).toMatchObject({ mode: 'shared', queuePosition: null, holdCount: 1 });
    expect((await lab.acquire(A, { mode: 'shared', ...LONG })).state).toBe('held');
  });

  it('is over with its longest wait: told to who polls and to who watches, and recorded', async () => {
    const lab = new LockLab();
    const { mine, other, answer } = await waitsToWrite(lab, { maxWaitMs: 5_000 });
    expect(answer).toMatchObject({ mode: 'shared', queuePosition: 1 });
    const events = await heard(lab);
    const poll = lab.lease(mine.leaseId, 60_000);
    expect(await lab.during(poll, 6_000)).toMatchObject({ state: 'held', mode: 'shared', queuePosition: null, reason: 'lock_not_acquired' });
    expect(events.map(({ type, mode, reason }) => `${type} ${mode} ${reason}`)).toEqual(['converted shared max_wait']);
    expect(ended(lab)).toEqual(['aborted max_wait']);
    await lab.release(other.leaseId);
    expect(await lab.lease(mine.leaseId)).toMatchObject({ mode: 'shared' });
    // That it was not granted is no end of the lease, nor of what may be asked of it.
    expect(await lab.locks.service.convert(anybody, mine.leaseId, 'exclusive', never)).toMatchObject({ mode: 'exclusive', reason: null });
  });

  it('is refused when max_wait_ms is over before wait_ms', async () => {
    const lab = new LockLab();
    await expect(waitsToWrite(lab, { waitMs: 60_000, maxWaitMs: 200 })).rejects.toMatchObject({ code: 'lock_not_acquired' });
    expect(ended(lab)).toEqual([]);
    expect(lab.journal.decisions()).toContain('lease_refuse:lock_not_acquired');
  });

  it('waits on when the request is sent again with a longest wait that is over sooner', async () => {
    const lab = new LockLab();
    const { sessionId, mine, other } = await waitsToWrite(lab);
    const again = lab.acquire(A, { sessionId, holdId: 'writes', waitMs: 1_000, maxWaitMs: 100 });
    expect(await lab.during(again, 2_000, 50)).toMatchObject({ mode: 'shared', queuePosition: 1, holdCount: 2 });
    // Another hold that would not wait for so long is refused, and the first waits on.
    const third = lab.acquire(A, { sessionId, holdId: 'third', waitMs: 1_000, maxWaitMs: 100 });
    await expect(lab.during(third, 2_000, 50)).rejects.toMatchObject({ code: 'lock_not_acquired' });
    expect(await lab.lease(mine.leaseId)).toMatchObject({ queuePosition: 1, holdCount: 2 });
    await lab.release(other.leaseId);
    await settle();
    expect(await lab.lease(mine.leaseId)).toMatchObject({ mode: 'exclusive', holdCount: 2 });
  });

  it('is given up by the release of its hold, and the lease goes on with the others', async () => {
    const lab = new LockLab();
    const { mine } = await waitsToWrite(lab);
    const events = await heard(lab);
    await lab.release(mine.leaseId, { holdId: 'writes' });
    expect(await lab.lease(mine.leaseId, 60_000)).toMatchObject({ state: 'held', mode: 'shared', queuePosition: null, reason: null, holdCount: 1 });
    expect(events.map(({ type, reason }) => `${type} ${reason}`)).toEqual(['converted upgrade_given_up']);
    expect(ended(lab)).toEqual(['aborted upgrade_given_up']);
    expect((await lab.acquire(A, { mode: 'shared', ...LONG })).state).toBe('held');
  });

  it('goes on for whoever else asks for it when one hold is released, and when the first request is sent again', async () => {
    const lab = new LockLab();
    const { sessionId, mine, other } = await waitsToWrite(lab);
    const again = lab.acquire(A, { sessionId, holdId: 'writes', waitMs: 100, ...LONG });
    expect(await lab.during(again, 1_000, 50)).toMatchObject({ mode: 'shared', queuePosition: 1, holdCount: 2 });
    const second = lab.acquire(A, { sessionId, holdId: 'second', waitMs: 100, ...LONG });
    expect(await lab.during(second, 1_000, 50)).toMatchObject({ mode: 'shared', queuePosition: 1, holdCount: 3 });
    await lab.release(mine.leaseId, { holdId: 'writes' });
    expect(await lab.lease(mine.leaseId)).toMatchObject({ queuePosition: 1, holdCount: 2 });
    await lab.release(other.leaseId);
    expect(await lab.lease(mine.leaseId, 1_000)).toMatchObject({ mode: 'exclusive', holdCount: 2 });
  });

  it('is over with its lease: released, expired because nobody renewed it, or by the end of its session', async () => {
    for (const end of ['release', 'silence', 'session'] as const) {
      const lab = new LockLab();
      const { sessionId, mine, other } = await waitsToWrite(lab, { ttlMs: 5_000 });
      if (end === 'release') await lab.release(mine.leaseId, { all: true });
      if (end === 'session') await lab.locks.service.endSession(anybody, sessionId);
      if (end === 'silence') await lab.clock.advanceAsync(6_000);
      expect(await lab.lease(mine.leaseId, 60_000)).toMatchObject({ state: end === 'silence' ? 'expired' : 'released', queuePosition: null });
      await lab.release(other.leaseId);
      expect((await lab.acquire(A)).state).toBe('held');
    }
  });

  it('keeps its place for as long as the lease is renewed', async () => {
    const lab = new LockLab();
    const { mine, other } = await waitsToWrite(lab, { ttlMs: 5_000 });
    for (let i = 0; i < 5; i += 1) {
      await lab.clock.advanceAsync(4_000);
      expect(await lab.locks.service.renew(anybody, mine.leaseId)).toMatchObject({ mode: 'shared', queuePosition: 1 });
    }
    await lab.release(other.leaseId);
    expect(await lab.lease(mine.leaseId, 1_000)).toMatchObject({ mode: 'exclusive' });
  });

  it('that gives way to a deadlock says so to who polls', async () => {
    const lab = new LockLab();
    const [s1, s2] = [await session(lab), await session(lab)];
    const mine = await lab.acquire(A, { mode: 'shared', sessionId: s1, priority: 1, ...LONG });
    await lab.acquire(A, { mode: 'shared', sessionId: s2, ...LONG });
    await lab.acquire(B, { sessionId: s1, ...LONG });
    await lab.during(lab.acquire(A, { sessionId: s1, waitMs: 100, ...LONG }), 1_000, 50);
    lab.acquire(B, { sessionId: s2, waitMs: 60_000, ...LONG }).catch(() => undefined);
    await lab.clock.advanceAsync(500);
    expect(await lab.lease(mine.leaseId, 60_000)).toMatchObject({ mode: 'shared', queuePosition: null, reason: 'deadlock' });
    expect(lab.journal.decisions()).toContain('deadlock:deadlock');
  });

  it('whose client goes before it is answered leaves neither hold nor wish', async () => {
    const lab = new LockLab();
    const sessionId = await session(lab);
    const mine = await lab.acquire(A, { mode: 'shared', sessionId, ...LONG });
    await lab.acquire(A, { mode: 'shared', ...LONG });
    const gone = new AbortController();
    lab.journal.hold();
    const answer = lab.acquire(A, { sessionId, waitMs: 100, ...LONG }, anybody, gone.signal);
    answer.catch(() => undefined);
    // The wish is on its way into the journal.
    await lab.clock.advanceAsync(200);
    gone.abort(new Error('gone'));
    lab.journal.release();
    await expect(answer).rejects.toThrow('gone');
    expect(await lab.lease(mine.leaseId)).toMatchObject({ mode: 'shared', queuePosition: null, holdCount: 1 });
    expect((await lab.acquire(A, { mode: 'shared', ...LONG })).state).toBe('held');
  });
});

describe.each(COORDINATORS)('the grant of an upgrade that waits, which the journal refuses ($coordinator)', ({ LockLab }) => {
  it('is tried again until the journal takes it; meanwhile the lease is what it was, and first in line', async () => {
    const lab = new LockLab();
    const { mine, other } = await waitsToWrite(lab);
    const waiter = lab.acquire(A, { mode: 'shared', waitMs: 60_000, ...LONG });
    await settle();
    const events = await heard(lab);
    lab.journal.failing = true;
    await lab.release(other.leaseId).catch(() => undefined);
    for (let i = 0; i < 5; i += 1) {
      await lab.clock.advanceAsync(1_000);
      expect(await lab.lease(mine.leaseId)).toMatchObject({ state: 'held', mode: 'shared', queuePosition: 1, reason: null });
    }
    const shown = await lab.locks.service.lock(A);
    expect(shown.holders.map(({ leaseRef }) => leaseRef)).toEqual(expect.arrayContaining([mine.leaseRef, other.leaseRef]));
    expect(shown.waiters[0]?.leaseRef).toBe(mine.leaseRef);
    expect(shown).toMatchObject({ mode: 'shared', queueLength: 2 });
    lab.journal.failing = false;
    await lab.clock.advanceAsync(LIMITS.grantRetryMs);
    const upgraded = await lab.lease(mine.leaseId, 1_000);
    expect(upgraded).toMatchObject({ mode: 'exclusive', queuePosition: null });
    expect(tokenOf(upgraded)).toBeGreaterThan(tokenOf(mine));
    await lab.release(mine.leaseId, { all: true });
    expect((await waiter).state).toBe('held');
    expect(events.map(({ type, mode }) => `${type} ${mode}`)).toEqual([
      'released shared',
      'converted exclusive',
      'released exclusive',
      'granted shared',
    ]);
  });

  it('is waited for by who converted, too, and by a request that stays open', async () => {
    const lab = new LockLab();
    const sessionId = await session(lab);
    const mine = await lab.acquire(A, { mode: 'shared', sessionId, ...LONG });
    const other = await lab.acquire(A, { mode: 'shared', ...LONG });
    await lab.locks.service.convert(anybody, mine.leaseId, 'exclusive', never);
    const open = lab.acquire(A, { sessionId, waitMs: 60_000, ...LONG });
    await settle();
    lab.journal.failing = true;
    await lab.release(other.leaseId).catch(() => undefined);
    await lab.clock.advanceAsync(3_000);
    const poll = lab.lease(mine.leaseId, 60_000);
    lab.journal.failing = false;
    await lab.clock.advanceAsync(LIMITS.grantRetryMs);
    expect([(await open).mode, (await poll).mode]).toEqual(['exclusive', 'exclusive']);
  });

  it('is over when it is given up meanwhile, by any way, and readers come in', async () => {
    for (const way of ['hold', 'convert', 'wait', 'release'] as const) {
      const lab = new LockLab();
      const { mine, other } = await waitsToWrite(lab, way === 'wait' ? { maxWaitMs: 4_000 } : {});
      const reader = lab.acquire(A, { mode: 'shared', waitMs: 60_000, ...LONG });
      await settle();
      lab.journal.failing = true;
      await lab.release(other.leaseId).catch(() => undefined);
      await lab.clock.advanceAsync(2_000);
      if (way === 'hold') await lab.release(mine.leaseId, { holdId: 'writes' }).catch(() => undefined);
      if (way === 'convert') await lab.locks.service.convert(anybody, mine.leaseId, 'shared', never).catch(() => undefined);
      if (way === 'release') await lab.release(mine.leaseId, { all: true }).catch(() => undefined);
      await lab.clock.advanceAsync(4_000);
      lab.journal.failing = false;
      await lab.clock.advanceAsync(2_000);
      expect((await reader).state, way).toBe('held');
      const state = way === 'release' ? 'released' : 'held';
      expect(await lab.lease(mine.leaseId), way).toMatchObject({ state, mode: 'shared', queuePosition: null });
      expect(
        converts(lab).filter(({ outcome }) => outcome === 'committed'),
        way,
      ).toEqual([]);
    }
  });

  it('is told to who asks for the first time', async () => {
    const lab = new LockLab();
    const sessionId = await session(lab);
    const mine = await lab.acquire(A, { mode: 'shared', sessionId, ...LONG });
    lab.journal.failing = 1;
    await expect(lab.acquire(A, { sessionId, waitMs: 1_000 })).rejects.toMatchObject({ code: 'journal_unavailable' });
    expect(await lab.lease(mine.leaseId)).toMatchObject({ mode: 'shared', queuePosition: null, holdCount: 1 });
  });
});

describe('an upgrade that waits, over a restart', () => {
  it('is over, says so to who polls, and is recorded once', async () => {
    const lab = new EmbeddedLab();
    const { mine } = await waitsToWrite(lab);
    const next = await lab.restarted();
    expect(await next.lease(mine.leaseId)).toMatchObject({
      state: 'held',
      mode: 'shared',
      queuePosition: null,
      reason: 'upgrade_lost',
      holdCount: 2,
    });
    expect(ended(next)).toEqual(['aborted upgrade_lost']);
    const third = await next.restarted({ seed: 3 });
    expect(await third.lease(mine.leaseId)).toMatchObject({ state: 'held', mode: 'shared', queuePosition: null });
    expect(ended(third)).toEqual(['aborted upgrade_lost']);
  });
});
