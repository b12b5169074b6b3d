import { describe, expect, it } from 'vitest';
import { COORDINATORS } from '../../support/coordinators.ts';
import { settle } from '../../support/fake-clock.ts';
import { anybody, callerOf, LockLab as EmbeddedLab, type LockLab, resource, tokenOf } from '../../support/lock-lab.ts';

/** A break whose answer was lost is sent again: of those who are named nobody else is ever broken. */

const [A, B] = [resource('a'), resource('b')];
const LONG = { ttlMs: 3_600_000 };
const root = callerOf('root', null, ['admin']);
const ask = (leaseRefs?: readonly string[], graceMs = 0) => ({
  resource: A,
  reason: 'stuck',
  graceMs,
  ...(leaseRefs === undefined ? {} : { leaseRefs }),
});
const breaks = (lab: LockLab) => lab.journal.records.filter(({ action }) => action === 'lease_break');

describe.each(COORDINATORS)('a break that names whom it is of ($coordinator)', ({ LockLab }) => {
  it('is answered as it was when it is sent again, and leaves the next holder alone', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { clientId: 'stuck', ...LONG });
    const first = await lab.locks.breakLock(root, ask([lease.leaseRef]));
    const next = await lab.acquire(A, LONG);
    const again = await lab.locks.breakLock(root, ask([lease.leaseRef]));
    expect(again).toEqual(first);
    expect(first).toMatchObject({ state: 'broken', highWaterMark: expect.any(BigInt), leases: [{ leaseRef: lease.leaseRef, clientId: 'stuck' }] });
    expect((await lab.lease(next.leaseId)).state).toBe('held');
    expect(breaks(lab)).toHaveLength(1);
    // Without a name it is of whoever holds it now, and its answer says who that was.
    expect((await lab.locks.breakLock(root, ask())).leases.map(({ leaseRef }) => leaseRef)).toEqual([next.leaseRef]);
  });

  it('with a grace is answered by what runs while it runs, and by what came of it afterwards', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, LONG);
    const first = await lab.locks.breakLock(root, ask([lease.leaseRef], 5_000));
    await lab.clock.advanceAsync(2_000);
    expect(await lab.locks.breakLock(root, ask([lease.leaseRef], 5_000))).toEqual(first);
    // Another reason, another administrator, or a nearer end is another break.
    expect((await lab.locks.breakLock(root, { ...ask([lease.leaseRef], 5_000), reason: 'other' })).leases[0]?.operationId).not.toBe(
      first.leases[0]?.operationId,
    );
    await lab.clock.advanceAsync(5_000);
    const next = await lab.acquire(A, LONG);
    const after = await lab.locks.breakLock(root, ask([lease.leaseRef], 5_000));
    expect(after).toMatchObject({ state: 'broken', deadline: null, leases: [{ leaseRef: lease.leaseRef, operationId: expect.any(String) }] });
    expect(breaks(lab).map(({ operationId }) => operationId)).toContain(after.leases[0]?.operationId);
    expect((await lab.lease(next.leaseId)).state).toBe('held');
  });

  it('is refused when the lease ended otherwise, waits, is none, or is one of another resource', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, LONG);
    const other = await lab.acquire(B, LONG);
    const waits = lab.acquire(A, { waitMs: 1, ...LONG });
    await lab.clock.advanceAsync(1);
    const waiter = await waits;
    await expect(lab.locks.breakLock(root, ask([waiter.leaseRef]))).rejects.toMatchObject({ code: 'lease_not_held', members: { state: 'waiting' } });
    for (const ref of [other.leaseRef, 'nobody'])
      await expect(lab.locks.breakLock(root, ask([ref]))).rejects.toMatchObject({ code: 'lease_not_found' });
    await lab.release(lease.leaseId);
    await expect(lab.locks.breakLock(root, ask([lease.leaseRef]))).rejects.toMatchObject({
      code: 'lease_not_held',
      members: { lease_ref: lease.leaseRef, state: 'released', reason: 'released', ended_at: expect.any(String) },
    });
    expect((await lab.lease(waiter.leaseId, 1_000)).state).toBe('held');
    expect(breaks(lab)).toEqual([]);
  });

  it('of one reader leaves the others, also those whose end is announced', async () => {
    const lab = new LockLab();
    const [one, two, three] = [
      await lab.acquire(A, { mode: 'shared', ...LONG }),
      await lab.acquire(A, { mode: 'shared', ...LONG }),
      await lab.acquire(A, { mode: 'shared', ...LONG }),
    ];
    await lab.locks.breakLock(root, ask([one.leaseRef], 10_000));
    const second = await lab.locks.breakLock(root, ask([two.leaseRef], 60_000));
    expect(second.leases.map(({ leaseRef }) => leaseRef)).toEqual([two.leaseRef]);
    await lab.clock.advanceAsync(4_000);
    await lab.locks.breakLock(root, ask([two.leaseRef]));
    const states = async () => Promise.all([one, two, three].map(async ({ leaseId }) => (await lab.lease(leaseId)).state));
    expect(await states()).toEqual(['held', 'broken', 'held']);
    // Nobody new while the first one's grace runs.
    await expect(lab.acquire(A, { mode: 'shared' })).rejects.toMatchObject({ code: 'lock_not_acquired' });
    await lab.clock.advanceAsync(7_000);
    expect(await states()).toEqual(['broken', 'broken', 'held']);
    expect((await lab.acquire(A, { mode: 'shared' })).state).toBe('held');
  });

  it('that the journal refused is asked for again by its name, also when somebody stands in line', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, LONG);
    const waits = lab.acquire(A, { waitMs: 60_000, ...LONG });
    await settle();
    lab.journal.failing = true;
    const refused = lab.locks.breakLock(root, ask([lease.leaseRef]));
    await expect(refused).rejects.toMatchObject({
      code: 'outcome_unknown',
      message: expect.stringContaining('so does the same request'),
      members: { lease_refs: [lease.leaseRef], operation_id: expect.any(String) },
    });
    lab.journal.failing = false;
    await lab.clock.advanceAsync(2_000);
    const next = await waits;
    const again = await lab.locks.breakLock(root, ask([lease.leaseRef]));
    expect(again).toMatchObject({ state: 'broken', leases: [{ leaseRef: lease.leaseRef }] });
    expect(tokenOf(next)).toBeGreaterThan(again.highWaterMark ?? 0n);
    expect((await lab.lease(next.leaseId)).state).toBe('held');
    expect(new Set(breaks(lab).map(({ operationId }) => operationId))).toEqual(new Set([again.leases[0]?.operationId]));
  });
});

describe('a break that names whom it is of, sent again after a restart', () => {
  it('is answered from the journal; of a lease that ended otherwise it is refused', async () => {
    const lab = new EmbeddedLab();
    const released = await lab.acquire(A, LONG);
    await lab.release(released.leaseId);
    const lease = await lab.acquire(A, { clientId: 'stuck', ...LONG });
    const first = await lab.locks.breakLock(root, ask([lease.leaseRef]));
    const next = await lab.acquire(A, LONG);
    const after = await lab.restarted();
    expect(await after.locks.breakLock(root, ask([lease.leaseRef]))).toEqual(first);
    await expect(after.locks.breakLock(root, ask([released.leaseRef]))).rejects.toMatchObject({
      code: 'lease_not_held',
      members: { state: 'released' },
    });
    expect((await after.lease(next.leaseId, 0, anybody)).state).toBe('held');
  });
});
