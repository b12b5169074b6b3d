import { expect, it } from 'vitest';
import type { LockEvent } from '../../../src/domain/lock-events.ts';
import { eventMessage } from '../../../src/grpc/views.ts';

it('the cycle of an event leaves out the names that lie outside the scope of who watches', () => {
  const event: LockEvent = {
    type: 'deadlock',
    seq: 9,
    at: '2026-01-01T00:00:00.000Z',
    resource: 'demo/a',
    leaseRef: 'lr_1',
    clientId: 'one',
    mode: 'shared',
    fencingToken: null,
    reason: 'deadlock',
    cycle: [
      { waiterLeaseRef: 'lr_1', waiterClientId: 'one', resource: 'demo/a' },
      { waiterLeaseRef: 'lr_2', waiterClientId: null, resource: 'other/b' },
    ],
  };
  expect(eventMessage(event, (name) => name.startsWith('demo/')).cycle).toEqual([
    { lease_ref: 'lr_1', client_id: 'one', waits_for: 'demo/a' },
    { lease_ref: 'lr_2', client_id: '', waits_for: '' },
  ]);
});
