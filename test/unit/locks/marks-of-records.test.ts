import { describe, expect, it } from 'vitest';
import { COORDINATORS } from '../../support/coordinators.ts';
import { settle } from '../../support/fake-clock.ts';
import { anybody, never, resource } from '../../support/lock-lab.ts';

const [A, B] = [resource('a'), resource('b')];
const LONG = { ttlMs: 3_600_000, clientId: null };

describe.each(COORDINATORS)('the mark that a record names ($coordinator)', ({ LockLab }) => {
  it('is never that of an upgrade, or of a grant, which the journal refused', async () => {
    const lab = new LockLab();
    const one = await lab.acquire(A, { mode: 'shared', ttlMs: 600_000 });
    const two = await lab.acquire(A, { mode: 'shared', ttlMs: 600_000 });
    await lab.locks.service.convert(anybody, one.leaseId, 'exclusive', never);
    lab.journal.failing = true;
    await lab.release(two.leaseId).catch(() => undefined);
    await lab.clock.advanceAsync(3_000);
    lab.journal.failing = false;
    await lab.clock.advanceAsync(2_000);
    await expect(lab.acquire(A)).rejects.toMatchObject({ code: 'lock_not_acquired' });
    await lab.release(one.leaseId);
    const mark = (await lab.journal.mark(A.key))?.token ?? 0n;
    for (const { action, highWaterMark } of lab.journal.records)
      expect([action, highWaterMark ?? 0n]).toEqual([action, expect.toSatisfy((told) => told <= mark)]);
    expect(lab.journal.records.at(-1)).toMatchObject({ action: 'lease_release', highWaterMark: mark });
  });

  it('is the one of the resource, also where the lease has an older token: of a hold, of an upgrade that was given up, of a change to shared', async () => {
    const lab = new LockLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, LONG);
    const mine = await lab.acquire(A, { mode: 'shared', sessionId, holdId: 'one' });
    const other = await lab.acquire(A, { mode: 'shared', ttlMs: 600_000 });
    await lab.acquire(A, { mode: 'shared', sessionId, holdId: 'two' });
    await lab.release(mine.leaseId, { holdId: 'two' });
    await lab.locks.service.convert(anybody, mine.leaseId, 'exclusive', never);
    await lab.clock.advanceAsync(10);
    await lab.locks.service.convert(anybody, mine.leaseId, 'shared', never);
    await settle();
    expect(lab.journal.records.slice(2)).toMatchObject([
      { action: 'lease_grant', fencingToken: mine.fencingToken, highWaterMark: other.fencingToken },
      { action: 'lease_release', fencingToken: mine.fencingToken, highWaterMark: other.fencingToken },
      { action: 'lease_convert', outcome: 'aborted', fencingToken: mine.fencingToken, highWaterMark: other.fencingToken },
    ]);
  });

  it('never falls in the order of the records, when readers come in together and one of them has several names', async () => {
    const lab = new LockLab();
    const writer = await lab.acquire(A, { ttlMs: 600_000 });
    const several = lab.acquire([A, B], { mode: 'shared', waitMs: 60_000, ttlMs: 600_000 });
    const one = lab.acquire(A, { mode: 'shared', waitMs: 60_000, ttlMs: 600_000 });
    await settle();
    await lab.clock.advanceAsync(10);
    await lab.release(writer.leaseId);
    await Promise.all([several, one]);
    const marks = lab.journal.records.filter(({ path }) => path === 'a').map(({ highWaterMark }) => highWaterMark ?? 0n);
    expect(marks.length).toBe(4);
    expect(marks).toEqual([...marks].sort((a, b) => (a < b ? -1 : 1)));
  });
});
