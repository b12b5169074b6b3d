import { describe, expect, it } from 'vitest';
import { fencingToken } from '../../../src/domain/fencing-token.ts';
import { COORDINATORS } from '../../support/coordinators.ts';
import { settle } from '../../support/fake-clock.ts';
import { anybody, callerOf, type LockLab, never, resource, tokenOf } from '../../support/lock-lab.ts';

const [A, B] = [resource('a'), resource('b')];
const implicit = (lab: LockLab, waitMs = 0, resources = [A], signal: AbortSignal = never) =>
  lab.locks.writeLeases.acquireImplicit({ resources, caller: callerOf(null, 'curl'), waitMs, signal });

describe.each(COORDINATORS)('facts for a verdict ($coordinator)', ({ LockLab }) => {
  it('of a name that was never leased are empty', async () => {
    expect(await new LockLab().locks.writeLeases.facts(A, fencingToken(7n))).toEqual({ mark: null, live: null, atMark: null, everNamed: false });
  });

  it('of a live lease name it at the mark', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, {}, callerOf('ann'));
    expect(await lab.locks.writeLeases.facts(A, tokenOf(lease))).toMatchObject({
      mark: lease.fencingToken,
      live: { leaseRef: lease.leaseRef, mode: 'exclusive', principal: 'ann' },
      atMark: { leaseRef: lease.leaseRef, principal: 'ann', ended: null },
      everNamed: true,
    });
  });

  it('of an ended lease say why and when, also after a restart', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 1_000 });
    await lab.clock.advanceAsync(1_000);
    const wanted = {
      mark: lease.fencingToken,
      live: null,
      atMark: { leaseRef: lease.leaseRef, ended: { reason: 'expired', endedAt: expect.any(String) } },
      everNamed: true,
    };
    expect(await lab.locks.writeLeases.facts(A, tokenOf(lease))).toMatchObject(wanted);
    const after = await lab.restarted();
    expect(await after.locks.writeLeases.facts(A, tokenOf(lease))).toMatchObject(wanted);
  });

  it('of a live reader below the mark show that shared lease', async () => {
    const lab = new LockLab();
    const [first, second] = [await lab.acquire(A, { mode: 'shared' }), await lab.acquire(A, { mode: 'shared' })];
    const facts = await lab.locks.writeLeases.facts(A, tokenOf(first));
    expect(facts).toMatchObject({ mark: second.fencingToken, live: { leaseRef: first.leaseRef, mode: 'shared' } });
  });

  it('do not show a grant that is not durable yet', async () => {
    const lab = new LockLab();
    const old = await lab.acquire(A);
    await lab.release(old.leaseId);
    lab.journal.hold();
    const next = lab.acquire(A);
    await settle();
    expect((await lab.locks.writeLeases.facts(A, tokenOf(old))).mark).toBe(old.fencingToken);
    lab.journal.release();
    await next;
  });

  it("of a broken lock show a mark that is nobody's", async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    await lab.locks.breakLock(callerOf('root', null, ['admin']), { resource: A, reason: 'x', graceMs: 0 });
    const facts = await lab.locks.writeLeases.facts(A, tokenOf(lease));
    expect(facts).toMatchObject({ live: null, atMark: null, everNamed: true });
    expect(facts.mark).toBeGreaterThan(tokenOf(lease));
  });

  it('of a token-less write that is over say released', async () => {
    const lab = new LockLab();
    const write = await implicit(lab);
    await lab.journal.commit(write.grantOps);
    write.release();
    expect(await lab.locks.writeLeases.facts(A, write.lease.token)).toMatchObject({
      mark: write.lease.token,
      atMark: { ended: { reason: 'released' } },
      everNamed: false,
    });
  });
});

describe.each(COORDINATORS)('facts for the verdict on a refused pin ($coordinator)', ({ LockLab }) => {
  it('have the mark that the pin met, of a grant that is not durable yet, and whose it is', async () => {
    const lab = new LockLab();
    const old = await lab.acquire(A, {}, callerOf('ann'));
    await lab.release(old.leaseId);
    lab.journal.hold();
    const next = lab.acquire(A, {}, callerOf('bob'));
    await settle();
    const met = await lab.locks.writeLeases.factsMet(A, tokenOf(old));
    lab.journal.release();
    const granted = await next;
    expect(met).toMatchObject({ mark: granted.fencingToken, live: null, atMark: { leaseRef: granted.leaseRef, principal: 'bob', ended: null } });
  });

  it('have the mark of the journal where memory has nothing of the name any more: a break, and a token-less write that is over', async () => {
    const lab = new LockLab();
    const [broken, released] = [await lab.acquire(A), await lab.acquire(B)];
    await lab.locks.breakLock(callerOf('root', null, ['admin']), { resource: A, reason: 'x', graceMs: 0 });
    await lab.release(released.leaseId);
    const write = await implicit(lab, 0, [B]);
    await lab.journal.commit(write.grantOps);
    write.release();
    expect((await lab.locks.writeLeases.factsMet(A, tokenOf(broken))).mark).toBeGreaterThan(tokenOf(broken));
    expect((await lab.locks.writeLeases.factsMet(B, tokenOf(released))).mark).toBe(write.lease.token);
  });

  it('are those of admission while nobody was there since', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    await lab.release(lease.leaseId);
    const facts = await lab.locks.writeLeases.factsMet(A, tokenOf(lease));
    expect(facts).toEqual(await lab.locks.writeLeases.facts(A, tokenOf(lease)));
    expect(facts).toMatchObject({ mark: lease.fencingToken, atMark: { ended: { reason: 'released' } } });
  });
});

describe.each(COORDINATORS)('a pin ($coordinator)', ({ LockLab }) => {
  it('is refused from the moment a new grant is decided, before that grant is durable', async () => {
    const lab = new LockLab();
    const old = await lab.acquire(A);
    lab.journal.hold();
    const released = lab.release(old.leaseId);
    const next = lab.acquire(A);
    await settle();
    expect(() => lab.locks.writeLeases.pin(A, tokenOf(old))).toThrowError(expect.objectContaining({ code: 'stale_token' }));
    lab.journal.release();
    await released;
    lab.locks.writeLeases.pin(A, tokenOf(await next)).leave();
  });

  it('of a lease over several resources holds for each of them, and for no other', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire([A, B]);
    for (const where of [A, B]) lab.locks.writeLeases.pin(where, tokenOf(lease)).leave();
    expect(() => lab.locks.writeLeases.pin(resource('c'), tokenOf(lease))).toThrowError(expect.objectContaining({ code: 'lease_ended' }));
  });

  it('keeps a release from taking effect, and from being answered, until it leaves; leaving twice counts once', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A);
    const [one, two] = [lab.locks.writeLeases.pin(A, tokenOf(lease)), lab.locks.writeLeases.pin(A, tokenOf(lease))];
    let answered = false;
    const released = lab.release(lease.leaseId).then(() => {
      answered = true;
    });
    await settle();
    one.leave();
    one.leave();
    await settle();
    expect([answered, (await lab.lease(lease.leaseId)).state, lab.journal.leases.size]).toEqual([false, 'ending', 1]);
    await expect(lab.locks.service.renew(anybody, lease.leaseId)).rejects.toMatchObject({ code: 'lease_not_held' });
    two.leave();
    await released;
    expect(lab.journal.leases.size).toBe(0);
  });
});

describe.each(COORDINATORS)('a token-less write ($coordinator)', ({ LockLab }) => {
  it('stands in the same line, and its mark goes into the unit of the write', async () => {
    const lab = new LockLab();
    const held = await lab.acquire(A);
    const write = implicit(lab, 5_000);
    await settle();
    const behind = lab.acquire(A, { waitMs: 5_000 });
    await settle();
    await lab.release(held.leaseId);
    const granted = await write;
    expect(granted.grantOps).toEqual([
      { op: 'raise_mark', resource: A, token: granted.lease.token, leaseRef: granted.lease.leaseRef, principal: 'anonymous', named: false },
    ]);
    const pin = lab.locks.writeLeases.pin(A, granted.lease.token);
    granted.release();
    await settle();
    expect((await lab.locks.service.lock(A)).queueLength).toBe(1);
    pin.leave();
    expect(tokenOf(await behind)).toBeGreaterThan(granted.lease.token);
  });

  it('is refused when its wait runs out, naming the holder and the length of the line', async () => {
    const lab = new LockLab();
    await lab.acquire(A, { clientId: 'holder', ttlMs: 60_000 });
    await lab.during(lab.acquire(A, { waitMs: 1 }), 10, 1);
    await expect(implicit(lab)).rejects.toMatchObject({
      code: 'resource_locked',
      members: { holder_client_id: 'holder', queue_length: 1 },
      retryAfterMs: expect.any(Number),
    });
    await expect(lab.during(implicit(lab, 2_000), 5_000)).rejects.toMatchObject({ code: 'resource_locked' });
    expect((await lab.locks.service.lock(A)).queueLength).toBe(1);
  });

  it('leaves the line with the reason of its signal', async () => {
    const lab = new LockLab();
    await lab.acquire(A);
    const gone = new AbortController();
    const write = implicit(lab, 60_000, [A], gone.signal);
    write.catch(() => undefined);
    await settle();
    gone.abort(new Error('client gone'));
    await expect(write).rejects.toThrow('client gone');
    expect((await lab.locks.service.lock(A)).queueLength).toBe(0);
    await expect(implicit(lab, 0, [B], gone.signal)).rejects.toThrow('client gone');
  });

  it('of several files takes all of them or none', async () => {
    const lab = new LockLab();
    await lab.acquire(B);
    await expect(implicit(lab, 0, [B, A])).rejects.toMatchObject({ code: 'resource_locked' });
    expect(lab.locks.writeLeases.holder(A)).toBeNull();
    expect((await implicit(lab, 0, [resource('c'), A])).lease.resources.map(({ path }) => path)).toEqual(['a', 'c']);
  });

  it('finds a full line full', async () => {
    const lab = new LockLab({ policy: { limits: { queueLength: 1 } } });
    await lab.acquire(A, { ttlMs: 60_000 });
    await lab.during(lab.acquire(A, { waitMs: 1, ttlMs: 60_000 }), 10, 1);
    await expect(implicit(lab, 1_000)).rejects.toMatchObject({ code: 'queue_full' });
    // Who does not wait is told who holds.
    await expect(implicit(lab, 0)).rejects.toMatchObject({ code: 'resource_locked', members: { queue_length: 1 } });
  });
});

describe.each(COORDINATORS)('an upload that keeps its lease alive ($coordinator)', ({ LockLab }) => {
  it('renews while bytes flow, and is told when the lease is over', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 2_000 });
    for (let i = 0; i < 5; i += 1) {
      lab.clock.advance(1_500);
      expect(lab.locks.writeLeases.keepAlive(A, tokenOf(lease))).toBe(true);
    }
    lab.clock.advance(2_000);
    expect(lab.locks.writeLeases.keepAlive(A, tokenOf(lease))).toBe(false);
    expect(lab.locks.writeLeases.keepAlive(B, tokenOf(lease))).toBe(false);
  });
});

describe.each(COORDINATORS)('a lease id ($coordinator)', ({ LockLab }) => {
  it('is known from its ref one way only', async () => {
    const lab = new LockLab();
    const [mine, other] = [await lab.acquire(A), await lab.acquire(B)];
    expect(lab.locks.writeLeases.isLeaseId(mine.leaseId, mine.leaseRef)).toBe(true);
    expect(lab.locks.writeLeases.isLeaseId(other.leaseId, mine.leaseRef)).toBe(false);
    expect(lab.locks.writeLeases.isLeaseId(mine.leaseRef, mine.leaseRef)).toBe(false);
  });
});
