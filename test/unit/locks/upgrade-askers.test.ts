import { describe, expect, it } from 'vitest';
import { COORDINATORS } from '../../support/coordinators.ts';
import { settle } from '../../support/fake-clock.ts';
import { anybody, type LockLab, never, resource, tokenOf } from '../../support/lock-lab.ts';

/** Several requests of one session that ask for the same upgrade: it lasts as long as one of them does. */

const [A, B] = [resource('a'), resource('b')];
const LONG = { ttlMs: 3_600_000 };
const convert = (lab: LockLab, leaseId: string, mode: 'shared' | 'exclusive') => lab.locks.service.convert(anybody, leaseId, mode, never);

async function session(lab: LockLab): Promise<string> {
  return (await lab.locks.service.createSession(anybody, { ...LONG, clientId: null })).sessionId;
}

async function twoReaders(lab: LockLab) {
  const sessionId = await session(lab);
  const mine = await lab.acquire(A, { mode: 'shared', sessionId, ...LONG });
  const other = await lab.acquire(A, { mode: 'shared', ...LONG });
  return { sessionId, mine, other };
}

/** Acquires again as the writer, until it is ended by `leave`. */
function upgrading(lab: LockLab, sessionId: string, holdId: string, waitMs: number | null = null, maxWaitMs: number | null = null) {
  const gone = new AbortController();
  const answer = lab.acquire(A, { sessionId, holdId, waitMs, maxWaitMs, ...LONG }, anybody, gone.signal);
  const ended = answer.then(
    ({ mode }) => mode,
    (thrown: Error & { code?: string }) => thrown.code ?? thrown.message,
  );
  return { ended, leave: () => gone.abort(new Error('gone')) };
}

describe.each(COORDINATORS)('an upgrade that several requests of a session ask for ($coordinator)', ({ LockLab }) => {
  it('is not given up by a try, a wait that runs out or a client that goes, while whoever converted polls for it', async () => {
    const lab = new LockLab();
    const { sessionId, mine, other } = await twoReaders(lab);
    expect(await convert(lab, mine.leaseId, 'exclusive')).toMatchObject({ mode: 'shared', queuePosition: 1 });
    expect(await lab.during(upgrading(lab, sessionId, 'try', 0).ended, 100, 10)).toBe('lock_not_acquired');
    expect(await lab.during(upgrading(lab, sessionId, 'short', null, 50).ended, 500, 10)).toBe('lock_not_acquired');
    const gone = upgrading(lab, sessionId, 'gone');
    await settle();
    gone.leave();
    expect(await gone.ended).toBe('gone');
    expect(await lab.lease(mine.leaseId)).toMatchObject({ mode: 'shared', queuePosition: 1, reason: null, holdCount: 1 });
    await lab.release(other.leaseId);
    const upgraded = await lab.lease(mine.leaseId, 1_000);
    expect(upgraded).toMatchObject({ mode: 'exclusive', holdCount: 1 });
    expect(tokenOf(upgraded)).toBeGreaterThan(tokenOf(mine));
  });

  it('goes on until the last of them has gone, and is given up with it', async () => {
    const lab = new LockLab();
    const { sessionId, mine } = await twoReaders(lab);
    const [one, two] = [upgrading(lab, sessionId, 'u1', null, 1_000), upgrading(lab, sessionId, 'u2', null, 8_000)];
    expect(await lab.during(one.ended, 2_000)).toBe('lock_not_acquired');
    expect(await lab.lease(mine.leaseId)).toMatchObject({ mode: 'shared', queuePosition: 1, holdCount: 2 });
    two.leave();
    expect(await two.ended).toBe('gone');
    expect(await lab.lease(mine.leaseId)).toMatchObject({ mode: 'shared', queuePosition: null, reason: null, holdCount: 1 });
    expect((await lab.acquire(A, { mode: 'shared' })).state).toBe('held');
  });

  it('is the grant of the one who is left', async () => {
    const lab = new LockLab();
    const { sessionId, other } = await twoReaders(lab);
    const [one, two] = [upgrading(lab, sessionId, 'u1'), upgrading(lab, sessionId, 'u2')];
    await settle();
    one.leave();
    await settle();
    await lab.release(other.leaseId);
    expect([await one.ended, await two.ended]).toEqual(['gone', 'exclusive']);
  });

  it('is left by whoever releases its hold', async () => {
    const lab = new LockLab();
    const { sessionId, mine, other } = await twoReaders(lab);
    const [one, two] = [upgrading(lab, sessionId, 'u1'), upgrading(lab, sessionId, 'u2')];
    await settle();
    await lab.release(mine.leaseId, { holdId: 'u1' });
    expect(await one.ended).toBe('lock_not_acquired');
    await lab.release(other.leaseId);
    expect(await two.ended).toBe('exclusive');
    expect(await lab.lease(mine.leaseId)).toMatchObject({ mode: 'exclusive', holdCount: 2 });
  });

  it('that ends with the gateway says so to who polls, though the others were answered first', async () => {
    const lab = new LockLab();
    const { sessionId, mine } = await twoReaders(lab);
    await convert(lab, mine.leaseId, 'exclusive');
    const both = [upgrading(lab, sessionId, 'u1'), upgrading(lab, sessionId, 'u2')];
    await settle();
    await lab.locks.endAll('shutdown', null);
    expect(await Promise.all(both.map(({ ended }) => ended))).toEqual(['lock_not_acquired', 'lock_not_acquired']);
    expect(await lab.lease(mine.leaseId)).toMatchObject({ mode: 'shared', queuePosition: null, reason: 'upgrade_lost' });
  });

  it('that gives way to a deadlock says so to each of them, and to who polls', async () => {
    const lab = new LockLab();
    const [s1, s2] = [await session(lab), await session(lab)];
    const mine = await lab.acquire(A, { mode: 'shared', sessionId: s1, priority: 1, ...LONG });
    await lab.acquire(A, { mode: 'shared', sessionId: s2, ...LONG });
    await lab.acquire(B, { sessionId: s1, ...LONG });
    await convert(lab, mine.leaseId, 'exclusive');
    const both = [upgrading(lab, s1, 'u1'), upgrading(lab, s1, 'u2')];
    await settle();
    lab.acquire(B, { sessionId: s2, waitMs: 60_000, ...LONG }).catch(() => undefined);
    await lab.clock.advanceAsync(500);
    expect(await Promise.all(both.map(({ ended }) => ended))).toEqual(['deadlock', 'deadlock']);
    expect(await lab.lease(mine.leaseId)).toMatchObject({ mode: 'shared', queuePosition: null, reason: 'deadlock', holdCount: 1 });
  });

  it('that is decided and not yet durable is the one that is asked for', async () => {
    const lab = new LockLab();
    const { sessionId, mine, other } = await twoReaders(lab);
    await convert(lab, mine.leaseId, 'exclusive');
    lab.journal.hold();
    const released = lab.release(other.leaseId);
    await settle();
    const [again, converted] = [upgrading(lab, sessionId, 'again'), convert(lab, mine.leaseId, 'exclusive')];
    await settle();
    lab.journal.release();
    await released;
    expect([await again.ended, (await converted).mode]).toEqual(['exclusive', 'exclusive']);
    expect(await lab.lease(mine.leaseId)).toMatchObject({ mode: 'exclusive', queuePosition: null });
    expect((await lab.locks.service.lock(A)).queueLength).toBe(0);
  });
});
