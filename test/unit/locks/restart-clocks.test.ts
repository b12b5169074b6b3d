import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../support/fake-clock.ts';
import { anybody, LockLab, resource } from '../../support/lock-lab.ts';
import { MemoryJournal } from '../../support/memory-journal.ts';
import { ZookeeperLab } from '../../support/zookeeper-lab.ts';

const A = resource('a');

describe('a restart after the wall clock was set', () => {
  it.each([
    ['back', -7_200_000],
    ['ahead', 7_200_000],
  ])('counts a longest hold on over starts of one boot, with the wall clock set %s between them and before', async (_, jumpMs) => {
    let lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000, maxHoldMs: 20_000 });
    for (const heldMs of [4_000, 8_000, 12_000]) {
      lab.clock.jumpWall(jumpMs);
      lab.clock.advance(3_000);
      await lab.locks.service.renew(anybody, lease.leaseId);
      lab.clock.jumpWall(jumpMs);
      lab = await lab.restarted();
      expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'held', holdExpiresInMs: 20_000 - heldMs });
    }
    await lab.clock.advanceAsync(7_999);
    expect((await lab.lease(lease.leaseId)).state).toBe('held');
    await lab.clock.advanceAsync(1);
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'expired', reason: 'max_hold' });
  });

  it('counts a longest hold on in another boot from what was written last, and each start of that boot from there', async () => {
    let lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000, maxHoldMs: 20_000 });
    lab.clock.advance(5_000);
    // Durable, and with it how long the lease has been held.
    await lab.locks.service.renew(anybody, lease.leaseId, 500_000);
    lab.clock.reboot();
    for (const leftMs of [15_000, 14_000, 13_000]) {
      lab.clock.jumpWall(-7_200_000);
      lab = await lab.restarted();
      expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'held', holdExpiresInMs: leftMs });
    }
  });

  it('in another boot counts a longest hold by the wall clock when that says more', async () => {
    const lab = new LockLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000, maxHoldMs: 20_000 });
    lab.clock.advance(5_000);
    lab.clock.reboot();
    const after = await lab.restarted();
    expect(await after.lease(lease.leaseId)).toMatchObject({ state: 'held', holdExpiresInMs: 14_000 });
  });

  it.each([
    ['back', -7_200_000],
    ['ahead', 7_200_000],
  ])('answers a waiter of before with lost also when the wall clock was set %s', async (_, jumpMs) => {
    const lab = new LockLab();
    await lab.acquire(A);
    const waiter = await lab.during(lab.acquire(A, { waitMs: 1 }), 10, 1);
    lab.clock.jumpWall(jumpMs);
    const after = await lab.restarted();
    expect(await after.lease(waiter.leaseId)).toMatchObject({ state: 'lost', reason: 'lost' });
    // Of this process, and withdrawn: nobody lost it.
    const own = await after.during(after.acquire(A, { waitMs: 1 }), 10, 1);
    expect((await after.lease(own.leaseId)).state).toBe('waiting');
  });

  it.each([
    ['back', -7_200_000],
    ['ahead', 7_200_000],
  ])('answers a waiter of each earlier start with lost over ZooKeeper, too, when the wall clock was set %s before each', async (_, jumpMs) => {
    const [journal, clock] = [new MemoryJournal(), new FakeClock()];
    const started = async (seed: number): Promise<ZookeeperLab> => {
      const lab = new ZookeeperLab({ journal, clock, seed });
      await lab.locks.restore(journal.crash(), { above: 0n, comeBack: false });
      return lab;
    };
    const waiters: string[] = [];
    for (const seed of [1, 2, 3]) {
      const lab = await started(seed);
      for (const leaseId of waiters) expect(await lab.lease(leaseId)).toMatchObject({ state: 'lost', reason: 'lost' });
      await lab.acquire(A);
      waiters.push((await lab.during(lab.acquire(A, { waitMs: 1 }), 10, 1)).leaseId);
      lab.locks.stop();
      clock.jumpWall(jumpMs);
      clock.advance(1_000);
    }
  });

  it('knows no lease of a gateway over the same ensemble that began later', async () => {
    const clock = new FakeClock();
    const lab = new ZookeeperLab({ clock, seed: 1 });
    await lab.locks.restore(lab.journal.crash(), { above: 0n, comeBack: false });
    clock.advance(1_000);
    const other = new ZookeeperLab({ clock, seed: 2 });
    await other.acquire(A);
    const waiter = await other.during(other.acquire(A, { waitMs: 1 }), 10, 1);
    await expect(lab.lease(waiter.leaseId)).rejects.toMatchObject({ code: 'lease_not_found' });
  });
});
