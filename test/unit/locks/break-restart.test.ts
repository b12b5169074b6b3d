import { describe, expect, it } from 'vitest';
import { settle } from '../../support/fake-clock.ts';
import { anybody, callerOf, LockLab, resource, tokenOf } from '../../support/lock-lab.ts';

const A = resource('a');
const B = resource('b');
const root = callerOf('root', 'console', ['admin']);
const ask = (graceMs: number, reason = 'stuck') => ({ resource: A, reason, graceMs });

/** `outcome` of every record of a break, in order. */
function breaks(lab: LockLab): string[] {
  return lab.journal.records.filter(({ action }) => action === 'lease_break').map(({ outcome }) => outcome);
}

describe('a break with a grace period, over a restart', () => {
  it('goes on with what is left of the grace: nobody new gets in, the holder may write, then the lease ends as announced', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000, clientId: 'batch' });
    const { deadline } = await lab.locks.breakLock(root, ask(20_000));
    lab.clock.advance(4_000);
    const after = await lab.restarted();
    expect(await after.lease(lease.leaseId)).toMatchObject({ state: 'held', reason: 'breaking', expiresInMs: 15_000 });
    await after.release((await after.acquire(B)).leaseId);
    await expect(after.acquire(A)).rejects.toMatchObject({ code: 'lock_not_acquired' });
    after.locks.writeLeases.pin(A, tokenOf(lease)).leave();
    await after.clock.advanceAsync(14_999);
    expect((await after.lease(lease.leaseId)).state).toBe('held');
    await after.clock.advanceAsync(1);
    expect(deadline).toBe(new Date(after.clock.wallMs()).toISOString());
    expect((await after.lease(lease.leaseId)).state).toBe('broken');
    expect(() => after.locks.writeLeases.pin(A, tokenOf(lease))).toThrowError(expect.objectContaining({ code: 'lease_ended' }));
    expect(after.journal.records.at(-1)).toMatchObject({
      action: 'lease_break',
      outcome: 'committed',
      principal: 'root',
      clientId: 'console',
      leaseRef: lease.leaseRef,
      detail: expect.stringContaining('"reason":"stuck"'),
    });
    expect(after.journal.breaks.size).toBe(0);
    expect((await after.acquire(A)).state).toBe('held');
  });

  it('lets no new reader in beside a reader that is to go', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { mode: 'shared', ttlMs: 600_000 });
    await lab.locks.breakLock(root, ask(20_000));
    const after = await lab.restarted();
    await expect(after.acquire(A, { mode: 'shared' })).rejects.toMatchObject({ code: 'lock_not_acquired' });
    await after.clock.advanceAsync(20_000);
    expect((await after.lease(lease.leaseId)).state).toBe('broken');
    expect((await after.acquire(A, { mode: 'shared' })).state).toBe('held');
  });

  it('comes to nothing when the longest hold of its lease was over before the start, and says so then, whatever else that start has to end', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000, maxHoldMs: 1_500 });
    await lab.during(lab.acquire(A, { ttlMs: 600_000, waitMs: 100 }), 200, 50);
    await lab.locks.breakLock(root, ask(60_000));
    lab.clock.advance(2_000);
    // A disk that takes its time: what is due ends while the start still commits other things.
    const commit = lab.journal.commit.bind(lab.journal);
    lab.journal.commit = async (ops) => {
      const done = commit(ops);
      lab.clock.advance(1);
      await settle();
      return done;
    };
    const after = await lab.restarted();
    await after.clock.advanceAsync(1_000);
    expect(await after.lease(lease.leaseId)).toMatchObject({ state: 'expired', reason: 'max_hold' });
    expect([breaks(after), after.journal.breaks.size]).toEqual([['committed', 'aborted'], 0]);
  });

  it('is done at once when the grace ran out while no process ran', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    await lab.locks.breakLock(root, ask(500));
    const after = await lab.restarted();
    await after.clock.advanceAsync(0);
    expect((await after.lease(lease.leaseId)).state).toBe('broken');
  });

  it.each([
    ['of one boot gives the holder what is left of the grace', false, -3_600_000, 19_000],
    ['of one boot gives the holder what is left of the grace, and no less', false, 3_600_000, 19_000],
    ['in another boot gives the holder no more than the whole grace again', true, -3_600_000, 20_000],
  ])('%s when the wall clock was set meanwhile', async (_, reboots, jumpMs, leftMs) => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    await lab.locks.breakLock(root, ask(20_000));
    lab.clock.jumpWall(jumpMs);
    if (reboots) lab.clock.reboot();
    const after = await lab.restarted();
    await after.clock.advanceAsync(leftMs - 1);
    expect((await after.lease(lease.leaseId)).state).toBe('held');
    await after.clock.advanceAsync(1);
    expect((await after.lease(lease.leaseId)).state).toBe('broken');
  });

  it('keeps the token and the mark in its record', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    await lab.locks.breakLock(root, ask(20_000));
    const after = await lab.restarted();
    await after.release(lease.leaseId);
    expect(breaks(after)).toEqual(['committed', 'aborted']);
    expect(after.journal.records.at(-1)).toMatchObject({ fencingToken: lease.fencingToken, highWaterMark: lease.fencingToken });
    const lost = await after.acquire(A, { ttlMs: 600_000 });
    await after.locks.breakLock(root, ask(20_000));
    const last = await after.restarted({ comeBack: false, seed: 3 });
    expect(last.journal.records.at(-1)).toMatchObject({ outcome: 'aborted', fencingToken: lost.fencingToken, highWaterMark: lost.fencingToken });
  });

  it('is void when the lease ended before: whoever holds now is not meant', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    await lab.locks.breakLock(root, ask(20_000));
    lab.journal.failing = 2;
    await lab.release(lease.leaseId).catch(() => undefined);
    lab.journal.failing = false;
    const next = await lab.acquire(A, { ttlMs: 600_000 });
    expect([breaks(lab), lab.journal.pending.size]).toEqual([['committed', 'aborted'], 0]);
    const after = await lab.restarted();
    await after.clock.advanceAsync(20_000);
    expect((await after.lease(next.leaseId)).state).toBe('held');
    expect(after.journal.breaks.size).toBe(0);
  });

  it('came to nothing when the lease itself did not come back', async () => {
    const lab = new LockLab();
    await lab.acquire(A);
    await lab.locks.breakLock(root, ask(20_000));
    const after = await lab.restarted({ comeBack: false });
    expect(after.journal.decisions().slice(-2)).toEqual(['lease_lose', 'lease_break']);
    expect(breaks(after)).toEqual(['committed', 'aborted']);
    expect([after.journal.breaks.size, after.journal.pending.size]).toEqual([0, 0]);
    expect((await after.acquire(A)).state).toBe('held');
  });
});

describe('the record of a break with a grace period', () => {
  it('is pending from its answer on, and committed when the lease is broken', async () => {
    const lab = new LockLab();
    await lab.acquire([A, B], { ttlMs: 600_000 });
    await lab.locks.breakLock(root, ask(5_000));
    const [operationId] = lab.journal.pending;
    expect(lab.journal.records.at(-1)).toMatchObject({ action: 'lease_break', operationId, path: 'a' });
    await lab.clock.advanceAsync(5_000);
    expect(lab.journal.pending.size).toBe(0);
    const words = lab.journal.records.filter(({ action }) => action === 'lease_break');
    expect(words.map((record) => [record.path, record.operationId, record.outcome, record.highWaterMark === null])).toEqual([
      ['a', operationId, 'committed', false],
      ['a', operationId, 'committed', false],
      // One break, one operation, whatever else the lease was over.
      ['b', operationId, 'committed', false],
    ]);
    const [announced, done] = words;
    expect([announced?.highWaterMark, announced?.fencingToken]).toEqual([done?.fencingToken, done?.fencingToken]);
  });

  it.each([
    ['the holder lets go', 'lease_release', async (lab: LockLab, leaseId: string) => lab.release(leaseId)],
    ['its time is up', 'lease_expire', async (lab: LockLab) => lab.clock.advanceAsync(30_000)],
    ['everything is lost', 'lease_lose', async (lab: LockLab) => lab.locks.endAll('lost', null)],
  ])('is aborted when %s within the grace', async (_, action, end) => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 30_000 });
    await lab.locks.breakLock(root, ask(600_000));
    await end(lab, lease.leaseId);
    await settle();
    expect(lab.journal.decisions()).toEqual(['lease_grant', 'lease_break', action, 'lease_break']);
    expect(breaks(lab)).toEqual(['committed', 'aborted']);
    // Both in one unit: no query sees an end beside a break that is still pending.
    expect(lab.journal.units.filter((ops) => ops.some(({ op }) => op === 'outcome')).map((ops) => ops.map(({ op }) => op))).toEqual([
      expect.arrayContaining(['lease_end', 'outcome']),
    ]);
    expect([lab.journal.breaks.size, lab.journal.pending.size]).toEqual([0, 0]);
  });

  it('is aborted when another break takes its place, with a grace or without: each has its own reason, caller and operation', async () => {
    const lab = new LockLab();
    const { fencingToken } = await lab.acquire(A, { ttlMs: 600_000 });
    const first = await lab.locks.breakLock(root, ask(600_000, 'first'));
    const second = await lab.locks.breakLock(root, ask(300_000, 'second'));
    expect([...lab.journal.pending]).toEqual([second.leases[0]?.operationId]);
    const third = await lab.locks.breakLock(callerOf('other', null, ['admin']), ask(0, 'now'));
    await settle();
    const operations = [first, second, third].map(({ leases }) => leases[0]?.operationId);
    expect(new Set(operations).size).toBe(3);
    const words = lab.journal.records
      .filter(({ action }) => action === 'lease_break')
      .map((record) => [operations.indexOf(record.operationId), record.outcome, record.principal, JSON.parse(record.detail ?? '').reason]);
    expect(words).toEqual([
      [0, 'committed', 'root', 'first'],
      [0, 'aborted', 'root', 'first'],
      [1, 'committed', 'root', 'second'],
      [1, 'aborted', 'root', 'second'],
      [2, 'committed', 'other', 'now'],
    ]);
    expect(lab.journal.records.filter(({ action, highWaterMark }) => action === 'lease_break' && highWaterMark !== fencingToken)).toMatchObject([
      { operationId: operations[1], highWaterMark: third.highWaterMark },
      { operationId: operations[2], highWaterMark: third.highWaterMark },
    ]);
    expect([lab.journal.breaks.size, lab.journal.pending.size]).toEqual([0, 0]);
  });

  it.each([
    ['its session is ended by force', async (lab: LockLab, sessionRef: string) => lab.locks.service.endSessionByRef(root, sessionRef)],
    ['a break of another of its resources is faster', async (lab: LockLab) => lab.locks.breakLock(root, { ...ask(0, 'other'), resource: B })],
  ])('is aborted when %s: that break has records of its own', async (_, faster) => {
    const lab = new LockLab();
    const session = await lab.locks.service.createSession(anybody, { ttlMs: 600_000, clientId: null });
    await lab.acquire([A, B], { ttlMs: 600_000, sessionId: session.sessionId });
    await lab.locks.breakLock(root, ask(600_000, 'first'));
    await faster(lab, session.sessionRef);
    await settle();
    expect(breaks(lab)).toEqual(['committed', 'aborted', 'committed', 'committed']);
    expect([lab.journal.breaks.size, lab.journal.pending.size]).toEqual([0, 0]);
  });

  it('leaves the lease no more time than the first grace that ends, of whichever of its resources', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire([A, B], { ttlMs: 600_000 });
    await lab.locks.breakLock(root, ask(10_000));
    await lab.locks.breakLock(root, { ...ask(60_000), resource: B });
    expect((await lab.lease(lease.leaseId)).expiresInMs).toBe(10_000);
    lab.journal.failing = 1;
    await expect(lab.locks.breakLock(root, { ...ask(5_000), resource: B })).rejects.toMatchObject({ code: 'journal_unavailable' });
    expect(await lab.lease(lease.leaseId)).toMatchObject({ reason: 'breaking', expiresInMs: 10_000 });
  });

  it('is not made when the journal refuses it: the lock is as it was, and an earlier announcement stands', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    lab.journal.failing = 1;
    await expect(lab.locks.breakLock(root, ask(10_000))).rejects.toMatchObject({ code: 'journal_unavailable' });
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'held', reason: null });
    await lab.locks.breakLock(root, ask(20_000));
    lab.journal.failing = 1;
    await expect(lab.locks.breakLock(root, ask(10_000))).rejects.toMatchObject({ code: 'journal_unavailable' });
    await lab.clock.advanceAsync(19_999);
    expect((await lab.lease(lease.leaseId)).state).toBe('held');
    await lab.clock.advanceAsync(1);
    expect((await lab.lease(lease.leaseId)).state).toBe('broken');
    expect(breaks(lab)).toEqual(['committed', 'committed']);
    expect(lab.journal.pending.size).toBe(0);
  });

  it('never lists the break among what the lease had committed', async () => {
    const lab = new LockLab();
    await lab.acquire(A, { ttlMs: 600_000 });
    await lab.locks.breakLock(anybody, ask(600_000));
    expect((await lab.locks.breakLock(anybody, ask(0))).leases[0]?.committed.writes).toEqual([]);
  });
});
