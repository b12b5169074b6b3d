import { describe, expect, it } from 'vitest';
import { settle } from '../../support/fake-clock.ts';
import { anybody, callerOf, LockLab, never, resource, tokenOf } from '../../support/lock-lab.ts';

/** Waits whose clients were told of them, and what they are told when a restart, or something like it, ended them. */

const [A, B] = [resource('a'), resource('b')];
const ann = callerOf('ann', 'shop');

/** A session that holds one thing and waits for another, and another client's wait without a session. */
async function waitsBehind(lab: LockLab) {
  const holder = await lab.acquire(A, { ttlMs: 600_000 });
  const { sessionId } = await lab.locks.service.createSession(ann, { ttlMs: 600_000, clientId: null });
  const own = await lab.acquire(B, { sessionId, ttlMs: 600_000 }, ann);
  const terms = { waitMs: 1, ttlMs: 600_000, priority: 7, metadata: { job: 7 } };
  const waiting = await lab.during(lab.acquire(A, { sessionId, ...terms }, ann), 10, 1);
  const alone = await lab.during(lab.acquire(A, { waitMs: 1, ttlMs: 600_000 }), 10, 1);
  return { holder, sessionId, own, waiting, alone };
}

const lostOf = async (lab: LockLab, sessionId: string) => (await lab.locks.service.heartbeat(anybody, sessionId)).lost;
const losses = (lab: LockLab) =>
  lab.journal.records.filter(({ action }) => action === 'lease_lose').map(({ leaseRef, path, clientId }) => ({ leaseRef, path, clientId }));

describe('a wait that a restart ended', () => {
  it.each([
    ['without a word', async () => undefined],
    ['in good order', (lab: LockLab) => lab.locks.endAll('shutdown', null)],
  ])('is in the audit log and in the heartbeats of its session, which came back, when the process went %s', async (_, go) => {
    const lab = new LockLab();
    const { sessionId, own, waiting, alone } = await waitsBehind(lab);
    await go(lab);
    const after = await lab.restarted();
    for (let i = 0; i < 2; i += 1) expect(await lostOf(after, sessionId)).toEqual([waiting.leaseId]);
    expect(losses(after)).toEqual([
      { leaseRef: waiting.leaseRef, path: 'a', clientId: 'shop' },
      { leaseRef: alone.leaseRef, path: 'a', clientId: null },
    ]);
    expect((await after.lease(own.leaseId, 0, ann)).state).toBe('held');
    const told = {
      state: 'lost',
      reason: 'lost',
      resources: [A],
      mode: 'exclusive',
      sessionId,
      fencingToken: null,
      grantedAt: null,
      queuePosition: null,
    };
    expect(await after.lease(waiting.leaseId, 0, ann)).toMatchObject({ ...told, priority: 7, metadata: { job: 7 }, clientId: 'shop' });
    // By the next start the same, and nothing is recorded twice.
    const later = await after.restarted({ seed: 3 });
    expect(await lostOf(later, sessionId)).toEqual([waiting.leaseId]);
    expect(losses(later)).toHaveLength(2);
    expect(later.journal.waits.size).toBe(0);
  });

  it("is its principal's alone", async () => {
    const lab = new LockLab();
    const { waiting } = await waitsBehind(lab);
    const after = await lab.restarted();
    await expect(after.lease(waiting.leaseId, 0, callerOf('bob'))).rejects.toMatchObject({ code: 'not_lease_owner' });
  });

  it('that became a lease, or had ended, is lost no more', async () => {
    const lab = new LockLab();
    const { holder, sessionId, waiting, alone } = await waitsBehind(lab);
    await lab.release(alone.leaseId);
    await lab.release(holder.leaseId);
    expect(tokenOf(await lab.lease(waiting.leaseId, 0, ann))).toBeGreaterThan(0n);
    const brief = await lab.during(lab.acquire(A, { sessionId: (await session(lab)).sessionId, waitMs: 1, ttlMs: 1_000 }), 10, 1);
    await lab.clock.advanceAsync(1_000);
    expect((await lab.lease(brief.leaseId)).state).toBe('expired');
    const after = await lab.restarted();
    expect((await after.lease(waiting.leaseId, 0, ann)).state).toBe('held');
    expect([await lostOf(after, sessionId), losses(after), lab.journal.waits.size]).toEqual([[], [], 0]);
    expect(await after.lease(brief.leaseId)).toMatchObject({ state: 'expired', resources: [A] });
  });

  it('costs nobody the place when the journal does not take it, or takes long; then only a poll tells', async () => {
    const lab = new LockLab();
    await lab.acquire(A, { ttlMs: 600_000 });
    const { sessionId } = await session(lab);
    lab.journal.failing = 1;
    const refused = await lab.during(lab.acquire(A, { sessionId, waitMs: 1, ttlMs: 600_000 }), 10, 1);
    lab.journal.hold();
    const slow = await lab.during(lab.acquire(A, { waitMs: 1, ttlMs: 600_000 }), 1_000, 10);
    expect([refused.state, slow.state]).toEqual(['waiting', 'waiting']);
    const after = await lab.restarted();
    expect([await lostOf(after, sessionId), losses(after)]).toEqual([[], []]);
    for (const { leaseId } of [refused, slow]) expect(await after.lease(leaseId)).toMatchObject({ state: 'lost', resources: [] });
  });

  it('was in the journal before its client was told', async () => {
    const lab = new LockLab();
    await lab.acquire(A, { ttlMs: 600_000 });
    lab.journal.hold();
    let told = false;
    const asked = lab.acquire(A, { waitMs: 1, ttlMs: 600_000 }).finally(() => {
      told = true;
    });
    await lab.clock.advanceAsync(10);
    expect(told).toBe(false);
    lab.journal.release();
    const { leaseRef } = await asked;
    expect([...lab.journal.waits.keys()]).toEqual([leaseRef]);
  });

  it('is not stored while its first request is open: nobody knows it', async () => {
    const lab = new LockLab();
    await lab.acquire(A, { ttlMs: 600_000 });
    const gone = new AbortController();
    const asked = lab.acquire(A, { waitMs: 60_000 }, anybody, gone.signal).catch(() => undefined);
    await settle();
    expect(lab.journal.waits.size).toBe(0);
    gone.abort(new Error('gone'));
    await asked;
  });
});

describe('a wait that is lost while the gateway goes on', () => {
  it('with its volume is in the heartbeats of its session at once', async () => {
    const lab = new LockLab();
    const { sessionId, own, waiting } = await waitsBehind(lab);
    await lab.locks.endAll('lost', 'vol');
    expect([...(await lostOf(lab, sessionId))].sort()).toEqual([own.leaseId, waiting.leaseId].sort());
  });

  it('because a later name of it has no place left is recorded, and told', async () => {
    const lab = new LockLab({ policy: { limits: { queueLength: 1 } } });
    const first = await lab.acquire(A, { ttlMs: 600_000 });
    await lab.acquire(B, { ttlMs: 600_000 });
    const { sessionId } = await session(lab);
    const both = await lab.during(lab.acquire([A, B], { sessionId, waitMs: 1, ttlMs: 600_000 }), 10, 1);
    lab.acquire(B, { waitMs: 60_000, ttlMs: 600_000 }, anybody, never).catch(() => undefined);
    await settle();
    await lab.release(first.leaseId);
    await settle();
    expect(await lab.lease(both.leaseId)).toMatchObject({ state: 'lost', reason: 'queue_full' });
    expect(await lab.locks.service.heartbeat(anybody, sessionId)).toMatchObject({ lost: [both.leaseId] });
    expect(lab.journal.decisions().filter((decision) => decision.startsWith('lease_lose'))).toEqual([
      'lease_lose:queue_full',
      'lease_lose:queue_full',
    ]);
    expect((await lab.acquire(A)).state).toBe('held');
    expect(lab.journal.waits.size).toBe(0);
  });
});

function session(lab: LockLab) {
  return lab.locks.service.createSession(anybody, { ttlMs: 600_000, clientId: null });
}
