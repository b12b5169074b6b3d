import { expect, it } from 'vitest';
import { anybody, LockLab, resource, tokenOf } from '../../support/lock-lab.ts';

/** Ends that the journal refused, when the gateway stops: tried once more, and told of if that does not help. */

const LONG = { ttlMs: 3_600_000 };

async function refused(lab: LockLab) {
  const [released, pinned] = [await lab.acquire(resource('a'), LONG), await lab.acquire(resource('b'), LONG)];
  const session = await lab.locks.service.createSession(anybody, { ...LONG, clientId: null });
  const inSession = await lab.acquire(resource('c'), { sessionId: session.sessionId, ...LONG });
  const waits = lab.acquire(resource('c'), { waitMs: 1, ...LONG });
  await lab.clock.advanceAsync(1);
  await waits;
  lab.locks.writeLeases.pin(resource('b'), tokenOf(pinned));
  lab.journal.failing = true;
  for (const { leaseId } of [released, pinned]) void lab.release(leaseId).catch(() => undefined);
  await lab.locks.service.endSession(anybody, session.sessionId).catch(() => undefined);
  await lab.locks.endAll('shutdown', null);
  return { lab, released, pinned, inSession, session };
}

it('the journal takes them when it can again; only an end that a write keeps from taking effect is left', async () => {
  const { lab, pinned } = await refused(new LockLab());
  lab.journal.failing = false;
  expect(await lab.during(lab.locks.endsAtStop(), 5_000)).toEqual({ leases: [pinned.leaseRef], sessions: [] });
  lab.locks.stop();
  expect([...lab.journal.leases.keys()]).toEqual([pinned.leaseRef]);
  expect(lab.journal.sessions.size).toBe(1);
});

it('those that it refuses once more are named by their refs; a wait, which no start brings back, is not', async () => {
  const { lab, released, pinned, inSession, session } = await refused(new LockLab());
  expect(await lab.during(lab.locks.endsAtStop(), 5_000)).toEqual({
    leases: [released.leaseRef, inSession.leaseRef, pinned.leaseRef],
    sessions: expect.arrayContaining([session.sessionRef]),
  });
  lab.locks.stop();
});

it('a journal that says nothing is not waited for', async () => {
  const { lab } = await refused(new LockLab());
  lab.journal.failing = false;
  lab.journal.hold();
  expect((await lab.during(lab.locks.endsAtStop(), 5_000)).leases).toHaveLength(3);
  lab.locks.stop();
});
