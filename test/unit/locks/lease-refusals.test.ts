import { expect, it } from 'vitest';
import { callerOf, LockLab, never, resource } from '../../support/lock-lab.ts';

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
