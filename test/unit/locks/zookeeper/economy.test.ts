import { beforeEach, describe, expect, it } from 'vitest';
import { LIMITS } from '../../../../src/domain/limits.ts';
import { KnownNodes } from '../../../../src/locks/zookeeper/known-nodes.ts';
import { encodeState, FREE } from '../../../../src/locks/zookeeper/resource-node.ts';
import { settle } from '../../../support/fake-clock.ts';
import { resource, tokenOf } from '../../../support/lock-lab.ts';
import { ZookeeperLab } from '../../../support/zookeeper-lab.ts';

const A = resource('a');
const NODE = '/locks/vol/a';

let lab: ZookeeperLab;
beforeEach(() => {
  lab = new ZookeeperLab();
});

async function cycle(): Promise<string> {
  const lease = await lab.acquire(A, { ttlMs: 600_000 });
  await lab.release(lease.leaseId);
  await settle();
  return tokenOf(lease).toString();
}

/** What the ensemble is asked meanwhile. */
async function asked(work: () => Promise<unknown>): Promise<Record<string, number>> {
  lab.client.counts.clear();
  await work();
  return Object.fromEntries(lab.client.counts);
}

describe('what a lease that nobody else wants asks of the ensemble', () => {
  it('is four changes on a name that was locked before: the child, the grant, its end, the child’s end; and one look', async () => {
    await cycle();
    expect(await asked(cycle)).toEqual({ create: 1, get: 1, children: 2, set: 2, exists: 1, remove: 1 });
  });

  it('is one more on a name never seen, and a read of it: its node, down the pipe with the child', async () => {
    expect(await asked(cycle)).toEqual({ create: 2, get: 2, children: 2, set: 2, exists: 1, remove: 1 });
  });

  it('is all sent before the first answer is there, the grant with its child, and the child’s end with that of the grant', async () => {
    await cycle();
    let answer = lab.client.holdReplies();
    const acquired = lab.acquire(A, { ttlMs: 600_000 });
    expect(await asked(() => settle())).toEqual({ create: 1, get: 1, children: 2, set: 1, exists: 1 });
    answer();
    const lease = await acquired;
    expect(BigInt(tokenOf(lease))).toBe(lab.ensemble.stat(NODE).mzxid);
    answer = lab.client.holdReplies();
    expect(await asked(async () => [await lab.release(lease.leaseId), await settle()])).toEqual({ set: 1, remove: 1 });
    answer();
    expect(lab.ensemble.children(NODE)).toEqual([]);
  });

  it('is all but the grant on a name never seen, which follows when the read has said that nobody was there', async () => {
    const answer = lab.client.holdReplies();
    const acquired = lab.acquire(A, { ttlMs: 600_000 });
    expect(await asked(() => settle())).toEqual({ create: 2, get: 2, children: 2 });
    const granted = await asked(async () => [answer(), await acquired]);
    expect(granted).toEqual({ set: 1, exists: 1 });
  });

  it('is the node again when somebody removed it', async () => {
    await cycle();
    lab.ensemble.remove(NODE, null);
    expect(BigInt(await cycle())).toBeGreaterThan(0n);
    expect(lab.ensemble.children(NODE)).toEqual([]);
  });
});

describe('a release without a look', () => {
  it('looks after all when somebody changed the node since the grant, and takes out nothing but its own', async () => {
    const lease = await lab.acquire(A, { mode: 'shared', ttlMs: 600_000 });
    const { holders } = JSON.parse(String(Buffer.from(lab.ensemble.nodes.get(NODE)?.data ?? []))) as { holders: { lease: string; node: string }[] };
    const [{ lease: ref, node }] = holders as [{ lease: string; node: string }];
    const child = lab.ensemble.create(`${NODE}/_c_${'ab'.repeat(16)}-s5-lock-`, new Uint8Array(), '0x99', true).slice(NODE.length + 1);
    const shared = { mode: 'shared', lockDelayMs: 0 } as const;
    const ours = { ...shared, lease: ref, node, token: BigInt(tokenOf(lease)), home: lab.client.session.id };
    const theirs = { ...shared, lease: 'another', node: child, token: null, home: '0x99' };
    lab.ensemble.set(NODE, encodeState({ ...FREE, holders: [ours, theirs] }), lab.ensemble.stat(NODE).version);
    await lab.release(lease.leaseId);
    await settle();
    expect(lab.ensemble.children(NODE)).toEqual([child]);
    expect(String(Buffer.from(lab.ensemble.nodes.get(NODE)?.data ?? []))).toMatch(/^\{"v":1,"holders":\[\{"lease":"another"[^\]]*\],/);
  });

  it('still hands over to whoever of ours waits', async () => {
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    const next = lab.acquire(A, { waitMs: 60_000 });
    await settle();
    await lab.release(lease.leaseId);
    expect((await next).state).toBe('held');
  });

  it('holds the name back for its lock-delay after an unclean end', async () => {
    const lease = await lab.acquire(A, { ttlMs: 1_000, lockDelayMs: 5_000 });
    await lab.clock.advanceAsync(1_001);
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'expired' });
    await expect(lab.acquire(A, { waitMs: 0 })).rejects.toMatchObject({ code: 'lock_not_acquired' });
    const next = lab.acquire(A, { waitMs: 60_000 });
    await lab.clock.advanceAsync(5_000);
    expect((await next).state).toBe('held');
  });
});

describe('nodes that are known to be there', () => {
  it('are so many at most, the ones noted last', () => {
    const known = new KnownNodes();
    for (let n = 0; n <= LIMITS.zookeeperKnownNodesMax; n += 1) {
      known.note(`/locks/v/${n}`);
      if (n === 1) known.note('/locks/v/0');
    }
    expect(['/locks/v/0', '/locks/v/1', `/locks/v/${LIMITS.zookeeperKnownNodesMax}`].map((path) => known.has(path))).toEqual([true, false, true]);
    known.forget('/locks/v/0');
    expect(known.has('/locks/v/0')).toBe(false);
  });
});
