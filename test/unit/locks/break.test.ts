import { describe, expect, it } from 'vitest';
import { LIMITS } from '../../../src/domain/limits.ts';
import { COORDINATORS } from '../../support/coordinators.ts';
import { settle } from '../../support/fake-clock.ts';
import { anybody, callerOf, never, resource, tokenOf } from '../../support/lock-lab.ts';

const A = resource('a');
const root = callerOf('root', null, ['admin']);
const ask = (graceMs = 0) => ({ resource: A, reason: 'stuck', graceMs });

describe.each(COORDINATORS)('breaking a lock ($coordinator)', ({ LockLab }) => {
  it('R20: needs no id, fences first, is audited, and the next one gets in', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { clientId: 'batch' });
    const waiter = lab.acquire(A, { waitMs: 10_000 });
    await settle();
    const report = await lab.locks.breakLock(root, ask());
    expect(report).toMatchObject({
      state: 'broken',
      deadline: null,
      leases: [
        {
          leaseRef: lease.leaseRef,
          clientId: 'batch',
          mode: 'exclusive',
          fencingToken: lease.fencingToken,
          operationId: expect.any(String),
          committed: { writes: [], truncated: false },
        },
      ],
    });
    expect(report.highWaterMark).toBeGreaterThan(tokenOf(lease));
    const next = await waiter;
    expect(tokenOf(next)).toBeGreaterThan(report.highWaterMark ?? 0n);
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'broken', reason: 'broken' });
    expect(() => lab.locks.writeLeases.pin(A, tokenOf(lease))).toThrowError(expect.objectContaining({ code: 'stale_token' }));
    expect(lab.journal.records.find(({ action }) => action === 'lease_break')).toMatchObject({
      principal: 'root',
      leaseRef: lease.leaseRef,
      fencingToken: lease.fencingToken,
      highWaterMark: report.highWaterMark,
      operationId: report.leases[0]?.operationId,
    });
    const unit = lab.journal.units.find((ops) => ops.some(({ op }) => op === 'lease_end'));
    expect(unit?.map(({ op }) => op).slice(0, 2)).toEqual(['raise_mark', 'lease_end']);
  });

  it('tells what the broken lease had committed', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    const grant = lab.journal.records[0];
    if (grant === undefined) throw new Error('no record');
    await lab.journal.commit([
      { op: 'audit', record: { ...grant, outcome: 'committed', action: 'put', operationId: 'op-1', etagBefore: '"1"', etagAfter: '"2"' } },
    ]);
    const report = await lab.locks.breakLock(root, ask());
    expect(report.leases[0]?.committed).toEqual({
      writes: [{ operationId: 'op-1', action: 'put', resource: 'vol/a', at: grant.at, etagBefore: '"1"', etagAfter: '"2"' }],
      truncated: false,
    });
    expect(report.leases[0]?.leaseRef).toBe(lease.leaseRef);
  });

  it('says when it had committed more than is listed, in the answer and in the record, whose list is shorter', async () => {
    for (const [count, truncated] of [
      [LIMITS.recordedWritesMax, [false, false]],
      [LIMITS.recordedWritesMax + 1, [false, true]],
      [LIMITS.brokenLeaseWritesMax + 1, [true, true]],
    ] as const) {
      const lab = new LockLab();
      await lab.acquire(A);
      const [grant] = lab.journal.records;
      if (grant === undefined) throw new Error('no record');
      for (let i = 0; i < count; i += 1)
        await lab.journal.commit([{ op: 'audit', record: { ...grant, outcome: 'committed', action: 'put', operationId: `op-${i}` } }]);
      const report = await lab.locks.breakLock(root, ask());
      const record = lab.journal.records.find(({ action }) => action === 'lease_break');
      const { committed, committed_truncated: cut } = JSON.parse(record?.detail ?? '');
      expect([report.leases[0]?.committed.truncated, cut]).toEqual(truncated);
      expect(committed.length).toBe(LIMITS.recordedWritesMax);
    }
  });

  it('with a grace period lets the holder finish, lets nobody new in, then breaks', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { mode: 'shared', ttlMs: 3_600_000 });
    expect(await lab.locks.breakLock(root, ask(5_000))).toMatchObject({ state: 'breaking', highWaterMark: null, deadline: expect.any(String) });
    await expect(lab.acquire(A, { mode: 'shared' })).rejects.toMatchObject({ code: 'lock_not_acquired' });
    await lab.clock.advanceAsync(4_999);
    expect((await lab.lease(lease.leaseId)).state).toBe('held');
    await lab.clock.advanceAsync(1);
    expect((await lab.lease(lease.leaseId)).state).toBe('broken');
    expect((await lab.acquire(A)).state).toBe('held');
  });

  it('leaves the holder no more time than the grace, and says so in every answer', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    await lab.locks.breakLock(root, ask(10_000));
    lab.clock.advance(4_000);
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'held', reason: 'breaking', expiresInMs: 6_000 });
    expect((await lab.locks.service.renew(anybody, lease.leaseId)).expiresInMs).toBe(6_000);
    expect((await lab.locks.service.lock(A)).holders[0]?.expiresInMs).toBe(6_000);
  });

  it('is over early when the holder lets go within the grace period', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    await lab.locks.breakLock(root, ask(60_000));
    const waiter = lab.acquire(A, { waitMs: 10_000 });
    lab.locks.writeLeases.pin(A, tokenOf(lease)).leave();
    await lab.release(lease.leaseId);
    expect((await waiter).state).toBe('held');
    await lab.clock.advanceAsync(60_000);
    expect((await lab.lease((await waiter).leaseId)).state).toBe('expired');
    expect((await lab.lease(lease.leaseId)).state).toBe('released');
  });

  it('is answered as pending while a commit section pins the lease, which admits no new one', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 3_600_000 });
    const pin = lab.locks.writeLeases.pin(A, tokenOf(lease));
    const report = await lab.during(lab.locks.breakLock(root, ask()), 5_000);
    expect(report).toMatchObject({ state: 'breaking', highWaterMark: null });
    expect((await lab.lease(lease.leaseId)).state).toBe('ending');
    expect(() => lab.locks.writeLeases.pin(A, tokenOf(lease))).toThrowError(expect.objectContaining({ code: 'stale_token' }));
    pin.leave();
    await settle();
    expect((await lab.lease(lease.leaseId)).state).toBe('broken');
  });

  it('of the lease of a token-less write has its record too, once the write is done', async () => {
    const lab = new LockLab();
    const write = await lab.locks.writeLeases.acquireImplicit({ resources: [A], caller: callerOf('ann'), waitMs: 0, signal: never });
    const pin = lab.locks.writeLeases.pin(A, write.lease.token);
    expect(await lab.during(lab.locks.breakLock(root, ask()), 5_000)).toMatchObject({ state: 'breaking' });
    pin.leave();
    await settle();
    expect(lab.journal.records).toMatchObject([
      { action: 'lease_break', outcome: 'committed', principal: 'root', leaseRef: write.lease.leaseRef, fencingToken: write.lease.token },
    ]);
    write.release();
    expect((await lab.acquire(A)).state).toBe('held');
  });

  it('of one resource ends the lease over all of its resources', async () => {
    const lab = new LockLab();
    const other = resource('b');
    const lease = await lab.acquire([A, other]);
    await lab.locks.breakLock(root, ask());
    expect((await lab.lease(lease.leaseId)).state).toBe('broken');
    expect(lab.journal.marks.get(other.key)?.token).toBeGreaterThan(tokenOf(lease));
  });

  it('of several readers ends the one that waits to become the writer with the others: it is not upgraded on the way out', async () => {
    const lab = new LockLab();
    await lab.acquire(A, { mode: 'shared' });
    const upgrading = await lab.acquire(A, { mode: 'shared' });
    await lab.locks.service.convert(anybody, upgrading.leaseId, 'exclusive', never);
    await lab.locks.breakLock(root, ask());
    await settle();
    expect([...lab.journal.leases.values()]).toEqual([]);
    expect(lab.journal.decisions()).not.toContain('lease_convert');
    expect(await lab.acquire(A)).toMatchObject({ state: 'held' });
  });

  it('refuses when nobody holds it, and says so', async () => {
    await expect(new LockLab().locks.breakLock(root, ask())).rejects.toMatchObject({ code: 'not_found' });
    await expect(new LockLab().locks.breakLock(root, ask(-1))).rejects.toMatchObject({ code: 'invalid_request', members: { field: 'grace_ms' } });
  });
});

describe.each(COORDINATORS)('lock-delay ($coordinator)', ({ LockLab }) => {
  it('holds everybody back after an unclean end, for as long as the lease asked, and not after a clean one', async () => {
    const lab = new LockLab();
    await lab.acquire(A, { ttlMs: 1_000, lockDelayMs: 10_000 });
    await lab.clock.advanceAsync(1_000);
    const waiter = lab.acquire(A, { waitMs: 60_000, ttlMs: 60_000 });
    await lab.clock.advanceAsync(9_999);
    expect((await lab.locks.service.lock(A)).holders).toEqual([]);
    expect(lab.locks.writeLeases.holder(A)).not.toBeNull();
    await lab.clock.advanceAsync(1);
    const lease = await waiter;
    await lab.release(lease.leaseId);
    expect((await lab.acquire(A, { lockDelayMs: 10_000 })).state).toBe('held');
  });

  it('comes from the volume when the request names none, and is served again in full after a restart', async () => {
    const lab = new LockLab({ policy: { lease: { lockDelayMs: 10_000 } } });
    await lab.acquire(A, { ttlMs: 1_000 });
    await lab.clock.advanceAsync(6_000);
    expect(lab.journal.lockDelays.get(A.key)).toBe(10_000);
    const after = await lab.restarted();
    const waiter = after.acquire(A, { waitMs: 60_000, ttlMs: 60_000, lockDelayMs: 0 });
    await after.clock.advanceAsync(9_999);
    expect((await after.locks.service.lock(A)).holders).toEqual([]);
    await after.clock.advanceAsync(1);
    expect((await waiter).state).toBe('held');
    expect(after.journal.lockDelays.size).toBe(0);
  });
});
