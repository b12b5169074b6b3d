import { describe, expect, it } from 'vitest';
import { COORDINATORS } from '../../support/coordinators.ts';
import { settle } from '../../support/fake-clock.ts';
import { anybody, type LockLab, never, resource, tokenOf } from '../../support/lock-lab.ts';

const A = resource('a');
const convert = (lab: LockLab, leaseId: string, mode: 'shared' | 'exclusive') => lab.locks.service.convert(anybody, leaseId, mode, never);

describe.each(COORDINATORS)('converting ($coordinator)', ({ LockLab }) => {
  it('R5: a downgrade keeps the number, lets waiting readers in, and a queued writer waits for the reader', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    const reader = lab.acquire(A, { mode: 'shared', waitMs: 1_000 });
    await settle();
    const writer = await lab.during(lab.acquire(A, { waitMs: 1 }), 10, 1);
    const shared = await convert(lab, lease.leaseId, 'shared');
    expect(shared).toMatchObject({ mode: 'shared', state: 'held', fencingToken: lease.fencingToken });
    expect((await reader).state).toBe('held');
    expect((await lab.lease(writer.leaseId)).state).toBe('waiting');
    expect(() => lab.locks.writeLeases.pin(A, tokenOf(lease))).toThrowError(expect.objectContaining({ code: 'lease_is_shared' }));
    await lab.release((await reader).leaseId);
    expect((await lab.lease(writer.leaseId)).state).toBe('waiting');
    await lab.release(lease.leaseId);
    expect((await lab.lease(writer.leaseId, 100)).state).toBe('held');
    expect(lab.journal.decisions()).toContain('lease_convert');
  });

  it('an upgrade waits for the other readers, keeps newer ones out, and gets a new token', async () => {
    const lab = new LockLab();
    const mine = await lab.acquire(A, { mode: 'shared' });
    const other = await lab.acquire(A, { mode: 'shared' });
    expect(await convert(lab, mine.leaseId, 'exclusive')).toMatchObject({ mode: 'shared', state: 'held' });
    await expect(lab.acquire(A, { mode: 'shared' })).rejects.toMatchObject({ code: 'lock_not_acquired' });
    const poll = lab.lease(mine.leaseId, 10_000);
    await lab.release(other.leaseId);
    const upgraded = await poll;
    expect(upgraded).toMatchObject({ mode: 'exclusive', state: 'held' });
    expect(tokenOf(upgraded)).toBeGreaterThan(tokenOf(mine));
    expect(() => lab.locks.writeLeases.pin(A, tokenOf(mine))).toThrowError(expect.objectContaining({ code: 'stale_token' }));
    lab.locks.writeLeases.pin(A, tokenOf(upgraded)).leave();
  });

  it('a poll of an upgrade waits on while its grant is decided but not durable, and shows its place when its time runs out before', async () => {
    const lab = new LockLab();
    const mine = await lab.acquire(A, { mode: 'shared' });
    const other = await lab.acquire(A, { mode: 'shared' });
    await convert(lab, mine.leaseId, 'exclusive');
    lab.journal.hold();
    const released = lab.release(other.leaseId);
    await settle();
    expect(await lab.during(lab.lease(mine.leaseId, 1), 10, 1)).toMatchObject({ mode: 'shared', state: 'held', queuePosition: 1 });
    const poll = lab.lease(mine.leaseId, 10_000);
    await settle();
    lab.journal.release();
    await released;
    const upgraded = await poll;
    expect(upgraded).toMatchObject({ mode: 'exclusive', state: 'held', queuePosition: null });
    expect(tokenOf(upgraded)).toBeGreaterThan(tokenOf(mine));
  });

  it('a second upgrader is refused at once', async () => {
    const lab = new LockLab();
    const [one, two] = [await lab.acquire(A, { mode: 'shared' }), await lab.acquire(A, { mode: 'shared' })];
    await convert(lab, one.leaseId, 'exclusive');
    await expect(convert(lab, two.leaseId, 'exclusive')).rejects.toMatchObject({ code: 'upgrade_conflict' });
    expect((await lab.lease(two.leaseId)).state).toBe('held');
  });

  it('an upgrade is given up by converting to shared', async () => {
    const lab = new LockLab();
    const [one, two] = [await lab.acquire(A, { mode: 'shared' }), await lab.acquire(A, { mode: 'shared' })];
    await convert(lab, one.leaseId, 'exclusive');
    expect(await convert(lab, one.leaseId, 'shared')).toMatchObject({ mode: 'shared', fencingToken: one.fencingToken });
    await convert(lab, two.leaseId, 'exclusive');
    await lab.release(one.leaseId);
    expect(await lab.lease(two.leaseId, 100)).toMatchObject({ mode: 'exclusive' });
  });

  it('a downgrade waits for the commit section that pins the lease, and admits no new one meanwhile', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    const pin = lab.locks.writeLeases.pin(A, tokenOf(lease));
    let done = false;
    const converted = convert(lab, lease.leaseId, 'shared').finally(() => {
      done = true;
    });
    await settle();
    expect(done).toBe(false);
    expect(() => lab.locks.writeLeases.pin(A, tokenOf(lease))).toThrowError(expect.objectContaining({ code: 'lease_is_shared' }));
    await expect(lab.acquire(A, { mode: 'shared' })).rejects.toMatchObject({ code: 'lock_not_acquired' });
    pin.leave();
    expect((await converted).mode).toBe('shared');
  });

  it('leaves the lease as it was when the journal refuses an upgrade', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { mode: 'shared' });
    lab.journal.failing = 1;
    await expect(convert(lab, lease.leaseId, 'exclusive')).rejects.toMatchObject({ code: 'journal_unavailable' });
    expect(await lab.lease(lease.leaseId)).toMatchObject({ mode: 'shared', state: 'held', fencingToken: lease.fencingToken });
    expect((await lab.acquire(A, { mode: 'shared' })).state).toBe('held');
    expect((await convert(lab, lease.leaseId, 'exclusive')).mode).toBe('shared');
  });

  it('of a lease that ends meanwhile is over with it: the poll is answered at once, without a place, and so is who acquires again', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 600_000, clientId: null });
    await lab.acquire(A, { mode: 'shared', ttlMs: 600_000 });
    const { leaseId } = await lab.acquire(A, { mode: 'shared', ttlMs: 600_000 });
    await convert(lab, leaseId, 'exclusive');
    const poll = lab.lease(leaseId, 60_000);
    await lab.locks.breakLock(anybody, { resource: A, reason: 'stuck', graceMs: 0 });
    await settle();
    expect(await poll).toMatchObject({ state: 'broken', queuePosition: null });
    expect(await lab.lease(leaseId, 60_000)).toMatchObject({ state: 'broken', queuePosition: null });
    const reader = await lab.acquire(A, { mode: 'shared', ttlMs: 600_000, sessionId });
    await lab.acquire(A, { mode: 'shared', ttlMs: 600_000 });
    const again = lab.acquire(A, { mode: 'exclusive', sessionId, waitMs: 60_000 });
    const refused = expect(again).rejects.toMatchObject({ code: 'lock_not_acquired', members: { lease_ref: reader.leaseRef, state: 'broken' } });
    await settle();
    await lab.locks.breakLock(anybody, { resource: A, reason: 'stuck', graceMs: 0 });
    await settle();
    await refused;
  });

  it('that acquiring again means is refused when another request of the session gives it up', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 600_000, clientId: null });
    const mine = await lab.acquire(A, { mode: 'shared', sessionId });
    await lab.acquire(A, { mode: 'shared', ttlMs: 600_000 });
    const again = lab.acquire(A, { mode: 'exclusive', sessionId, waitMs: 60_000 });
    const refused = expect(again).rejects.toMatchObject({ code: 'lock_not_acquired', members: { lease_ref: mine.leaseRef } });
    await settle();
    await convert(lab, mine.leaseId, 'shared');
    await refused;
    expect(await lab.lease(mine.leaseId)).toMatchObject({ state: 'held', mode: 'shared', holdCount: 1 });
  });

  it('that waits is over when the gateway stops: its poll is answered at once, and says so', async () => {
    const lab = new LockLab();
    const mine = await lab.acquire(A, { mode: 'shared', ttlMs: 60_000 });
    await lab.acquire(A, { mode: 'shared', ttlMs: 60_000 });
    await convert(lab, mine.leaseId, 'exclusive');
    const poll = lab.lease(mine.leaseId, 60_000);
    const waiter = lab.acquire(A, { mode: 'shared', waitMs: 60_000 });
    const lost = expect(waiter).rejects.toMatchObject({ code: 'lock_not_acquired', members: { state: 'lost' } });
    await settle();
    await lab.locks.endAll('shutdown', null);
    expect(await poll).toMatchObject({ state: 'held', mode: 'shared', queuePosition: null, reason: 'upgrade_lost' });
    await lost;
    await expect(convert(lab, mine.leaseId, 'exclusive')).rejects.toMatchObject({ code: 'draining' });
    expect(await convert(lab, mine.leaseId, 'shared')).toMatchObject({ state: 'held', reason: null });
  });

  it('that was just asked for when the gateway stops is over, too, and says so for whoever asks later', async () => {
    const lab = new LockLab();
    const mine = await lab.acquire(A, { mode: 'shared', ttlMs: 60_000 });
    await lab.acquire(A, { mode: 'shared', ttlMs: 60_000 });
    const asked = convert(lab, mine.leaseId, 'exclusive');
    await lab.locks.endAll('shutdown', null);
    expect(await asked).toMatchObject({ state: 'held', mode: 'shared', queuePosition: null, reason: 'upgrade_lost' });
    expect(await lab.lease(mine.leaseId)).toMatchObject({ reason: 'upgrade_lost' });
  });

  it('an ended lease converts no more', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    await lab.release(lease.leaseId);
    await expect(convert(lab, lease.leaseId, 'shared')).rejects.toMatchObject({ code: 'lease_not_held' });
  });
});
