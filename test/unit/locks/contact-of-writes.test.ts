import { describe, expect, it } from 'vitest';
import type { GatewayError } from '../../../src/domain/errors.ts';
import { embeddedCoordination } from '../../../src/locks/embedded/embedded-coordination.ts';
import { suspended, unavailable } from '../../../src/locks/zookeeper/contact-refusals.ts';
import { LockLab, resource } from '../../support/lock-lab.ts';

const A = resource('a');
const never = new AbortController().signal;

/** A lock service whose coordinator says what the test says. */
function labSaying(): { lab: LockLab; says(refusal: GatewayError | null): void } {
  let refusal: GatewayError | null = null;
  const lab = new LockLab({ coordination: (clock, queueMax) => ({ ...embeddedCoordination(clock, queueMax), refusal: () => refusal }) });
  return {
    lab,
    says: (next) => {
      refusal = next;
    },
  };
}

describe('a protected write without contact', () => {
  it('R12: waits for as long as it was told to, and goes on when there is contact again', async () => {
    const { lab, says } = labSaying();
    says(suspended());
    const write = lab.locks.writeLeases.inContact(A, null, 5_000, never);
    await lab.clock.advanceAsync(4_000);
    says(null);
    await lab.clock.advanceAsync(1_000);
    await expect(write).resolves.toBeUndefined();
    says(suspended());
    const late = lab.locks.writeLeases.inContact(A, null, 1_000, never).catch((thrown: unknown) => thrown);
    await lab.clock.advanceAsync(1_100);
    expect(await late).toMatchObject({ code: 'coordinator_suspended' });
  });

  it('is told that it was suspended, also when it is LOST that ended its wait; one that comes later, that there is no session', async () => {
    const { lab, says } = labSaying();
    says(suspended());
    const write = lab.locks.writeLeases.inContact(A, null, 5_000, never).catch((thrown: unknown) => thrown);
    await lab.clock.advanceAsync(1_000);
    says(unavailable());
    await lab.clock.advanceAsync(200);
    expect(await write).toMatchObject({ code: 'coordinator_suspended' });
    await expect(lab.locks.writeLeases.inContact(A, null, 5_000, never)).rejects.toMatchObject({ code: 'coordinator_unavailable' });
  });
});
