import { describe, expect, it } from 'vitest';
import { settle } from '../../support/fake-clock.ts';
import { anybody, callerOf, LockLab, resource } from '../../support/lock-lab.ts';

/** Breaks of a lock that somebody waits for: the next grant carries what it owes the journal, and says it no second time, and no less. */

const A = resource('a');
const root = callerOf('root', 'console', ['admin']);
const ask = (graceMs: number) => ({ resource: A, reason: 'stuck', graceMs });

/** The holder writes; by now that is durable. */
async function wrote(lab: LockLab, leaseRef: string, operationId: string): Promise<void> {
  const grant = lab.journal.records.find((record) => record.leaseRef === leaseRef);
  if (grant === undefined) throw new Error('no record');
  await lab.journal.commit([
    { op: 'audit', record: { ...grant, outcome: 'committed', action: 'put', operationId, etagBefore: '"1"', etagAfter: '"2"' } },
  ]);
}

/** Every word on the break of `leaseRef`: what it lists, and the mark. */
function words(lab: LockLab, leaseRef: string) {
  return lab.journal.records
    .filter((record) => record.action === 'lease_break' && record.leaseRef === leaseRef)
    .map(({ outcome, detail, highWaterMark }) => {
      const { reason, committed = [] } = JSON.parse(detail ?? '{}');
      return { outcome, reason, writes: committed.map(({ operation_id: id }: { operation_id: string }) => id), highWaterMark };
    });
}

describe('a break with a grace while somebody waits', () => {
  it.each([
    ['', async (lab: LockLab) => lab],
    [', also over a restart', (lab: LockLab) => lab.restarted()],
  ])('has one last word, with all that was committed within the grace, and the raised mark%s', async (_, over) => {
    const before = new LockLab();
    const lease = await before.acquire(A, { ttlMs: 600_000 });
    const held = { reason: 'stuck', highWaterMark: lease.fencingToken };
    await wrote(before, lease.leaseRef, 'op-1');
    await before.locks.breakLock(root, ask(20_000));
    const lab = await over(before);
    const waiter = lab.acquire(A, { waitMs: 60_000, ttlMs: 600_000 });
    await wrote(lab, lease.leaseRef, 'op-2');
    // The end is under way while the next grant is decided, and travels with that, too.
    lab.journal.hold();
    await lab.clock.advanceAsync(20_000);
    lab.journal.release();
    expect((await waiter).state).toBe('held');
    expect(words(lab, lease.leaseRef)).toEqual([
      { ...held, outcome: 'committed', writes: ['op-1'] },
      { ...held, outcome: 'committed', writes: ['op-1', 'op-2'], highWaterMark: (lease.fencingToken ?? 0n) + 1n },
    ]);
    expect([lab.journal.breaks.size, lab.journal.pending.size]).toEqual([0, 0]);
  });

  it('has that one word also when the journal refuses the end itself, and takes it with the next grant', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    await lab.locks.breakLock(root, ask(20_000));
    const waiter = lab.acquire(A, { waitMs: 60_000, ttlMs: 600_000 });
    await wrote(lab, lease.leaseRef, 'op-1');
    lab.journal.failing = 1;
    await lab.clock.advanceAsync(30_000);
    expect((await waiter).state).toBe('held');
    expect(words(lab, lease.leaseRef).slice(1)).toEqual([
      { outcome: 'committed', reason: 'stuck', writes: ['op-1'], highWaterMark: (lease.fencingToken ?? 0n) + 1n },
    ]);
    expect(lab.journal.pending.size).toBe(0);
  });

  it('that comes to nothing has one last word, too', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    await lab.locks.breakLock(root, ask(20_000));
    const waiter = lab.acquire(A, { waitMs: 60_000, ttlMs: 600_000 });
    lab.journal.hold();
    const released = lab.release(lease.leaseId);
    await settle();
    lab.journal.release();
    await Promise.all([released, waiter]);
    expect(words(lab, lease.leaseRef).map(({ outcome }) => outcome)).toEqual(['committed', 'aborted']);
  });
});

describe('a break while a write of the lease is in its last step', () => {
  it.each([
    ['by an administrator', (lab: LockLab) => lab.locks.breakLock(root, ask(0))],
    ['by a fix of the doctor', (lab: LockLab, leaseRef: string) => lab.locks.endLease(root, leaseRef, 'stuck')],
  ])('lists that write in its record, %s', async (_, broken) => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 }, anybody);
    const pin = lab.locks.writeLeases.pin(A, lease.fencingToken ?? (0n as never));
    const report = broken(lab, lease.leaseRef);
    await settle();
    await wrote(lab, lease.leaseRef, 'op-last');
    pin.leave();
    await lab.during<unknown>(report, 5_000);
    expect(words(lab, lease.leaseRef)).toMatchObject([{ reason: 'stuck', writes: ['op-last'] }]);
  });
});
