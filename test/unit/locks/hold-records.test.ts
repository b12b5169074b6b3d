import { describe, expect, it } from 'vitest';
import { COORDINATORS } from '../../support/coordinators.ts';
import { settle } from '../../support/fake-clock.ts';
import type { LockLab as Lab } from '../../support/lock-lab.ts';
import { anybody, callerOf, never, resource, tokenOf } from '../../support/lock-lab.ts';

const A = resource('a');

/** Held twice in one session. */
async function heldTwice(lab: Lab) {
  const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 60_000, clientId: 'c' });
  const lease = await lab.acquire(A, { sessionId, holdId: 'h1' });
  await lab.acquire(A, { sessionId, holdId: 'h2' });
  return { lease, sessionId };
}

/** What the records after those of the two grants say. */
const said = (lab: Lab) => lab.journal.records.slice(2).map(({ action, outcome, detail }) => ({ action, outcome, ...JSON.parse(detail ?? '{}') }));

describe.each(COORDINATORS)('a hold that is taken off ($coordinator)', ({ LockLab }) => {
  it('has a record that says how many are left, and the last one that of the end', async () => {
    const lab = new LockLab();
    const { lease } = await heldTwice(lab);
    await lab.release(lease.leaseId, { holdId: 'h1' }, callerOf(null, 'other'));
    await lab.release(lease.leaseId, { holdId: 'h1' });
    expect(lab.journal.records.at(-1)).toMatchObject({ path: 'a', leaseRef: lease.leaseRef, fencingToken: tokenOf(lease), clientId: 'other' });
    await lab.release(lease.leaseId, { holdId: 'h2' });
    expect(said(lab)).toEqual([
      { action: 'lease_release', outcome: 'committed', reason: null, hold_count: 1 },
      { action: 'lease_release', outcome: 'committed' },
    ]);
  });

  it('has none when the journal refuses, and then it stays', async () => {
    const lab = new LockLab();
    const { lease } = await heldTwice(lab);
    lab.journal.failing = 1;
    await expect(lab.release(lease.leaseId, { holdId: 'h1' })).rejects.toMatchObject({ code: 'journal_unavailable' });
    expect([said(lab), (await lab.lease(lease.leaseId)).holdCount]).toEqual([[], 2]);
  });

  it('has one also when its grant did not get to its client', async () => {
    const lab = new LockLab();
    const { lease, sessionId } = await heldTwice(lab);
    lab.locks.service.undelivered(anybody, lease.leaseId, 'h2');
    await settle();
    const gone = new AbortController();
    lab.journal.hold();
    const asked = lab.acquire(A, { sessionId, holdId: 'h3' }, anybody, gone.signal).catch(() => undefined);
    await settle();
    gone.abort(new Error('gone'));
    lab.journal.release();
    await asked;
    await settle();
    const left = { action: 'lease_cancel', outcome: 'committed', reason: null, hold_count: 1 };
    expect(said(lab)).toEqual([left, { action: 'lease_grant', outcome: 'committed' }, left]);
  });

  it('has none while the lease waits: there was no grant', async () => {
    const lab = new LockLab();
    await lab.acquire(A, { ttlMs: 60_000 });
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 60_000, clientId: 'c' });
    const asked = ['h1', 'h2'].map((holdId) => lab.acquire(A, { sessionId, holdId, waitMs: 1_000 }, anybody, never));
    await lab.clock.advanceAsync(1_000);
    const [waiting] = await Promise.all(asked);
    await lab.release(waiting?.leaseId ?? '', { holdId: 'h1' });
    expect(lab.journal.decisions()).toEqual(['lease_grant']);
  });
});
