import { expect, it } from 'vitest';
import type { GatewayError } from '../../../src/domain/errors.ts';
import { embeddedCoordination } from '../../../src/locks/embedded/embedded-coordination.ts';
import { suspended, unavailable } from '../../../src/locks/zookeeper/contact-refusals.ts';
import { LockLab, never, resource } from '../../support/lock-lab.ts';

const A = resource('a');

/** A lock service whose contact with its coordinator is what the test says. */
function labWith(contact: { refusal: GatewayError | null }): LockLab {
  return new LockLab({ coordination: (clock, queueMax) => ({ ...embeddedCoordination(clock, queueMax), refusal: () => contact.refusal }) });
}

it('R12: a write that waits for contact goes on when it is there again', async () => {
  const contact: { refusal: GatewayError | null } = { refusal: suspended() };
  const lab = labWith(contact);
  const wait = lab.locks.writeLeases.inContact(A, null, 5_000, never);
  await lab.clock.advanceAsync(2_000);
  contact.refusal = null;
  await lab.clock.advanceAsync(200);
  await expect(wait).resolves.toBeUndefined();
});

it('R12: a write that waited is refused as suspended, also when the end of the session is what ended its wait', async () => {
  for (const end of [suspended(), unavailable()]) {
    const contact: { refusal: GatewayError | null } = { refusal: suspended() };
    const lab = labWith(contact);
    const wait = lab.locks.writeLeases.inContact(A, null, 5_000, never);
    wait.catch(() => undefined);
    await lab.clock.advanceAsync(2_000);
    contact.refusal = end;
    await lab.clock.advanceAsync(3_000);
    await expect(wait).rejects.toMatchObject({ code: 'coordinator_suspended' });
  }
});

it('a write that comes when there is no session at all does not wait', async () => {
  const wait = labWith({ refusal: unavailable() }).locks.writeLeases.inContact(A, null, 5_000, never);
  await expect(wait).rejects.toMatchObject({ code: 'coordinator_unavailable' });
});
