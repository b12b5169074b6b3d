import { describe, expect, it } from 'vitest';
import { settle } from '../../support/fake-clock.ts';
import { anybody, LockLab, never, request, resource } from '../../support/lock-lab.ts';

/** The journal does not know whether it has the grant: nobody may be told that there is no such lease, for the next start may find it. */

const A = resource('a');

async function refused(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => 'it went through',
    (thrown: unknown) => thrown,
  );
}

function idIn(thrown: unknown): string {
  return String((thrown as { readonly members: Readonly<Record<string, unknown>> }).members['lease_id']);
}

describe('a grant that is in doubt', () => {
  it.each([0, 60_000])('is outcome_unknown with the id of the lease, and so is everything about that lease (wait_ms %d)', async (waitMs) => {
    const lab = new LockLab();
    lab.journal.doubting = true;
    const thrown = await refused(lab.locks.service.acquire(anybody, request(A, { waitMs }), never));
    expect(thrown).toMatchObject({ code: 'outcome_unknown', members: { lease_id: expect.any(String) } });
    const { service } = lab.locks;
    const id = idIn(thrown);
    const unknown = { code: 'outcome_unknown' };
    await expect(service.lease(anybody, id, 0, never)).rejects.toMatchObject(unknown);
    await expect(service.renew(anybody, id)).rejects.toMatchObject(unknown);
    await expect(service.release(anybody, id, { holdId: null, all: true })).rejects.toMatchObject(unknown);
    expect(lab.journal.records.map(({ action }) => action)).toEqual(['lease_grant']);
  });

  it('is told to a poll and to a release that came while it was under way', async () => {
    const lab = new LockLab();
    const first = await lab.acquire(A);
    const waiter = await lab.during(lab.acquire(A, { waitMs: 10 }), 100, 10);
    expect(waiter.state).toBe('waiting');
    lab.journal.doubting = true;
    lab.journal.hold();
    const released = lab.release(first.leaseId);
    await settle();
    const told = [refused(lab.lease(waiter.leaseId, 60_000)), refused(lab.release(waiter.leaseId))];
    await settle();
    lab.journal.release();
    await released;
    for (const each of await Promise.all(told)) expect(each).toMatchObject({ code: 'outcome_unknown', members: { lease_id: waiter.leaseId } });
  });

  it('is not one that was refused before the disk was asked: that lease does not exist', async () => {
    const lab = new LockLab();
    lab.journal.failing = 1;
    const thrown = await refused(lab.locks.service.acquire(anybody, request(A), never));
    expect(thrown).toMatchObject({ code: 'journal_unavailable', members: {} });
  });

  it('is held after the next start, for whoever has the id, and can be given back', async () => {
    const lab = new LockLab();
    lab.journal.doubting = true;
    const id = idIn(await refused(lab.locks.service.acquire(anybody, request(A), never)));
    const next = await lab.restarted();
    expect(await next.locks.service.lease(anybody, id, 0, never)).toMatchObject({ state: 'held' });
    await next.locks.service.release(anybody, id, { holdId: null, all: true });
    expect((await next.acquire(A)).state).toBe('held');
  });
});
