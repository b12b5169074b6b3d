import { describe, expect, it } from 'vitest';
import { suspended, unavailable } from '../../../src/locks/zookeeper/contact-refusals.ts';
import { ContactLab } from '../../support/contact-lab.ts';
import { settle } from '../../support/fake-clock.ts';
import { anybody, never, resource } from '../../support/lock-lab.ts';
import { ZookeeperLab } from '../../support/zookeeper-lab.ts';

const A = resource('a');

const waits = (lab: ContactLab, waitMs: number): Promise<unknown> =>
  lab.locks.writeLeases.inContact(A, null, waitMs, never).catch((thrown: unknown) => thrown);

describe('a write without contact', () => {
  it('R12: waits for as long as it was told to, and goes on when there is contact again', async () => {
    const lab = new ContactLab(suspended());
    const write = waits(lab, 5_000);
    await lab.clock.advanceAsync(4_000);
    lab.says(null);
    await lab.clock.advanceAsync(1_000);
    expect(await write).toBeUndefined();
    lab.says(suspended());
    const late = waits(lab, 1_000);
    await lab.clock.advanceAsync(1_100);
    expect(await late).toMatchObject({ code: 'coordinator_suspended' });
  });

  it('R12: is told that it was suspended, also when it is LOST that ended its wait; one that comes later, that there is no session', async () => {
    const lab = new ContactLab(suspended());
    const write = waits(lab, 5_000);
    await lab.clock.advanceAsync(1_000);
    lab.lose();
    await lab.clock.advanceAsync(200);
    expect(await write).toMatchObject({ code: 'coordinator_suspended' });
    expect(await waits(lab, 5_000)).toMatchObject({ code: 'coordinator_unavailable' });
  });

  it('R12: and when the next session is there before it looks again: what it has staged ended with the last one', async () => {
    const lab = new ContactLab(suspended());
    const write = waits(lab, 5_000);
    await lab.clock.advanceAsync(1_050);
    lab.lose();
    lab.says(null);
    await lab.clock.advanceAsync(1_000);
    expect(await write).toMatchObject({ code: 'coordinator_suspended' });
    expect(await waits(lab, 0)).toBeUndefined();
  });

  it('R12: that stands in line when the session is lost is told the same, and not that the gateway stops', async () => {
    const lab = new ContactLab();
    await lab.acquire(A);
    const write = lab.locks.writeLeases.acquireImplicit({ resources: [A], caller: anybody, waitMs: 60_000, signal: never });
    const told = expect(write).rejects.toMatchObject({ code: 'coordinator_suspended' });
    await settle();
    lab.lose();
    lab.says(null);
    await told;
  });

  it('that comes while its volume is not open at this gateway is told so at once: there is no line yet to stand in', async () => {
    const lab = new ZookeeperLab();
    lab.owned = false;
    const write = lab.locks.writeLeases.acquireImplicit({ resources: [A], caller: anybody, waitMs: 60_000, signal: never });
    await expect(write).rejects.toMatchObject({ code: 'volume_unavailable', retryAfterMs: 1_000 });
  });

  it('that comes when there is no session at all does not wait', async () => {
    const wait = new ContactLab(unavailable()).locks.writeLeases.inContact(A, null, 5_000, never);
    await expect(wait).rejects.toMatchObject({ code: 'coordinator_unavailable' });
  });
});
