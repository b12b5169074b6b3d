import { expect, it } from 'vitest';
import { cycleMembers } from '../../src/domain/deadlock.ts';
import type { LeaseMode } from '../../src/domain/lease.ts';
import type { LeaseView } from '../../src/domain/lock-api.ts';
import { settle } from './fake-clock.ts';
import { callerOf, type LockLab, never, resource, tokenOf } from './lock-lab.ts';

const LEDGER = resource('ledger/q3.csv');

/** What every coordinator must do about waits and holds that somebody else ends: upgrades, breaks, deadlocks. */
export function endsContract(make: () => LockLab): void {
  it('shows a pending upgrade among those who wait, before all others, since it was asked for', async () => {
    const lab = make();
    const [mine, other] = [
      await lab.acquire(LEDGER, { mode: 'shared', ttlMs: 60_000 }),
      await lab.acquire(LEDGER, { mode: 'shared', ttlMs: 60_000 }),
    ];
    await lab.clock.advanceAsync(1_000);
    await convert(lab, mine.leaseId, 'exclusive');
    const writer = await lab.during(lab.acquire(LEDGER, { waitMs: 1, ttlMs: 60_000 }), 10, 1);
    const [asked, next] = [await lab.lease(mine.leaseId), await lab.lease(writer.leaseId)];
    expect([asked.queuePosition, next.queuePosition]).toEqual([1, 2]);
    const lock = await lab.locks.service.lock(LEDGER);
    expect(lock).toMatchObject({ mode: 'shared', queueLength: 2 });
    expect(lock.holders.map(({ leaseRef }) => leaseRef)).toEqual([mine.leaseRef, other.leaseRef]);
    expect(lock.waiters.map(({ leaseRef }) => leaseRef)).toEqual([mine.leaseRef, writer.leaseRef]);
    expect(Date.parse(lock.waiters[0]?.since ?? '') - Date.parse(mine.grantedAt ?? '')).toBeGreaterThanOrEqual(1_000);
    expect((await lab.locks.service.locks({ state: 'waiting', limit: 10, cursor: null })).locks).toHaveLength(1);
    await expect(lab.acquire(LEDGER, { mode: 'shared' })).rejects.toMatchObject({ members: { queue_length: 2 } });
    await convert(lab, mine.leaseId, 'shared');
    expect((await lab.locks.service.lock(LEDGER)).waiters.map(({ leaseRef }) => leaseRef)).toEqual([writer.leaseRef]);
    expect((await lab.lease(writer.leaseId)).queuePosition).toBe(1);
  });

  it('ends a pending upgrade with its lease: no place in line is left, and nobody waits with it', async () => {
    const lab = make();
    const mine = await lab.acquire(LEDGER, { mode: 'shared', ttlMs: 3_600_000 });
    await lab.acquire(LEDGER, { mode: 'shared', ttlMs: 3_600_000 });
    await convert(lab, mine.leaseId, 'exclusive');
    const poll = lab.lease(mine.leaseId, 60_000);
    await lab.locks.breakLock(callerOf(null), { resource: LEDGER, reason: 'stuck', graceMs: 0 });
    expect(await lab.during(poll, 100, 1)).toMatchObject({ state: 'broken', mode: 'shared', queuePosition: null });
    expect(await lab.locks.service.lock(LEDGER)).toMatchObject({ holders: [], waiters: [], queueLength: 0 });
    expect((await lab.acquire(LEDGER)).state).toBe('held');
  });

  it('breaks a lease for an administrator: fenced by a number that nobody gets, then over, then the next one comes in above it', async () => {
    const lab = make();
    const lease = await lab.acquire(LEDGER, { ttlMs: 3_600_000 });
    const waiter = lab.acquire(LEDGER, { waitMs: 60_000 });
    await settle();
    const { state, highWaterMark } = await lab.locks.breakLock(callerOf(null), { resource: LEDGER, reason: 'stuck', graceMs: 0 });
    expect(state).toBe('broken');
    expect(highWaterMark !== null && highWaterMark > tokenOf(lease)).toBe(true);
    expect(tokenOf(await waiter) > (highWaterMark ?? 0n)).toBe(true);
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'broken', reason: 'broken' });
    expect(() => lab.locks.writeLeases.pin(LEDGER, tokenOf(lease))).toThrowError(expect.objectContaining({ code: 'stale_token' }));
  });

  it('lets nobody new in during the grace of a break, in which the holder may write, and then breaks', async () => {
    const lab = make();
    const lease = await lab.acquire(LEDGER, { ttlMs: 3_600_000 });
    expect((await lab.locks.breakLock(callerOf(null), { resource: LEDGER, reason: 'stuck', graceMs: 5_000 })).state).toBe('breaking');
    const waiter = lab.acquire(LEDGER, { waitMs: 60_000, ttlMs: 60_000 });
    await lab.clock.advanceAsync(4_999);
    lab.locks.writeLeases.pin(LEDGER, tokenOf(lease)).leave();
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'held', reason: 'breaking' });
    await lab.clock.advanceAsync(1);
    expect((await waiter).state).toBe('held');
    expect((await lab.lease(lease.leaseId)).state).toBe('broken');
    // Readers beside a reader, too.
    const other = resource('grace/readers');
    const reader = await lab.acquire(other, { mode: 'shared', ttlMs: 3_600_000 });
    await lab.locks.breakLock(callerOf(null), { resource: other, reason: 'stuck', graceMs: 5_000 });
    await expect(lab.acquire(other, { mode: 'shared' })).rejects.toMatchObject({ code: 'lock_not_acquired' });
    await lab.release(reader.leaseId);
    expect((await lab.acquire(other, { mode: 'shared', waitMs: 1_000 })).state).toBe('held');
  });

  it('a second announcement of a break never moves the deadline back, and the first has its last word: aborted', async () => {
    const lab = make();
    const lease = await lab.acquire(LEDGER, { ttlMs: 3_600_000 });
    const breakLock = (graceMs: number) => lab.locks.breakLock(callerOf(null), { resource: LEDGER, reason: `in ${graceMs}`, graceMs });
    const first = await breakLock(5_000);
    await lab.clock.advanceAsync(1_000);
    const second = await breakLock(60_000);
    expect(second).toMatchObject({ state: 'breaking', deadline: first.deadline });
    expect((await lab.lease(lease.leaseId)).expiresInMs).toBeLessThanOrEqual(4_000);
    expect(lastWords(lab)).toEqual([
      ['in 5000', 'aborted'],
      ['in 60000', 'committed'],
    ]);
    await lab.clock.advanceAsync(3_999);
    expect((await lab.lease(lease.leaseId)).state).toBe('held');
    await lab.clock.advanceAsync(1);
    expect((await lab.lease(lease.leaseId)).state).toBe('broken');
    expect(lab.journal.pending.size).toBe(0);
  });

  it('a break at once is another one than the break that was announced: the first is aborted, the second a record of its own', async () => {
    const lab = make();
    await lab.acquire(LEDGER, { ttlMs: 3_600_000 });
    const breakLock = (reason: string, graceMs: number) => lab.locks.breakLock(callerOf(reason), { resource: LEDGER, reason, graceMs });
    await breakLock('later', 60_000);
    expect((await breakLock('now', 0)).state).toBe('broken');
    expect(lastWords(lab)).toEqual([
      ['later', 'aborted'],
      ['now', 'committed'],
    ]);
    expect([lab.journal.breaks.size, lab.journal.pending.size]).toEqual([0, 0]);
    expect((await lab.acquire(LEDGER)).state).toBe('held');
  });

  it('finds a deadlock between sessions: the youngest of equals is refused with the cycle, the other one goes on', async () => {
    const lab = make();
    const [a, b] = [resource('deadlock/a'), resource('deadlock/b')];
    const [one, two] = [await session(lab), await session(lab)];
    await lab.acquire(a, { sessionId: one });
    const held = await lab.acquire(b, { sessionId: two });
    const first = lab.acquire(b, { sessionId: one, waitMs: 60_000 });
    await settle();
    const second = lab.acquire(a, { sessionId: two, waitMs: 60_000 });
    const refused = expect(second).rejects.toMatchObject({ code: 'deadlock', members: { cycle: [expect.anything(), expect.anything()] } });
    await lab.clock.advanceAsync(500);
    await refused;
    expect(JSON.parse(lab.journal.records.find(({ action }) => action === 'deadlock')?.detail ?? '')).toMatchObject({ cycle: [{}, {}] });
    // What the victim's session holds stays held.
    expect((await lab.lease(held.leaseId)).state).toBe('held');
    await lab.release(held.leaseId);
    expect((await first).state).toBe('held');
  });

  it('records a deadlock that costs an upgrade, and shows its cycle to who polls the lease, which stays what it was', async () => {
    const lab = make();
    const [a, b] = [resource('upgrade/a'), resource('upgrade/b')];
    const [one, two] = [await session(lab), await session(lab)];
    const mine = await lab.acquire(a, { sessionId: one, mode: 'shared', priority: 1 });
    await lab.acquire(a, { sessionId: two, mode: 'shared' });
    await lab.acquire(b, { sessionId: one });
    lab.acquire(b, { sessionId: two, waitMs: 60_000 }).catch(() => undefined);
    await settle();
    await convert(lab, mine.leaseId, 'exclusive');
    const poll = lab.lease(mine.leaseId, 60_000);
    await lab.clock.advanceAsync(500);
    expect(await poll).toMatchObject({ state: 'held', mode: 'shared', fencingToken: mine.fencingToken, reason: 'deadlock', queuePosition: null });
    const { cycle } = await poll;
    expect(cycle?.map(({ resource: where }) => where).sort()).toEqual([a.name, b.name]);
    expect(lab.journal.records.filter(({ action }) => action === 'deadlock')).toMatchObject([
      { code: 'deadlock', leaseRef: mine.leaseRef, detail: JSON.stringify({ reason: 'deadlock', cycle: cycleMembers(cycle ?? []) }) },
    ]);
    expect((await lab.locks.service.lock(a)).waiters).toEqual([]);
  });
}

/** Reason and outcome of every break, as a query shows them: by its last word. */
function lastWords(lab: LockLab): unknown[] {
  const words = new Map(
    lab.journal.records
      .filter(({ action }) => action === 'lease_break')
      .map(({ operationId, detail, outcome }) => [operationId, [JSON.parse(detail ?? '').reason, outcome]]),
  );
  return [...words.values()];
}

function convert(lab: LockLab, leaseId: string, mode: LeaseMode): Promise<LeaseView> {
  return lab.locks.service.convert(callerOf(null), leaseId, mode, never);
}

async function session(lab: LockLab): Promise<string> {
  return (await lab.locks.service.createSession(callerOf(null), { ttlMs: 3_600_000, clientId: null })).sessionId;
}
