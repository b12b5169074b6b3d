import { describe, expect, it } from 'vitest';
import type { AcquireRequest } from '../../../../src/domain/lock-api.ts';
import { settle } from '../../../support/fake-clock.ts';
import { anybody, callerOf, never, request, resource } from '../../../support/lock-lab.ts';
import { ZookeeperLab } from '../../../support/zookeeper-lab.ts';

/** Without contact nobody knows who holds: whoever waits through that is told so, and not that somebody else has it (R12). */

const A = resource('a');
const NODE = '/locks/vol/a';
const SUSPENDED = { code: 'coordinator_suspended', retryAfterMs: 1_000 };
const ann = callerOf('ann');

const write = (lab: ZookeeperLab, waitMs: number): Promise<unknown> =>
  watched(lab.locks.writeLeases.acquireImplicit({ resources: [A], caller: anybody, waitMs, signal: never }));

const acquire = (lab: ZookeeperLab, changes: Partial<AcquireRequest>): Promise<unknown> =>
  watched(lab.locks.service.acquire(ann, request(A, changes), never).then(({ lease }) => lease));

/** What came of it, whichever way. */
function watched(work: Promise<unknown>): Promise<unknown> {
  return work.catch((thrown: unknown) => thrown);
}

it.each([60_000, null])(
  'an acquire whose whole wait runs out before anybody has looked is not told that somebody holds (wait_ms %s)',
  async (waitMs) => {
    const lab = new ZookeeperLab();
    lab.client.holdReplies();
    expect(await lab.during(acquire(lab, { waitMs, maxWaitMs: 1_000 }), 2_000)).toMatchObject(SUSPENDED);
  },
);

describe('a write without a token whose wait runs out', () => {
  it('while it is not known who holds is told so, whether it was looked at before or not', async () => {
    const lab = new ZookeeperLab();
    const held = await lab.acquire(A);
    const behind = write(lab, 2_000);
    await settle();
    lab.suspend();
    expect(await lab.during(behind, 3_000)).toMatchObject(SUSPENDED);
    lab.reconnect();
    await lab.release(held.leaseId);
    await settle();
    lab.client.holdReplies();
    const onFree = write(lab, 2_000);
    await settle();
    lab.suspend();
    expect(await lab.during(onFree, 3_000)).toMatchObject(SUSPENDED);
  });

  it('before anybody has looked is not told that somebody holds', async () => {
    const lab = new ZookeeperLab();
    lab.client.holdReplies();
    expect(await lab.during(write(lab, 500), 1_000)).toMatchObject(SUSPENDED);
  });

  it('with contact is told that somebody holds', async () => {
    const lab = new ZookeeperLab();
    await lab.acquire(A);
    lab.suspend();
    lab.reconnect();
    expect(await lab.during(write(lab, 2_000), 3_000)).toMatchObject({ code: 'resource_locked' });
  });

  it('at once, is not refused for a holder of before contact was lost', async () => {
    const lab = new ZookeeperLab();
    await lab.acquire(A);
    expect(lab.locks.writeLeases.holder(A)).not.toBeNull();
    lab.suspend();
    expect(lab.locks.writeLeases.holder(A)).toBeNull();
    await expect(lab.locks.writeLeases.inContact(A, null, 0, never)).rejects.toMatchObject(SUSPENDED);
  });
});

describe('a try that nobody has looked at when contact is lost', () => {
  it('is answered at once, and leaves no child behind', async () => {
    const lab = new ZookeeperLab();
    const mend = lab.client.holdReplies();
    const tries = Promise.all([acquire(lab, { waitMs: 0 }), write(lab, 0)]);
    await settle();
    expect(lab.ensemble.children(NODE)).not.toHaveLength(0);
    lab.suspend();
    expect(await tries).toMatchObject([SUSPENDED, SUSPENDED]);
    expect(lab.journal.records).toMatchObject([{ action: 'lease_refuse', code: 'coordinator_suspended', status: 503 }]);
    mend();
    lab.reconnect();
    await settle();
    expect(lab.ensemble.children(NODE)).toEqual([]);
    expect(await acquire(lab, { waitMs: 0 })).toMatchObject({ state: 'held' });
  });

  it('does not take the place of who waits with the same lease', async () => {
    const lab = new ZookeeperLab();
    const { sessionId } = await lab.locks.service.createSession(ann, { ttlMs: null, clientId: null });
    const mend = lab.client.holdReplies();
    const first = acquire(lab, { waitMs: 0, sessionId });
    const second = acquire(lab, { waitMs: 60_000, sessionId });
    await settle();
    lab.suspend();
    expect(await first).toMatchObject(SUSPENDED);
    mend();
    lab.reconnect();
    expect(await lab.during(second, 3_000)).toMatchObject({ state: 'held', holdCount: 1 });
  });
});

describe('who waits with a limit when contact is lost', () => {
  it('keeps its place, and gets the lock when the same session is proven again', async () => {
    const lab = new ZookeeperLab();
    const mend = lab.client.holdReplies();
    const waits = [acquire(lab, { waitMs: 60_000 }), acquire(lab, { waitMs: null }), write(lab, 60_000)];
    await settle();
    const standing = lab.ensemble.children(NODE);
    lab.suspend();
    await lab.clock.advanceAsync(3_000);
    mend();
    await settle();
    expect(lab.ensemble.children(NODE)).toEqual(expect.arrayContaining(standing));
    lab.reconnect();
    expect(await lab.during(Promise.race(waits), 3_000)).toMatchObject({ state: 'held' });
  });

  it('and has no place that it could be told of is refused when the wait runs out', async () => {
    const lab = new ZookeeperLab();
    const mend = lab.client.holdReplies();
    const wait = acquire(lab, { waitMs: 2_000 });
    await settle();
    lab.suspend();
    expect(await lab.during(wait, 3_000)).toMatchObject(SUSPENDED);
    mend();
    lab.reconnect();
    await settle();
    expect(lab.ensemble.children(NODE)).toEqual([]);
  });

  it('and stands in line goes on doing so', async () => {
    const lab = new ZookeeperLab();
    const held = await lab.acquire(A);
    const wait = acquire(lab, { waitMs: 2_000 });
    await settle();
    lab.suspend();
    const told = await lab.during(wait, 3_000);
    expect(told).toMatchObject({ state: 'waiting', queuePosition: 1 });
    lab.reconnect();
    await lab.release(held.leaseId);
    const { leaseId } = told as { readonly leaseId: string };
    expect(await lab.lease(leaseId, 1_000, ann)).toMatchObject({ state: 'held' });
  });

  it.each([60_000, null])('is not told that the lock is taken when its whole wait runs out (wait_ms %s)', async (waitMs) => {
    const lab = new ZookeeperLab();
    await lab.acquire(A);
    const wait = acquire(lab, { waitMs, maxWaitMs: 2_000 });
    await settle();
    lab.suspend();
    expect(await lab.during(wait, 3_000)).toMatchObject(SUSPENDED);
  });
});

describe('an acquire that LOST ends', () => {
  it('is told so, like a write, when the end of its own wait is what shows it', async () => {
    const lab = new ZookeeperLab();
    await lab.acquire(A);
    const waits = Promise.all([acquire(lab, { waitMs: 2_000 }), acquire(lab, { waitMs: null, maxWaitMs: 2_000 }), write(lab, 2_000)]);
    await settle();
    lab.loseWhenJudged();
    expect(await lab.during(waits, 3_000)).toMatchObject([SUSPENDED, SUSPENDED, SUSPENDED]);
  });

  it.each([0, 60_000, null])('is told that there was no contact (wait_ms %s), in its record as well', async (waitMs) => {
    const lab = new ZookeeperLab();
    lab.client.holdReplies();
    const ends = acquire(lab, { waitMs });
    await settle();
    lab.lose();
    expect(await ends).toMatchObject(SUSPENDED);
    expect(lab.journal.records).toContainEqual(expect.objectContaining({ action: 'lease_refuse', code: 'coordinator_suspended', status: 503 }));
  });

  it('and stood in line, too; a lease that was answered before goes on saying that it is lost', async () => {
    const lab = new ZookeeperLab();
    await lab.acquire(A);
    const answered = (await lab.during(acquire(lab, { waitMs: 100 }), 1_000)) as { readonly leaseId: string };
    const open = acquire(lab, { waitMs: 60_000 });
    await settle();
    lab.lose();
    expect(await open).toMatchObject(SUSPENDED);
    expect(await lab.lease(answered.leaseId, 0, ann)).toMatchObject({ state: 'lost', reason: 'lost' });
  });
});

it('who asks about a lock when the link is cut is told so when contact is lost, and does not wait for the session to be', async () => {
  const lab = new ZookeeperLab();
  await acquire(lab, { waitMs: 0, ttlMs: 600_000 });
  const answer = lab.client.holdReplies();
  const view = lab.locks.service.lock(A);
  await settle();
  lab.suspend();
  answer('unknown');
  await expect(lab.during(view, 1_000)).rejects.toMatchObject({ code: 'coordinator_suspended' });
});
