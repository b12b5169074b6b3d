import { describe, expect, it } from 'vitest';
import { settle } from '../../../support/fake-clock.ts';
import { callerOf, resource } from '../../../support/lock-lab.ts';
import { ZookeeperLab } from '../../../support/zookeeper-lab.ts';

const A = resource('a');
const ROOT = callerOf('root', 'console', ['admin']);
const NODE = '/locks/vol/a';
const EMPTY = new Uint8Array();

const breakOf = (lab: ZookeeperLab, graceMs = 0) => lab.locks.breakLock(ROOT, { resource: A, reason: 'maintenance', graceMs });

describe('a break of a lock of which nobody here knows who holds it', () => {
  it.each([
    ['while contact is suspended', 'coordinator_suspended', (lab: ZookeeperLab) => lab.client.cut()],
    ['without a session', 'coordinator_unavailable', (lab: ZookeeperLab) => lab.coordinator.end()],
    ['on a volume that is not open here', 'volume_unavailable', (lab: ZookeeperLab) => Object.assign(lab, { owned: false })],
  ])('%s is refused as a look at the lock is, not told that nobody holds it', async (_when, code, happens) => {
    const lab = new ZookeeperLab();
    happens(lab);
    for (const graceMs of [0, 5_000]) await expect(breakOf(lab, graceMs)).rejects.toMatchObject({ code });
    await expect(lab.locks.service.lock(A)).rejects.toMatchObject({ code });
  });

  it('in contact is told that nobody does, or which other program is there, without a lease that could be broken', async () => {
    const lab = new ZookeeperLab();
    await expect(breakOf(lab)).rejects.toMatchObject({
      code: 'not_found',
      message: 'Nobody holds this resource.',
      members: { foreign_contenders: [] },
    });
    lab.ensemble.create(NODE, EMPTY, '0', false);
    const name = lab.ensemble.create(`${NODE}/kazoo__lock__`, EMPTY, '0x99', true).slice(NODE.length + 1);
    const refusal = {
      code: 'not_found',
      message: expect.stringMatching(new RegExp(`no lease.*${NODE}/${name}`)),
      members: { resource: 'vol/a', foreign_contenders: [name] },
    };
    await expect(breakOf(lab)).rejects.toMatchObject(refusal);
    const waiter = lab.acquire(A, { waitMs: 60_000 });
    await settle();
    await expect(breakOf(lab)).rejects.toMatchObject(refusal);
    lab.ensemble.remove(`${NODE}/${name}`, null);
    expect((await waiter).state).toBe('held');
  });
});
