import { describe, expect, it } from 'vitest';
import type { LeaseMode } from '../../../src/domain/lease.ts';
import { settle } from '../../support/fake-clock.ts';
import { heard } from '../../support/heard-events.ts';
import { anybody, callerOf, LockLab, never, request, resource, tokenOf } from '../../support/lock-lab.ts';

/** Nothing that is only in memory is told, whoever is asked; and what a 503 says of it is true. */

const A = resource('a');
const root = callerOf('root', null, ['admin']);
const UNAVAILABLE = { code: 'journal_unavailable' };

async function refused(work: Promise<unknown>): Promise<{ readonly code: string; readonly members: Readonly<Record<string, unknown>> }> {
  return (await work.then(
    () => ({ code: 'it went through', members: {} }),
    (thrown: unknown) => thrown,
  )) as { readonly code: string; readonly members: Readonly<Record<string, unknown>> };
}

function convert(lab: LockLab, leaseId: string, mode: LeaseMode) {
  return lab.locks.service.convert(anybody, leaseId, mode, never);
}

function breakNow(lab: LockLab) {
  return lab.locks.breakLock(root, { resource: A, reason: 'stuck', graceMs: 0 });
}

/** A write is refused in its commit section: when may it be told? */
function toldToWrite(lab: LockLab, token: ReturnType<typeof tokenOf>, signal = never) {
  expect(() => lab.locks.writeLeases.pin(A, token)).toThrowError(expect.objectContaining({ name: 'GatewayError' }));
  return lab.locks.writeLeases.refusalTold(A, token, signal);
}

const ENDS: readonly [string, (lab: LockLab, leaseId: string) => Promise<unknown>, object, { readonly brokenAgain: string }][] = [
  ['a release', (lab, leaseId) => lab.release(leaseId), { members: { lease_id: expect.any(String) } }, { brokenAgain: 'journal_unavailable' }],
  ['a break', breakNow, { members: { resource: 'vol/a', operation_id: expect.any(String) } }, { brokenAgain: 'outcome_unknown' }],
];

describe('an end that the journal refuses', () => {
  it.each(ENDS)('is outcome_unknown to %s, for it has taken effect: the lease writes no more', async (_what, end, members) => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    lab.journal.failing = true;
    expect(await refused(end(lab, lease.leaseId))).toMatchObject({ code: 'outcome_unknown', ...members });
    expect(() => lab.locks.writeLeases.pin(A, tokenOf(lease))).toThrow();
  });

  it.each(ENDS)('is not told to a write, nor by anything else, after %s, until the journal has it', async (_what, end, _members, { brokenAgain }) => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    lab.journal.failing = true;
    const events = await heard(lab);
    await refused(end(lab, lease.leaseId));
    await expect(toldToWrite(lab, tokenOf(lease))).rejects.toMatchObject(UNAVAILABLE);
    await expect(lab.lease(lease.leaseId)).rejects.toMatchObject(UNAVAILABLE);
    await expect(lab.locks.service.renew(anybody, lease.leaseId)).rejects.toMatchObject(UNAVAILABLE);
    await expect(lab.locks.service.leaseWithToken(anybody, A, tokenOf(lease))).rejects.toMatchObject(UNAVAILABLE);
    expect((await lab.locks.service.lock(A)).holders).toMatchObject([{ leaseRef: lease.leaseRef }]);
    const listed = await lab.locks.service.locks({ limit: 10, cursor: null });
    expect(listed.locks).toMatchObject([{ resource: A, holders: [{ leaseRef: lease.leaseRef }] }]);
    await expect(breakNow(lab)).rejects.toMatchObject({ code: brokenAgain });
    await expect(lab.locks.endLease(root, lease.leaseRef, 'stuck')).rejects.toMatchObject(UNAVAILABLE);
    expect(events).toEqual([]);
  });

  it.each(ENDS)('is durable before it is told to a write that comes first when the journal is well again, after %s', async (_what, end) => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    lab.journal.failing = true;
    await refused(end(lab, lease.leaseId));
    lab.journal.failing = false;
    await toldToWrite(lab, tokenOf(lease));
    const after = await lab.restarted();
    expect((await after.lease(lease.leaseId)).state).not.toBe('held');
    expect(() => after.locks.writeLeases.pin(A, tokenOf(lease))).toThrow();
  });

  it('of a break is told to a second break as to the first, by the same operation, and done is what it says then; only the next one finds nobody', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    lab.journal.failing = true;
    const first = await refused(breakNow(lab));
    const second = await refused(breakNow(lab));
    expect([second.code, second.members]).toEqual(['outcome_unknown', first.members]);
    expect(first).toMatchObject({ message: expect.stringContaining('GET /v1/operations/{operation_id}') });
    lab.journal.failing = false;
    const { operation_id: operationId } = first.members;
    expect(await breakNow(lab)).toMatchObject({ state: 'broken', leases: [{ leaseRef: lease.leaseRef, operationId }] });
    expect(lab.journal.decisions()).toEqual(['lease_grant', 'lease_break']);
    expect(await refused(breakNow(lab))).toMatchObject({ code: 'not_found' });
  });

  it('of a fix is told to the same fix as the first time, and done is what it says then', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    const fix = () => lab.locks.endLease(root, lease.leaseRef, 'stuck');
    lab.journal.failing = true;
    const first = await refused(fix());
    const second = await refused(fix());
    expect([first.code, second.code, second.members]).toEqual(['outcome_unknown', 'outcome_unknown', first.members]);
    lab.journal.failing = false;
    expect(await fix()).toBe('ended');
    expect(lab.journal.decisions()).toEqual(['lease_grant', 'lease_break']);
    expect(await refused(fix())).toMatchObject({ code: 'not_found' });
  });

  it('is tried again by itself: its record and its event come once the journal is well, each once, whoever asks beside it', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    const events = await heard(lab);
    lab.journal.failing = true;
    await refused(lab.release(lease.leaseId));
    await lab.clock.advanceAsync(10_000);
    expect([lab.journal.decisions(), events.length]).toEqual([['lease_grant'], 0]);
    lab.journal.failing = false;
    lab.journal.hold();
    const asked = [lab.release(lease.leaseId), lab.lease(lease.leaseId), toldToWrite(lab, tokenOf(lease))];
    await lab.clock.advanceAsync(10_000);
    lab.journal.release();
    await Promise.all(asked);
    expect([lab.journal.decisions(), events.map(({ type }) => type)]).toEqual([['lease_grant', 'lease_release'], ['released']]);
    expect((await lab.locks.service.lock(A)).holders).toEqual([]);
  });

  it('comes by itself also when nobody asks, many of them in units of a bounded size', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 5_000, clientId: null });
    for (let i = 0; i < 450; i += 1) await lab.acquire(resource(`many/${i}`), { sessionId });
    lab.journal.failing = true;
    await lab.clock.advanceAsync(20_000);
    expect(lab.journal.leases.size).toBe(450);
    lab.journal.failing = false;
    await lab.clock.advanceAsync(5_000);
    expect([lab.journal.leases.size, lab.journal.decisions().filter((action) => action === 'lease_expire').length]).toEqual([0, 450]);
  });

  it('of a lease that expired is no loss to a heartbeat before the journal has it', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 600_000, clientId: null });
    const lease = await lab.acquire(A, { sessionId, maxHoldMs: 5_000 });
    lab.journal.failing = true;
    await lab.clock.advanceAsync(5_000);
    expect((await lab.locks.service.heartbeat(anybody, sessionId)).lost).toEqual([]);
    lab.journal.failing = false;
    await lab.clock.advanceAsync(5_000);
    expect((await lab.locks.service.heartbeat(anybody, sessionId)).lost).toEqual([lease.leaseId]);
  });

  it('is told by the very heartbeat that finds it, as soon as the journal has it', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 600_000, clientId: null });
    const lease = await lab.acquire(A, { sessionId, maxHoldMs: 5_000 });
    lab.journal.hold();
    await lab.clock.advanceAsync(5_000);
    const heartbeat = lab.locks.service.heartbeat(anybody, sessionId);
    await settle();
    lab.journal.release();
    expect((await heartbeat).lost).toEqual([lease.leaseId]);
  });

  it('holds up neither a heartbeat nor a look at the lock for longer than a moment, when the journal is slow', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 600_000, clientId: null });
    const lease = await lab.acquire(A, { sessionId, maxHoldMs: 5_000 });
    lab.journal.hold();
    await lab.clock.advanceAsync(5_000);
    expect((await lab.during(lab.locks.service.heartbeat(anybody, sessionId), 1_000)).lost).toEqual([]);
    expect((await lab.during(lab.locks.service.lock(A), 1_000)).holders).toMatchObject([{ leaseRef: lease.leaseRef }]);
  });

  it('of a session is told to nobody who asks with it: not to a heartbeat, an acquire or its owner', async () => {
    const lab = new LockLab();
    const { sessionId, sessionRef } = await lab.locks.service.createSession(anybody, { ttlMs: 600_000, clientId: null });
    await lab.acquire(A, { sessionId });
    lab.journal.failing = true;
    expect(await refused(lab.locks.service.endSession(anybody, sessionId))).toMatchObject({
      code: 'outcome_unknown',
      members: { session_ref: sessionRef },
    });
    expect(await refused(lab.locks.service.endSession(anybody, sessionId))).toMatchObject({ code: 'outcome_unknown' });
    await expect(lab.locks.service.heartbeat(anybody, sessionId)).rejects.toMatchObject(UNAVAILABLE);
    await expect(lab.acquire(resource('b'), { sessionId })).rejects.toMatchObject(UNAVAILABLE);
    lab.journal.failing = false;
    await expect(lab.locks.service.heartbeat(anybody, sessionId)).rejects.toMatchObject({ code: 'session_ended' });
    expect([lab.journal.sessions.size, lab.journal.leases.size]).toEqual([0, 0]);
  });

  it.each([
    ['by its client', (lab: LockLab, { sessionId }: { sessionId: string }) => lab.locks.service.endSession(anybody, sessionId)],
    ['by an administrator', (lab: LockLab, { sessionRef }: { sessionRef: string }) => lab.locks.service.endSessionByRef(root, sessionRef)],
    ['by time', async (lab: LockLab) => void (await lab.clock.advanceAsync(600_000))],
  ])('%s of a session leaves it in the list of sessions as ending, in its place, and comes by itself', async (_how, end) => {
    const lab = new LockLab();
    const make = (ttlMs: number) => lab.locks.service.createSession(anybody, { ttlMs, clientId: String(ttlMs) });
    await make(3_600_000);
    const session = await make(600_000);
    const last = await make(3_599_999);
    await lab.acquire(A, { sessionId: session.sessionId, ttlMs: 3_600_000 });
    lab.journal.failing = true;
    await refused(end(lab, session));
    const listed = async () => (await lab.sessions()).map(({ clientId, state, leaseCount }) => [clientId, state, leaseCount]);
    expect(await listed()).toEqual([
      ['3600000', 'live', 0],
      ['600000', 'ending', 1],
      ['3599999', 'live', 0],
    ]);
    const page = await lab.locks.service.sessionPage({ limit: 2, cursor: null });
    expect((await lab.locks.service.sessionPage({ limit: 2, cursor: page.nextCursor })).sessions).toMatchObject([{ sessionRef: last.sessionRef }]);
    lab.journal.failing = false;
    await lab.clock.advanceAsync(2_000);
    expect(await listed()).toEqual([
      ['3600000', 'live', 0],
      ['3599999', 'live', 0],
    ]);
    expect([...lab.journal.sessions.keys()]).not.toContain(session.sessionRef);
  });

  it('by time of a session is told neither', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 5_000, clientId: null });
    lab.journal.failing = true;
    await lab.clock.advanceAsync(5_000);
    await expect(lab.locks.service.heartbeat(anybody, sessionId)).rejects.toMatchObject(UNAVAILABLE);
    lab.journal.failing = false;
    await expect(lab.locks.service.heartbeat(anybody, sessionId)).rejects.toMatchObject({ code: 'session_ended' });
    expect(lab.journal.sessions.size).toBe(0);
  });
});

describe('an end that waits for a commit section', () => {
  it('is told to another write when it has taken effect and is durable; a write that has no more time is refused for now', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    const pin = lab.locks.writeLeases.pin(A, tokenOf(lease));
    const released = lab.release(lease.leaseId);
    await settle();
    const impatient = refused(toldToWrite(lab, tokenOf(lease)));
    await lab.clock.advanceAsync(10_000);
    expect(await impatient).toMatchObject({ code: 'volume_unavailable' });
    const gone = new AbortController();
    const left = refused(toldToWrite(lab, tokenOf(lease), gone.signal));
    gone.abort(new Error('gone'));
    expect(await left).toMatchObject({ message: 'gone' });
    let told = false;
    const patient = toldToWrite(lab, tokenOf(lease)).then(() => {
      told = true;
    });
    lab.journal.hold();
    pin.leave();
    await settle();
    expect(told).toBe(false);
    lab.journal.release();
    await Promise.all([patient, released]);
    expect(told).toBe(true);
  });
});

describe('a change to shared that the journal refuses', () => {
  it('did not happen: nobody came in, the lease writes on, and it can be asked for again', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    const events = await heard(lab);
    lab.journal.failing = 1;
    await expect(convert(lab, lease.leaseId, 'shared')).rejects.toMatchObject(UNAVAILABLE);
    expect(await lab.lease(lease.leaseId)).toMatchObject({ mode: 'exclusive', state: 'held' });
    lab.locks.writeLeases.pin(A, tokenOf(lease)).leave();
    await expect(lab.acquire(A, { mode: 'shared' })).rejects.toMatchObject({ code: 'lock_not_acquired' });
    expect((await convert(lab, lease.leaseId, 'shared')).mode).toBe('shared');
    expect([lab.journal.decisions().slice(-1), events.map(({ type }) => type)]).toEqual([['lease_convert'], ['converted']]);
  });

  it('is not told to a write, which is refused for now; nor does it travel with a later grant', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    lab.journal.hold();
    const converted = refused(convert(lab, lease.leaseId, 'shared'));
    await settle();
    const write = refused(toldToWrite(lab, tokenOf(lease)));
    lab.journal.failing = true;
    lab.journal.release();
    expect(await converted).toMatchObject(UNAVAILABLE);
    expect(await write).toMatchObject(UNAVAILABLE);
    lab.journal.failing = false;
    const { sessionId } = lease;
    await lab.acquire(A, { sessionId, holdId: 'second' });
    expect(lab.journal.leases.get(lease.leaseRef)).toMatchObject({ mode: 'exclusive' });
  });

  it('lets readers in only once it is durable', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    const reader = lab.acquire(A, { mode: 'shared', waitMs: 60_000 });
    await settle();
    lab.journal.hold();
    const converted = convert(lab, lease.leaseId, 'shared');
    await settle();
    expect((await lab.locks.service.lock(A)).holders).toHaveLength(1);
    lab.journal.release();
    expect((await converted).mode).toBe('shared');
    expect((await reader).state).toBe('held');
  });
});

describe('a hold', () => {
  it('stays when the journal refuses its release, and a repeated release is told no sooner than the first', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { holdId: 'one' });
    await lab.acquire(A, { sessionId: lease.sessionId, holdId: 'two' });
    lab.journal.hold();
    const both = [refused(lab.release(lease.leaseId, { holdId: 'one' })), refused(lab.release(lease.leaseId, { holdId: 'one' }))];
    await settle();
    lab.journal.failing = true;
    lab.journal.release();
    expect(await Promise.all(both)).toMatchObject([UNAVAILABLE, UNAVAILABLE]);
    lab.journal.failing = false;
    expect((await lab.lease(lease.leaseId)).holdCount).toBe(2);
    await lab.release(lease.leaseId, { holdId: 'one' });
    expect((await lab.lease(lease.leaseId)).holdCount).toBe(1);
  });

  it('is told to a repeated request no sooner than to the first', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { holdId: 'one' });
    lab.journal.hold();
    const again = () => refused(lab.locks.service.acquire(anybody, request(A, { sessionId: lease.sessionId, holdId: 'two' }), never));
    const both = [again(), again()];
    await settle();
    lab.journal.failing = true;
    lab.journal.release();
    expect(await Promise.all(both)).toMatchObject([UNAVAILABLE, UNAVAILABLE]);
    lab.journal.failing = false;
    expect((await lab.lease(lease.leaseId)).holdCount).toBe(1);
  });
});

describe('a grant that is under way', () => {
  it('is shown to others as one that waits, for the journal may refuse it', async () => {
    const lab = new LockLab();
    lab.journal.hold();
    const granting = refused(lab.acquire(A));
    await settle();
    expect(await lab.locks.service.lock(A)).toMatchObject({ mode: null, holders: [], waiters: [{ clientId: null }], queueLength: 1 });
    lab.journal.failing = true;
    lab.journal.release();
    expect(await granting).toMatchObject(UNAVAILABLE);
    expect(await lab.locks.service.lock(A)).toMatchObject({ holders: [], waiters: [], queueLength: 0 });
  });
});
