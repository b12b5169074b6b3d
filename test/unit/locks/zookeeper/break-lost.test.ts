import { describe, expect, it } from 'vitest';
import { LIMITS } from '../../../../src/domain/limits.ts';
import { settle } from '../../../support/fake-clock.ts';
import { heard } from '../../../support/heard-events.ts';
import { anybody, callerOf, never, resource, tokenOf } from '../../../support/lock-lab.ts';
import { ZookeeperLab } from '../../../support/zookeeper-lab.ts';

/** A break waits for the coordinator to mint its number. When the session is lost over it there is none, so nothing was broken. */

const A = resource('a');
const B = resource('b');
const ROOT = callerOf('root', 'console', ['admin']);

const breakOf = (lab: ZookeeperLab, { graceMs = 0, leaseRefs }: { graceMs?: number; leaseRefs?: readonly string[] } = {}) =>
  lab.locks.breakLock(ROOT, { resource: A, reason: 'stuck', graceMs, ...(leaseRefs === undefined ? {} : { leaseRefs }) });

/** As the coordination does it: nothing is sent any more, then every lease is told to end. */
async function lose(lab: ZookeeperLab): Promise<void> {
  lab.coordinator.end();
  await lab.locks.endAll('lost', null);
  await settle();
}

/** Action, outcome and operation of each record of the lease since its grant. */
const recordsOf = ({ journal }: ZookeeperLab, leaseRef: string) =>
  journal.records
    .filter((record) => record.leaseRef === leaseRef && record.action !== 'lease_grant')
    .map(({ action, outcome, operationId }) => [action, outcome, operationId]);

describe('a break that is pending when the session is lost', () => {
  it('comes to nothing: the lease is lost like every other one, and the record of the break is aborted', async () => {
    const lab = new ZookeeperLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    const events = await heard(lab);
    lab.client.cut();
    const report = await lab.during(breakOf(lab), LIMITS.breakAnswerMs + 100);
    expect(report).toMatchObject({ state: 'breaking', highWaterMark: null });
    await lose(lab);
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'lost', reason: 'lost' });
    expect(recordsOf(lab, lease.leaseRef)).toEqual([
      ['lease_break', 'aborted', report.leases[0]?.operationId],
      ['lease_lose', 'committed', null],
    ]);
    expect(lab.journal.records.find(({ action }) => action === 'lease_break')).toMatchObject({
      principal: 'root',
      fencingToken: lease.fencingToken,
      highWaterMark: lease.fencingToken,
      detail: expect.stringContaining('"reason":"stuck","committed":[]'),
    });
    expect(events.map(({ type }) => type)).toEqual(['lost']);
    expect(lab.journal.units.flat().filter(({ op }) => op === 'raise_mark')).toHaveLength(1);
    await expect(breakOf(lab, { leaseRefs: [lease.leaseRef] })).rejects.toMatchObject({ code: 'lease_not_held', members: { state: 'lost' } });
  });

  it('is answered as suspended, if its request is still open', async () => {
    const lab = new ZookeeperLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    lab.client.cut();
    const answer = expect(breakOf(lab)).rejects.toMatchObject({
      code: 'coordinator_suspended',
      members: { resource: 'vol/a', lease_refs: [lease.leaseRef], operation_id: expect.any(String) },
    });
    await settle();
    await lose(lab);
    await answer;
  });

  it('has the last word on its announcement, if that had a grace', async () => {
    const lab = new ZookeeperLab();
    const lease = await lab.acquire([A, B], { ttlMs: 600_000 });
    const report = await breakOf(lab, { graceMs: 5_000 });
    lab.client.cut();
    await lab.clock.advanceAsync(5_000);
    expect((await lab.lease(lease.leaseId)).state).toBe('ending');
    await lose(lab);
    const operationId = report.leases[0]?.operationId;
    expect(recordsOf(lab, lease.leaseRef).filter(([, outcome]) => outcome === 'aborted')).toEqual([['lease_break', 'aborted', operationId]]);
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'lost' });
    expect([lab.journal.pending.size, lab.journal.breaks.size]).toEqual([0, 0]);
  });

  it('waits for the commit section that pins the lease like one that is carried out', async () => {
    const lab = new ZookeeperLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    const pin = lab.locks.writeLeases.pin(A, tokenOf(lease));
    lab.client.cut();
    await lab.during(breakOf(lab), LIMITS.breakAnswerMs + 100);
    await lose(lab);
    expect((await lab.lease(lease.leaseId)).state).toBe('ending');
    pin.leave();
    await settle();
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'lost' });
  });

  it('of a token-less write has its record, too', async () => {
    const lab = new ZookeeperLab();
    await lab.locks.writeLeases.acquireImplicit({ resources: [A], caller: anybody, waitMs: 0, signal: never });
    lab.client.cut();
    await lab.during(breakOf(lab), LIMITS.breakAnswerMs + 100);
    await lose(lab);
    expect(lab.journal.records).toMatchObject([{ action: 'lease_break', outcome: 'aborted', principal: 'root', operationId: expect.any(String) }]);
  });

  it('is carried out all the same when its number was minted before', async () => {
    const lab = new ZookeeperLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    const pin = lab.locks.writeLeases.pin(A, tokenOf(lease));
    await lab.during(breakOf(lab), LIMITS.breakAnswerMs + 100);
    await lose(lab);
    pin.leave();
    await settle();
    expect(recordsOf(lab, lease.leaseRef)).toEqual([['lease_break', 'committed', expect.any(String)]]);
  });
});

describe('every other order that fences before it ends a lease, pending when the session is lost', () => {
  it('the doctor says that the lease is lost, and not that it was broken', async () => {
    const lab = new ZookeeperLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    lab.client.cut();
    const answer = expect(lab.locks.endLease(ROOT, lease.leaseRef, 'stuck')).rejects.toMatchObject({ code: 'coordinator_suspended' });
    await settle();
    await lose(lab);
    await answer;
    expect(recordsOf(lab, lease.leaseRef).map(([action, outcome]) => `${action} ${outcome}`)).toEqual([
      'lease_break aborted',
      'lease_lose committed',
    ]);
  });

  it('a session that an administrator ends is ended, and what it held is lost', async () => {
    const lab = new ZookeeperLab();
    const session = await lab.locks.service.createSession(anybody, { ttlMs: 600_000, clientId: null });
    const lease = await lab.acquire(A, { ttlMs: 600_000, sessionId: session.sessionId });
    lab.client.cut();
    const ended = lab.locks.service.endSessionByRef(ROOT, session.sessionRef);
    await settle();
    await lose(lab);
    await ended;
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'lost', reason: 'lost' });
    expect(await lab.sessions()).toEqual([]);
  });

  it('a lease whose longest hold was over has expired: its time was up, with or without contact', async () => {
    const lab = new ZookeeperLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000, maxHoldMs: 5_000 });
    lab.client.cut();
    await lab.clock.advanceAsync(5_000);
    expect((await lab.lease(lease.leaseId)).state).toBe('ending');
    await lose(lab);
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'expired', reason: 'max_hold' });
  });

  it('a grant that becomes durable after the session was lost over its break ends as well', async () => {
    const lab = new ZookeeperLab();
    lab.journal.hold();
    const acquired = lab.acquire(A, { ttlMs: 600_000, waitMs: 60_000 }).catch((thrown: unknown) => thrown);
    await settle();
    const broken = breakOf(lab).catch((thrown: unknown) => thrown);
    await settle();
    lab.coordinator.end();
    const over = lab.locks.endAll('lost', null);
    lab.journal.release();
    await over;
    await acquired;
    expect(await broken).toMatchObject({ code: 'coordinator_suspended' });
    expect([lab.journal.leases.size, lab.journal.records.map(({ action, outcome }) => `${action} ${outcome}`)]).toEqual([
      0,
      ['lease_grant committed', 'lease_break aborted', 'lease_lose committed'],
    ]);
  });
});
