import { describe, expect, it } from 'vitest';
import { suspended, unavailable } from '../../../src/locks/zookeeper/contact-refusals.ts';
import { ContactLab } from '../../support/contact-lab.ts';
import { callerOf, LockLab, never, resource } from '../../support/lock-lab.ts';
import { ZookeeperLab } from '../../support/zookeeper-lab.ts';

/** The record of a refusal on a lease names whose it is, as far as that is known. */

const A = resource('a');
const unlabelled = callerOf('ann', null);

it('has the client of the lease where the request has no label of its own', async () => {
  const lab = new LockLab();
  const lease = await lab.acquire(A, { clientId: 'batch-7' }, unlabelled);
  const refusal = () => lab.journal.records.at(-1);
  await expect(lab.locks.service.renew(unlabelled, lease.leaseId, 5)).rejects.toMatchObject({ code: 'ttl_out_of_range' });
  expect(refusal()).toMatchObject({ action: 'lease_refuse', code: 'ttl_out_of_range', leaseRef: lease.leaseRef, clientId: 'batch-7' });
  await lab.release(lease.leaseId, {}, unlabelled);
  await expect(lab.locks.service.convert(callerOf('ann', 'own'), lease.leaseId, 'shared', never)).rejects.toMatchObject({ code: 'lease_not_held' });
  expect(refusal()).toMatchObject({ code: 'lease_not_held', leaseRef: lease.leaseRef, clientId: 'own' });
  await expect(lab.locks.service.renew(unlabelled, lease.leaseId)).rejects.toMatchObject({ code: 'lease_not_held' });
  expect(refusal()).toMatchObject({ code: 'lease_not_held', leaseRef: lease.leaseRef, clientId: 'batch-7' });
});

it('does not call somebody else by its name', async () => {
  const lab = new LockLab();
  const lease = await lab.acquire(A, { clientId: 'batch-7' }, unlabelled);
  await expect(lab.locks.service.renew(callerOf('bob', null), lease.leaseId)).rejects.toMatchObject({ code: 'not_lease_owner' });
  expect(lab.journal.records.at(-1)).toMatchObject({ code: 'not_lease_owner', principal: 'bob', leaseRef: lease.leaseRef, clientId: null });
});

describe('I4: what is refused because it cannot be decided now has its record, too', () => {
  const who = { action: 'lease_refuse', outcome: 'rejected', status: 503, volume: 'vol', path: 'a', principal: 'ann', clientId: 'batch-7' };
  const ann = callerOf('ann', 'batch-7');

  it.each([suspended(), unavailable()])('a try without contact: $code', async (refusal) => {
    const lab = new ContactLab(refusal);
    await expect(lab.acquire(A, {}, ann)).rejects.toMatchObject({ code: refusal.code });
    expect(lab.journal.records).toMatchObject([{ ...who, code: refusal.code, leaseRef: null }]);
  });

  it('an upgrade without contact, with its lease', async () => {
    const lab = new ContactLab();
    const { leaseId, leaseRef } = await lab.acquire(A, { mode: 'shared' }, ann);
    lab.says(suspended());
    await expect(lab.locks.service.convert(ann, leaseId, 'exclusive', never)).rejects.toMatchObject({ code: 'coordinator_suspended' });
    expect(lab.journal.records.at(-1)).toMatchObject({ ...who, code: 'coordinator_suspended', leaseRef });
  });

  it('a try, and a wait, on a volume that is not open at this gateway', async () => {
    for (const waitMs of [0, 60_000]) {
      const lab = new ZookeeperLab();
      lab.owned = false;
      await expect(lab.acquire(A, { waitMs }, ann)).rejects.toMatchObject({ code: 'volume_unavailable' });
      expect(lab.journal.records).toMatchObject([{ ...who, code: 'volume_unavailable' }]);
    }
  });

  it('a try at a gateway that goes down', async () => {
    const lab = new LockLab();
    await lab.locks.endAll('shutdown', null);
    await expect(lab.acquire(A, {}, ann)).rejects.toMatchObject({ code: 'draining' });
    expect(lab.journal.records).toMatchObject([{ ...who, code: 'draining' }]);
  });
});
