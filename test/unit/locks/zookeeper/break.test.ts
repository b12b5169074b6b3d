import { describe, expect, it } from 'vitest';
import { decodeState, encodeState, type NodeState } from '../../../../src/locks/zookeeper/resource-node.ts';
import type { ZkStat } from '../../../../src/locks/zookeeper/zk-client.ts';
import { settle } from '../../../support/fake-clock.ts';
import { callerOf, resource } from '../../../support/lock-lab.ts';
import { ZookeeperLab } from '../../../support/zookeeper-lab.ts';

const A = resource('a');
const ROOT = callerOf('root', 'console', ['admin']);
const NODE = '/locks/vol/a';

const stateOf = (lab: ZookeeperLab): NodeState =>
  decodeState(lab.ensemble.nodes.get(NODE)?.data ?? new Uint8Array(), lab.ensemble.stat(NODE) satisfies ZkStat);

describe('the grace period of a break, in the node', () => {
  it('names the leases that are meant until they are gone, and lets nobody in meanwhile', async () => {
    const lab = new ZookeeperLab();
    const reader = await lab.acquire(A, { mode: 'shared', ttlMs: 600_000 });
    await lab.locks.breakLock(ROOT, { resource: A, reason: 'maintenance', graceMs: 10_000 });
    await settle();
    expect(stateOf(lab).breaks).toEqual([{ lease: reader.leaseRef, untilMs: lab.clock.wallMs() + 10_000 }]);
    const next = lab.acquire(A, { mode: 'shared', waitMs: 60_000, ttlMs: 600_000 });
    await settle();
    expect(stateOf(lab).holders).toHaveLength(1);
    await lab.clock.advanceAsync(10_000);
    expect(await next).toMatchObject({ state: 'held' });
    expect(stateOf(lab)).toMatchObject({ breaks: [], holders: [{ mode: 'shared' }] });
    expect(stateOf(lab).holders[0]?.lease).not.toBe(reader.leaseRef);
  });

  it('is over at once when the holder releases, and the node says that it was clean', async () => {
    const lab = new ZookeeperLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    await lab.locks.breakLock(ROOT, { resource: A, reason: 'maintenance', graceMs: 10_000 });
    const next = lab.acquire(A, { waitMs: 60_000 });
    await settle();
    await lab.release(lease.leaseId);
    expect(await next).toMatchObject({ state: 'held' });
    expect(stateOf(lab)).toMatchObject({ breaks: [], clean: true });
  });

  it('of a lease of another gateway bars everybody while that one holds, and goes with it when it dies', async () => {
    const lab = new ZookeeperLab();
    const other = lab.ensemble.open();
    lab.ensemble.create(NODE, new Uint8Array(), '0', false);
    const child = lab.ensemble.create(`${NODE}/_c_${'9'.repeat(32)}-s5-lock-`, new Uint8Array(), other.session.id, true);
    const holder = {
      lease: 'elsewhere',
      node: child.slice(NODE.length + 1),
      mode: 'shared',
      token: 1n,
      home: other.session.id,
      lockDelayMs: 0,
    } as const;
    const breaks = [{ lease: 'elsewhere', untilMs: 1 }];
    lab.ensemble.set(NODE, encodeState({ holders: [holder], upgrade: null, delay: null, breaks, clean: null }), 0);
    const reader = lab.acquire(A, { mode: 'shared', waitMs: 60_000 });
    await settle();
    expect(stateOf(lab)).toMatchObject({ holders: [{ lease: 'elsewhere' }], breaks });
    other.expire();
    expect(await reader).toMatchObject({ state: 'held' });
    expect(stateOf(lab)).toMatchObject({ breaks: [], clean: false });
  });
});
