import { describe, expect, it } from 'vitest';
import { COORDINATORS } from '../../support/coordinators.ts';
import { anybody, never, resource } from '../../support/lock-lab.ts';

const A = resource('a');

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
});
