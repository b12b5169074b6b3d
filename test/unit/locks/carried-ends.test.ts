import { describe, expect, it } from 'vitest';
import { settle } from '../../support/fake-clock.ts';
import { heard } from '../../support/heard-events.ts';
import { anybody, LockLab, resource } from '../../support/lock-lab.ts';

const [A, B] = [resource('a'), resource('b')];

describe('an end that the journal refused, and that the next grant carried', () => {
  it('is told once, and stays told while its record is tried again', async () => {
    const lab = new LockLab();
    const events = await heard(lab);
    const old = await lab.acquire(A, { ttlMs: 1_000 });
    const next = lab.acquire(A, { waitMs: 60_000, ttlMs: 600_000 });
    await settle();
    lab.journal.failing = 1;
    await lab.clock.advanceAsync(1_000);
    const { leaseRef } = await next;
    expect(lab.journal.ended.get(old.leaseRef)).toMatchObject({ state: 'expired' });
    lab.journal.hold();
    await lab.clock.advanceAsync(1_000);
    expect(lab.journal.waiting).toBe(1);
    expect((await lab.during(lab.locks.service.lock(A), 1_000)).holders.map((holder) => holder.leaseRef)).toEqual([leaseRef]);
    lab.journal.release();
    await settle();
    expect(lab.journal.decisions()).toEqual(['lease_grant', 'lease_grant', 'lease_expire']);
    expect(events.map(({ type }) => type)).toEqual(['granted', 'waiting', 'expired', 'granted']);
  });
});

describe('a session whose last lease ends while the journal does not have the end of an earlier one', () => {
  it('is told to be over when it has both', async () => {
    const lab = new LockLab();
    const first = await lab.acquire(A);
    const last = await lab.acquire(B, { sessionId: first.sessionId });
    const beat = () => lab.locks.service.heartbeat(anybody, first.sessionId ?? '');
    lab.journal.failing = 1;
    await expect(lab.release(first.leaseId)).rejects.toMatchObject({ code: 'outcome_unknown' });
    // The first is tried again before, and refused once more.
    lab.journal.failing = 1;
    await lab.release(last.leaseId);
    lab.journal.hold();
    await expect(lab.during(beat(), 2_000)).rejects.toMatchObject({ code: 'journal_unavailable' });
    expect([...lab.journal.leases.keys()]).toEqual([first.leaseRef]);
    lab.journal.release();
    await lab.clock.advanceAsync(1_000);
    await expect(beat()).rejects.toMatchObject({ code: 'session_not_found' });
    expect([lab.journal.leases.size, lab.journal.sessions.size]).toEqual([0, 0]);
  });
});
