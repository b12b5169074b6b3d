import { expect, it } from 'vitest';
import { anybody, LockLab, resource } from '../../support/lock-lab.ts';

/** The record of an end tells its reason where the action alone does not, so that an auditor sees why. */

const [A, B] = [resource('a'), resource('b')];

it('a lease that was held for as long as it may, that ended with its session, and a wait that was over are told apart in their records', async () => {
  const lab = new LockLab();
  const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 4_000, clientId: null });
  await lab.acquire(A, { ttlMs: 60_000, maxHoldMs: 2_000 });
  await lab.during(lab.acquire(A, { ttlMs: 60_000, waitMs: 1_500, maxWaitMs: 1_000 }), 1_500).catch(() => undefined);
  await lab.acquire(B, { sessionId, ttlMs: 60_000 });
  await lab.clock.advanceAsync(5_000);
  const ended = await lab.locks.service.createSession(anybody, { ttlMs: 4_000, clientId: null });
  await lab.acquire(B, { sessionId: ended.sessionId });
  await lab.locks.service.endSession(anybody, ended.sessionId);
  await lab.acquire(A, { ttlMs: 1_000 });
  await lab.clock.advanceAsync(2_000);
  const ends = lab.journal.records.filter(({ action }) => /^lease_(cancel|expire|release)$/.test(action));
  expect(ends.map(({ action, detail }) => [action, detail ?? null])).toEqual([
    ['lease_cancel', '{"reason":"max_wait"}'],
    ['lease_expire', '{"reason":"max_hold"}'],
    ['lease_expire', '{"reason":"session_ended"}'],
    ['lease_release', '{"reason":"session_ended"}'],
    ['lease_expire', null],
  ]);
});
