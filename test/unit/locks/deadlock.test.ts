import { describe, expect, it } from 'vitest';
import { cycleMembers } from '../../../src/domain/deadlock.ts';
import type { LeaseView } from '../../../src/domain/lock-api.ts';
import { COORDINATORS } from '../../support/coordinators.ts';
import { settle } from '../../support/fake-clock.ts';
import { anybody, type LockLab, never, resource } from '../../support/lock-lab.ts';

const [A, B, C] = [resource('a'), resource('b'), resource('c')];

async function session(lab: LockLab, clientId: string): Promise<string> {
  return (await lab.locks.service.createSession(anybody, { ttlMs: 3_600_000, clientId })).sessionId;
}

/** In any order: where a cycle begins means nothing. */
const RING = expect.arrayContaining([
  { waiterLeaseRef: expect.any(String), waiterClientId: 'one', resource: 'vol/a' },
  { waiterLeaseRef: expect.any(String), waiterClientId: 'two', resource: 'vol/b' },
]);

/** One reads A, asks to become its writer, and holds B; two reads A and waits for B. @returns the lease of one on A. */
async function upgradeInCycle(lab: LockLab): Promise<LeaseView> {
  const [s1, s2] = [await session(lab, 'one'), await session(lab, 'two')];
  const mine = await lab.acquire(A, { sessionId: s1, mode: 'shared', priority: 1, ttlMs: 60_000 });
  await lab.acquire(A, { sessionId: s2, mode: 'shared', ttlMs: 60_000 });
  await lab.acquire(B, { sessionId: s1, ttlMs: 60_000 });
  lab.acquire(B, { sessionId: s2, waitMs: 60_000, ttlMs: 60_000 }).catch(() => undefined);
  await settle();
  await lab.locks.service.convert(anybody, mine.leaseId, 'exclusive', never);
  return mine;
}

describe.each(COORDINATORS)('a deadlock ($coordinator)', ({ LockLab }) => {
  it('is found and broken: the youngest of equals gives way, with the cycle in the answer', async () => {
    const lab = new LockLab();
    const [s1, s2] = [await session(lab, 'one'), await session(lab, 'two')];
    await lab.acquire(A, { sessionId: s1, clientId: 'one' });
    await lab.acquire(B, { sessionId: s2, clientId: 'two' });
    const first = lab.acquire(B, { sessionId: s1, clientId: 'one', waitMs: 60_000 });
    await settle();
    const second = lab.acquire(A, { sessionId: s2, clientId: 'two', waitMs: 60_000 });
    second.catch(() => undefined);
    await settle();
    expect(lab.locks.waitFor()).toHaveLength(2);
    await lab.clock.advanceAsync(200);
    await expect(second).rejects.toMatchObject({
      code: 'deadlock',
      members: {
        cycle: expect.arrayContaining([
          expect.objectContaining({ client_id: 'one', waits_for: 'vol/b' }),
          expect.objectContaining({ client_id: 'two', waits_for: 'vol/a' }),
        ]),
      },
    });
    expect(lab.journal.decisions()).toContain('deadlock:deadlock');
    await lab.locks.service.endSession(anybody, s2);
    expect((await first).state).toBe('held');
  });

  it('lets the least important give way, in a ring of three', async () => {
    const lab = new LockLab();
    const sessions = await Promise.all(['one', 'two', 'three'].map((id) => session(lab, id)));
    const places = [A, B, C];
    for (const [i, sessionId] of sessions.entries()) await lab.acquire(places[i] ?? A, { sessionId });
    const waits = sessions.map((sessionId, i) => lab.acquire(places[(i + 1) % 3] ?? A, { sessionId, waitMs: 60_000, priority: i === 0 ? 2 : 5 }));
    for (const wait of waits) wait.catch(() => undefined);
    await lab.clock.advanceAsync(500);
    await expect(waits[0]).rejects.toMatchObject({ code: 'deadlock' });
    expect(lab.locks.waitFor()).toHaveLength(2);
  });

  it('is found through contenders that are only before in line, without harming a bystander', async () => {
    const lab = new LockLab();
    const [s1, s2, s3] = [await session(lab, 'one'), await session(lab, 'two'), await session(lab, 'three')];
    await lab.acquire(A, { sessionId: s1 });
    await lab.acquire(B, { sessionId: s2 });
    const bystander = lab.acquire(B, { sessionId: s3, waitMs: 60_000, priority: 0 });
    await settle();
    const one = lab.acquire(B, { sessionId: s1, waitMs: 60_000 });
    await settle();
    const two = lab.acquire(A, { sessionId: s2, waitMs: 60_000 });
    for (const wait of [bystander, one, two]) wait.catch(() => undefined);
    await lab.clock.advanceAsync(500);
    await expect(two).rejects.toMatchObject({ code: 'deadlock' });
    await lab.locks.service.endSession(anybody, s2);
    await lab.clock.advanceAsync(10);
    expect((await one).state).toBe('held');
    await lab.release((await one).leaseId);
    expect((await bystander).state).toBe('held');
  });

  it('shows its cycle to who asked for the upgrade as to everybody', async () => {
    const lab = new LockLab();
    const [s1, s2] = [await session(lab, 'one'), await session(lab, 'two')];
    await lab.acquire(A, { sessionId: s1, clientId: 'one', mode: 'shared' });
    await lab.acquire(A, { sessionId: s2, clientId: 'two', mode: 'shared' });
    await lab.acquire(B, { sessionId: s1, clientId: 'one' });
    const other = lab.acquire(B, { sessionId: s2, clientId: 'two', waitMs: 60_000, priority: 9 });
    other.catch(() => undefined);
    await settle();
    const upgrade = lab.acquire(A, { sessionId: s1, clientId: 'one', mode: 'exclusive', waitMs: 60_000, priority: 1 });
    upgrade.catch(() => undefined);
    await lab.clock.advanceAsync(500);
    await expect(upgrade).rejects.toMatchObject({
      code: 'deadlock',
      members: {
        cycle: expect.arrayContaining([
          { lease_ref: expect.any(String), client_id: 'one', waits_for: 'vol/a' },
          { lease_ref: expect.any(String), client_id: 'two', waits_for: 'vol/b' },
        ]),
      },
    });
  });

  it('by an upgrade costs the upgrade, not the lease; the next conversion says nothing of it', async () => {
    const lab = new LockLab();
    const mine = await upgradeInCycle(lab);
    await lab.clock.advanceAsync(500);
    expect(await lab.lease(mine.leaseId)).toMatchObject({ state: 'held', mode: 'shared', reason: 'deadlock', queuePosition: null, cycle: RING });
    expect(lab.locks.waitFor()).toHaveLength(1);
    expect(await lab.locks.service.convert(anybody, mine.leaseId, 'shared', never)).toMatchObject({ state: 'held', reason: null, cycle: null });
  });

  it('by an upgrade is recorded, told as an event, and only then answered', async () => {
    const lab = new LockLab();
    const leave = new AbortController();
    const events = (await lab.locks.events.watch(anybody, { of: 'resource', resource: A }, null, leave.signal))[Symbol.asyncIterator]();
    const mine = await upgradeInCycle(lab);
    lab.journal.hold();
    const poll = lab.lease(mine.leaseId, 60_000);
    let told = false;
    void poll.then(() => {
      told = true;
    });
    await lab.clock.advanceAsync(500);
    expect([told, (await lab.lease(mine.leaseId)).reason]).toEqual([false, null]);
    lab.journal.release();
    expect(await poll).toMatchObject({ mode: 'shared', reason: 'deadlock', cycle: RING });
    const records = lab.journal.records.filter(({ action }) => action === 'deadlock');
    expect(records).toMatchObject([
      {
        outcome: 'committed',
        code: 'deadlock',
        path: 'a',
        leaseRef: mine.leaseRef,
        fencingToken: mine.fencingToken,
        clientId: 'one',
        durationMs: 50,
      },
    ]);
    const { cycle } = await lab.lease(mine.leaseId);
    expect(JSON.parse(records[0]?.detail ?? '')).toEqual({ reason: 'deadlock', cycle: cycleMembers(cycle ?? []) });
    const seen: unknown[] = [];
    while (seen.length < 4) seen.push((await events.next()).value);
    expect(seen.at(-2)).toMatchObject({ type: 'waiting', leaseRef: mine.leaseRef, mode: 'shared', reason: 'upgrade' });
    expect(seen.at(-1)).toMatchObject({ type: 'deadlock', leaseRef: mine.leaseRef, mode: 'shared', reason: 'deadlock', cycle: RING });
    leave.abort();
  });

  it('by an upgrade is what the journal says when it refuses the record; the lease stays what it was', async () => {
    const lab = new LockLab();
    const mine = await upgradeInCycle(lab);
    lab.journal.failing = 1;
    await lab.clock.advanceAsync(500);
    expect(await lab.lease(mine.leaseId)).toMatchObject({ state: 'held', mode: 'shared', reason: 'journal_unavailable', queuePosition: null });
    expect(lab.journal.decisions()).not.toContain('deadlock:deadlock');
  });

  it('shows its cycle to who polls the wait that gave way, in its event and in its record', async () => {
    const lab = new LockLab();
    const [s1, s2] = [await session(lab, 'one'), await session(lab, 'two')];
    await lab.acquire(A, { sessionId: s1 });
    await lab.acquire(B, { sessionId: s2 });
    const [first, second] = [
      await lab.during(lab.acquire(B, { sessionId: s1, waitMs: 1, ttlMs: 60_000 }), 10, 1),
      await lab.during(lab.acquire(A, { sessionId: s2, waitMs: 1, ttlMs: 60_000 }), 10, 1),
    ];
    const leave = new AbortController();
    const events = (await lab.locks.events.watch(anybody, { of: 'resource', resource: A }, null, leave.signal))[Symbol.asyncIterator]();
    await lab.clock.advanceAsync(500);
    const cycle = [
      { waiterLeaseRef: second.leaseRef, waiterClientId: 'two', resource: 'vol/a' },
      { waiterLeaseRef: first.leaseRef, waiterClientId: 'one', resource: 'vol/b' },
    ];
    const polled = await lab.lease(second.leaseId);
    expect(polled).toMatchObject({ state: 'cancelled', reason: 'deadlock', cycle: expect.arrayContaining(cycle) });
    expect((await events.next()).value).toMatchObject({ type: 'deadlock', leaseRef: second.leaseRef, cycle: polled.cycle });
    const record = lab.journal.records.find(({ action }) => action === 'deadlock');
    expect(JSON.parse(record?.detail ?? '')).toEqual({ reason: 'deadlock', cycle: cycleMembers(polled.cycle ?? []) });
    expect((await lab.lease(first.leaseId)).cycle).toBeNull();
    leave.abort();
  });

  it('is not seen where a wait ends by itself within the confirming time', async () => {
    const lab = new LockLab();
    const [s1, s2] = [await session(lab, 'one'), await session(lab, 'two')];
    await lab.acquire(A, { sessionId: s1 });
    const onB = await lab.acquire(B, { sessionId: s2 });
    const first = lab.acquire(B, { sessionId: s1, waitMs: 60_000 });
    await settle();
    const second = lab.acquire(A, { sessionId: s2, waitMs: 60_000 });
    second.catch(() => undefined);
    await lab.clock.advanceAsync(20);
    await lab.release(onB.leaseId);
    await lab.clock.advanceAsync(500);
    expect((await first).state).toBe('held');
    expect(lab.journal.decisions()).not.toContain('deadlock:deadlock');
  });
});
