import { expect, it } from 'vitest';
import { clientLab, TTL_MS } from '../../support/client-lab.ts';
import { leaseAnswer, sessionAnswer } from '../../support/fake-fetch.ts';

/** A lease that is asked for as the writer's, and that the session turns out to hold as a reader's: left over from a request that was not answered. */

async function asked() {
  const lab = clientLab();
  const lease = lab.client.lease('v/a', { ttlMs: TTL_MS });
  lease.catch(() => undefined);
  await (await lab.wire.next('POST /v1/sessions')).answer(201, sessionAnswer());
  await (await lab.wire.next('POST /v1/leases')).answer(202, leaseAnswer({ mode: 'shared', queue_position: 1 }));
  await (await lab.wire.next('GET /v1/leases/')).answer(200, leaseAnswer({ mode: 'shared', queue_position: 1 }));
  return { ...lab, lease };
}

it('is waited for until it is the writer’s', async () => {
  const { wire, lease } = await asked();
  await (await wire.next('GET /v1/leases/')).answer(200, leaseAnswer({ mode: 'exclusive', fencing_token: '99', queue_position: null }));
  expect(await lease).toMatchObject({ mode: 'exclusive', token: '99' });
});

it('is not acquired when the upgrade is over without it, and its hold is given back', async () => {
  const { wire, lease } = await asked();
  await (await wire.next('GET /v1/leases/')).answer(200, leaseAnswer({ mode: 'shared', reason: 'deadlock' }));
  await (await wire.next('DELETE /v1/leases/')).answer(204);
  await expect(lease).rejects.toMatchObject({ code: 'deadlock' });
});
