import { expect, it } from 'vitest';
import type { AcquireRequest, LeaseView } from '../../src/domain/lock-api.ts';
import type { Resource } from '../../src/domain/resource.ts';
import { settle } from './fake-clock.ts';
import { anybody, callerOf, type LockLab, resource, tokenOf } from './lock-lab.ts';

const [FIRST, SECOND, BUSY] = [resource('sessions/first'), resource('sessions/second'), resource('sessions/busy')];
const root = callerOf('root', null, ['admin']);
const MINUTE = 60_000;

/** Ways in which one of several leases of a session ends. Each takes what made the session, and leaves nothing of it. */
const ENDS: readonly [string, (lab: LockLab, made: LeaseView) => Promise<unknown>][] = [
  ['is released', (lab, { leaseId }) => lab.release(leaseId)],
  ['is broken', (lab) => lab.locks.breakLock(root, { resource: FIRST, reason: 'stuck', graceMs: 0 })],
  ['is broken after a grace', (lab) => broken(lab, 2_000)],
];

/** What every coordinator must do about a session that was made for a lease (its `session_id` comes with the answer), and is named again. */
export function sessionsContract(make: () => LockLab): void {
  it.each(ENDS)('a session that a lease made goes on with its other leases when that one %s', async (_how, end) => {
    const lab = make();
    const made = await taken(lab, FIRST, { ttlMs: MINUTE });
    const { sessionId } = made;
    const other = await lab.acquire(SECOND, { sessionId, ttlMs: MINUTE });
    await end(lab, made);
    await goesOn(lab, sessionId, other);
  });

  it('a session that a lease made is not over by a try that fails, a wait that is cancelled, that runs out, or whose client goes', async () => {
    const lab = make();
    await lab.acquire(BUSY, { ttlMs: 60 * MINUTE });
    const { sessionId, ...kept } = await taken(lab, FIRST, { ttlMs: MINUTE });
    await expect(lab.acquire(BUSY, { sessionId })).rejects.toMatchObject({ code: 'lock_not_acquired' });
    const waits = await lab.during(lab.acquire(BUSY, { sessionId, waitMs: 1, ttlMs: MINUTE }), 10, 1);
    await lab.release(waits.leaseId);
    await expect(lab.during(lab.acquire(BUSY, { sessionId, waitMs: null, maxWaitMs: 100 }), 1_000, 10)).rejects.toMatchObject({
      code: 'lock_not_acquired',
    });
    const gone = new AbortController();
    const left = lab.acquire(BUSY, { sessionId, waitMs: MINUTE }, anybody, gone.signal);
    await settle();
    gone.abort(new Error('gone'));
    await expect(left).rejects.toThrow('gone');
    await goesOn(lab, sessionId, { sessionId, ...kept });
  });

  it('a wait keeps a session that a lease made, and what is granted to the wait', async () => {
    const lab = make();
    const busy = await lab.acquire(BUSY, { ttlMs: 60 * MINUTE });
    const made = await taken(lab, FIRST, { ttlMs: MINUTE });
    const waits = await lab.during(lab.acquire(BUSY, { sessionId: made.sessionId, waitMs: 1, ttlMs: MINUTE }), 10, 1);
    await lab.release(made.leaseId);
    expect(await lab.locks.service.heartbeat(anybody, made.sessionId)).toMatchObject({ lost: [] });
    await lab.release(busy.leaseId);
    await goesOn(lab, made.sessionId, await lab.lease(waits.leaseId, 1_000));
  });

  it('a session that a lease made ends with the last of its leases, in the unit of that end; whoever names it then begins anew', async () => {
    const lab = make();
    const made = await taken(lab, FIRST, { ttlMs: MINUTE });
    const other = await lab.acquire(SECOND, { sessionId: made.sessionId, ttlMs: MINUTE });
    await lab.release(made.leaseId);
    expect(lab.journal.sessions.size).toBe(1);
    await lab.release(other.leaseId);
    expect([lab.journal.sessions.size, lab.journal.leases.size, (await lab.sessions()).length]).toEqual([0, 0, 0]);
    expect(lab.journal.units.at(-1)?.map(({ op }) => op)).toEqual(['lease_end', 'session_end', 'audit']);
    await expect(lab.locks.service.heartbeat(anybody, made.sessionId)).rejects.toMatchObject({ code: 'session_not_found' });
    await expect(lab.acquire(FIRST, { sessionId: made.sessionId })).rejects.toMatchObject({ code: 'session_not_found' });
  });

  it('a session that a lease made ends with a wait that is withdrawn, when nothing else is left in it', async () => {
    const lab = make();
    await lab.acquire(BUSY, { ttlMs: 60 * MINUTE });
    const made = await taken(lab, FIRST, { ttlMs: MINUTE });
    const wait = lab.acquire(BUSY, { sessionId: made.sessionId, waitMs: null, maxWaitMs: 1_000 });
    await settle();
    await lab.release(made.leaseId);
    await expect(lab.during(wait, 2_000, 100)).rejects.toMatchObject({ code: 'lock_not_acquired' });
    await settle();
    expect([lab.journal.sessions.size, (await lab.sessions()).length]).toEqual([1, 1]);
    await expect(lab.locks.service.heartbeat(anybody, made.sessionId)).rejects.toMatchObject({ code: 'session_not_found' });
  });

  it('a session that a lease made ends at once, with all that it has, when its client or an administrator ends it, and its end may be asked for again', async () => {
    const lab = make();
    for (const by of ['client', 'administrator']) {
      const made = await taken(lab, FIRST, { ttlMs: MINUTE });
      const other = await lab.acquire(SECOND, { sessionId: made.sessionId, ttlMs: MINUTE });
      if (by === 'client') for (let i = 0; i < 2; i += 1) await lab.locks.service.endSession(anybody, made.sessionId);
      else await lab.locks.service.endSessionByRef(root, (await lab.sessions())[0]?.sessionRef ?? '');
      for (const { leaseId } of [made, other]) expect(await lab.lease(leaseId)).toMatchObject({ reason: 'session_ended' });
      await expect(lab.locks.service.heartbeat(anybody, made.sessionId)).rejects.toMatchObject({ code: 'session_ended' });
      expect([lab.journal.sessions.size, lab.journal.leases.size]).toEqual([0, 0]);
    }
  });

  it('a lease that gets another time to live does not cut the others of its session short', async () => {
    const lab = make();
    const made = await taken(lab, FIRST, { ttlMs: MINUTE });
    const other = await lab.acquire(SECOND, { sessionId: made.sessionId, ttlMs: MINUTE });
    await lab.locks.service.renew(anybody, other.leaseId, 5_000);
    await lab.clock.advanceAsync(10_000);
    expect([(await lab.lease(made.leaseId)).state, (await lab.lease(other.leaseId)).reason]).toEqual(['held', 'expired']);
    const third = await lab.acquire(BUSY, { sessionId: made.sessionId, ttlMs: MINUTE });
    expect(await lab.locks.service.renew(anybody, third.leaseId, 10 * MINUTE)).toMatchObject({ expiresInMs: 10 * MINUTE });
  });

  it('a renewal that asks for the time which its lease has already makes the session live as long', async () => {
    const lab = make();
    const made = await taken(lab, FIRST, { ttlMs: 5_000 });
    const other = await lab.acquire(SECOND, { sessionId: made.sessionId, ttlMs: MINUTE });
    expect(await lab.locks.service.renew(anybody, other.leaseId, MINUTE)).toMatchObject({ ttlMs: MINUTE, expiresInMs: MINUTE });
    await lab.clock.advanceAsync(30_000);
    expect((await lab.lease(other.leaseId)).state).toBe('held');
  });

  it('a lease that outlives the session by its own time ends with it, and says so', async () => {
    const lab = make();
    const made = await taken(lab, FIRST, { ttlMs: 5_000 });
    const other = await lab.acquire(SECOND, { sessionId: made.sessionId, ttlMs: MINUTE });
    await lab.clock.advanceAsync(5_000);
    expect(await lab.lease(made.leaseId)).toMatchObject({ state: 'expired', reason: 'expired' });
    expect(await lab.lease(other.leaseId)).toMatchObject({ state: 'expired', reason: 'session_ended' });
    expect(lab.journal.sessions.size).toBe(0);
  });

  it('a session whose end a commit section delays is told so for now, and nobody waits for long', async () => {
    const lab = make();
    for (const explicit of [true, false]) {
      const own = explicit ? (await lab.locks.service.createSession(anybody, { ttlMs: MINUTE, clientId: null })).sessionId : null;
      const made = await taken(lab, FIRST, { sessionId: own, ttlMs: MINUTE });
      const { sessionId } = made;
      await lab.acquire(SECOND, { sessionId, ttlMs: MINUTE });
      const pin = lab.locks.writeLeases.pin(FIRST, tokenOf(made));
      const end = () => lab.during(lab.locks.service.endSession(anybody, sessionId), 11_000, 500);
      await expect(end()).rejects.toMatchObject({ code: 'outcome_unknown', retryAfterMs: expect.any(Number) });
      for (const asked of [(): Promise<unknown> => lab.locks.service.heartbeat(anybody, sessionId), () => lab.acquire(BUSY, { sessionId })])
        await expect(lab.during(asked(), 500, 50)).rejects.toMatchObject({ code: 'volume_unavailable', retryAfterMs: expect.any(Number) });
      pin.leave();
      await end();
      await expect(lab.locks.service.heartbeat(anybody, sessionId)).rejects.toMatchObject({ code: 'session_ended' });
      expect([lab.journal.sessions.size, lab.journal.leases.size]).toEqual([0, 0]);
    }
  });

  it('a session whose end the journal is slow to take is told so for now, too', async () => {
    const lab = make();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 5_000, clientId: null });
    lab.journal.hold();
    await lab.clock.advanceAsync(5_000);
    await expect(lab.during(lab.locks.service.heartbeat(anybody, sessionId), 500, 50)).rejects.toMatchObject({ code: 'journal_unavailable' });
    lab.journal.release();
    await expect(lab.locks.service.heartbeat(anybody, sessionId)).rejects.toMatchObject({ code: 'session_ended' });
  });
}

/** Held, and with the session that it has. */
async function taken(lab: LockLab, where: Resource, changes: Partial<AcquireRequest>): Promise<LeaseView & { readonly sessionId: string }> {
  const lease = await lab.acquire(where, changes);
  if (lease.sessionId === null) throw new Error('no session');
  return { ...lease, sessionId: lease.sessionId };
}

async function broken(lab: LockLab, graceMs: number): Promise<void> {
  await lab.locks.breakLock(root, { resource: FIRST, reason: 'stuck', graceMs });
  await lab.clock.advanceAsync(graceMs);
}

/** Everybody who names the session is answered, heartbeats alone keep what is left in it, and the journal knows both. */
async function goesOn(lab: LockLab, sessionId: string, left: LeaseView): Promise<void> {
  for (let i = 0; i < 5; i += 1) {
    await lab.clock.advanceAsync(40_000);
    expect(await lab.locks.service.heartbeat(anybody, sessionId)).toMatchObject({ expiresInMs: MINUTE });
  }
  expect(await lab.lease(left.leaseId)).toMatchObject({ state: 'held', fencingToken: left.fencingToken });
  expect((await lab.sessions()).find((session) => session.sessionId === sessionId)).toMatchObject({ state: 'live', leaseCount: 1 });
  expect([...lab.journal.sessions.values()].map((stored) => stored.sessionId)).toContain(sessionId);
  expect((await lab.acquire(left.resources, { sessionId })).fencingToken).toBe(left.fencingToken);
  const third = await lab.acquire(resource('sessions/third'), { sessionId });
  await lab.release(third.leaseId);
  lab.locks.writeLeases.pin(left.resources[0] ?? FIRST, tokenOf(left)).leave();
}
