import { describe, expect, it } from 'vitest';
import { resourceOf } from '../../../../src/domain/resource.ts';
import { parseChild } from '../../../../src/locks/zookeeper/lock-node.ts';
import { decide } from '../../../../src/locks/zookeeper/protocol.ts';
import { encodeState, FREE } from '../../../../src/locks/zookeeper/resource-node.ts';
import { settle } from '../../../support/fake-clock.ts';
import { anybody, callerOf, resource, tokenOf } from '../../../support/lock-lab.ts';
import { ZookeeperLab } from '../../../support/zookeeper-lab.ts';

const A = resource('a');
const root = callerOf('root', null, ['admin']);
const NODE = '/locks/vol/a';
const EMPTY = new Uint8Array();

const CALLS = ['create', 'set', 'exists', 'get', 'children', 'remove'] as const;
const LOST = CALLS.flatMap((call) =>
  (['known', 'new'] as const).flatMap((path) => [
    { call, path, what: 'reply', lose: 'loseReply' as const },
    { call, path, what: 'request', lose: 'loseRequest' as const },
  ]),
);

describe('the ZooKeeper recipe when something fails', () => {
  it.each(LOST)('goes on after the $what of a $call was lost, on a $path path, with one child and one holder', async ({ call, path, lose }) => {
    const lab = new ZookeeperLab();
    if (path === 'known') await lab.release((await lab.acquire(A)).leaseId);
    await lab.clock.advanceAsync(1_000);
    lab.client[lose](call);
    const lease = await lab.during(lab.acquire(A, { waitMs: 5_000 }), 5_000);
    expect(lease.state).toBe('held');
    expect(lab.ensemble.children(NODE)).toHaveLength(1);
    lab.client[lose](call);
    await lab.release(lease.leaseId);
    await lab.clock.advanceAsync(1_000);
    expect(lab.ensemble.children(NODE)).toEqual([]);
    const next = await lab.during(lab.acquire(A, { waitMs: 5_000 }), 5_000);
    expect(tokenOf(next) > tokenOf(lease)).toBe(true);
  });

  it('goes on looking for a child of which nobody knows when the search breaks off: it is found, and is the only one', async () => {
    const lab = new ZookeeperLab();
    const lease = await lab.acquire(A);
    lab.client.loseReply('create');
    const waiter = lab.acquire(A, { waitMs: 60_000 });
    await settle();
    lab.client.loseReply('exists');
    await lab.clock.advanceAsync(1_000);
    expect(lab.ensemble.children(NODE)).toHaveLength(2);
    await lab.release(lease.leaseId);
    expect((await lab.during(waiter, 5_000)).state).toBe('held');
    expect(lab.ensemble.children(NODE)).toHaveLength(1);
  });

  it('mints tokens that are the mzxid of the grant, and grow in the order of grants whatever the queue did', async () => {
    const lab = new ZookeeperLab();
    const first = await lab.acquire(A);
    expect(BigInt(tokenOf(first))).toBe(lab.ensemble.stat(NODE).mzxid);
    const low = lab.acquire(A, { waitMs: 60_000, priority: 0 });
    await settle();
    const high = lab.acquire(A, { waitMs: 60_000, priority: 9 });
    await settle();
    await lab.release(first.leaseId);
    const second = await high;
    await lab.release(second.leaseId);
    expect(tokenOf(await low) > tokenOf(second)).toBe(true);
  });

  it('lets a lease whose child a third party deleted be over, and grants the next one a higher token', async () => {
    const lab = new ZookeeperLab();
    const lease = await lab.acquire(A, { ttlMs: 600_000 });
    const waiter = lab.acquire(A, { waitMs: 60_000 });
    await settle();
    lab.ensemble.remove(`${NODE}/${lab.ensemble.children(NODE)[0]}`, null);
    const next = await waiter;
    expect(tokenOf(next) > tokenOf(lease)).toBe(true);
    expect(await lab.lease(lease.leaseId)).toMatchObject({ state: 'lost' });
    expect(() => lab.locks.writeLeases.pin(A, tokenOf(lease))).toThrow();
  });

  it('stands a waiter whose child a third party deleted in line anew', async () => {
    const lab = new ZookeeperLab();
    const lease = await lab.acquire(A);
    const waiter = lab.acquire(A, { waitMs: 60_000 });
    await settle();
    const [, second] = lab.ensemble.children(NODE);
    lab.ensemble.remove(`${NODE}/${second}`, null);
    await lab.release(lease.leaseId);
    expect((await waiter).state).toBe('held');
    expect(lab.ensemble.children(NODE)).toHaveLength(1);
  });

  it.each(['where others wait', 'that nobody wants', 'that is gone then'])(
    'stands whoever lost his child before anybody saw it in line anew, at a node %s',
    async (node) => {
      const lab = new ZookeeperLab();
      const lease = node === 'where others wait' ? await lab.acquire(A) : null;
      const other = lease === null ? null : lab.acquire(A, { waitMs: 60_000 });
      await settle();
      const create = lab.ensemble.create.bind(lab.ensemble);
      lab.ensemble.create = (path, data, owner, sequential) => {
        const name = create(path, data, owner, sequential);
        if (!sequential) return name;
        lab.ensemble.create = create;
        lab.ensemble.remove(name, null);
        if (node === 'that is gone then') lab.ensemble.remove(NODE, null);
        return name;
      };
      const waiter = lab.acquire(A, { waitMs: 60_000 });
      await settle();
      if (lease !== null) await lab.release(lease.leaseId);
      if (other !== null) await lab.release((await lab.during(other, 5_000)).leaseId);
      expect((await lab.during(waiter, 5_000)).state).toBe('held');
      expect(lab.ensemble.children(NODE)).toHaveLength(1);
    },
  );

  it('gives up what it held at a node that somebody deleted, asks no more, and grants there again', async () => {
    const lab = new ZookeeperLab();
    const lease = await lab.acquire(A);
    lab.ensemble.remove(`${NODE}/${lab.ensemble.children(NODE)[0]}`, null);
    lab.ensemble.remove(NODE, null);
    await lab.release(lease.leaseId);
    await lab.clock.advanceAsync(1_000);
    const reads = lab.client.counts.get('get');
    await lab.clock.advanceAsync(5_000);
    expect([lab.client.counts.get('get'), [...lab.coordinator.entries(0)]]).toEqual([reads, []]);
    expect(tokenOf(await lab.acquire(A)) > tokenOf(lease)).toBe(true);
  });

  it('breaks a lease at a node that somebody deleted: the number that nobody gets is one of a node made anew', async () => {
    const lab = new ZookeeperLab();
    const lease = await lab.acquire(A);
    lab.ensemble.remove(`${NODE}/${lab.ensemble.children(NODE)[0]}`, null);
    lab.ensemble.remove(NODE, null);
    await lab.during(lab.locks.breakLock(root, { resource: A, reason: 'x', graceMs: 0 }), 5_000);
    expect((await lab.lease(lease.leaseId)).state).toMatch(/^(lost|broken)$/);
    expect(lab.ensemble.stat(NODE).mzxid > BigInt(tokenOf(lease))).toBe(true);
    await lab.clock.advanceAsync(1_000);
    expect([...lab.coordinator.entries(0)]).toEqual([]);
  });

  it('waits for the upgrade of another gateway, which is not its own to grant', () => {
    const [reader, waiter] = ['_c_aa-s5-lock-0000000000', '_c_bb-x5-lock-0000000001'];
    const holder = { lease: 'reader', node: reader, mode: 'shared', token: 1n, home: '0x99', lockDelayMs: 0 } as const;
    const look = { state: { ...FREE, holders: [holder], upgrade: 'reader' }, children: [reader, waiter].map(parseChild) };
    expect(decide({ ...look, own: new Set([waiter]) })).toEqual({ kind: 'wait', watches: new Map([[waiter, reader]]) });
    expect(decide({ ...look, own: new Set([waiter, reader]) })).toEqual({ kind: 'upgrade', holder });
  });

  it('R13: a child of its own session that a server has brought back, and nobody stands behind, bars nobody', async () => {
    const lab = new ZookeeperLab();
    await lab.release((await lab.acquire(A)).leaseId);
    await lab.clock.advanceAsync(1_000);
    const orphan = lab.ensemble.create(`${NODE}/_c_${'0'.repeat(32)}-x5-lock-`, EMPTY, lab.client.session.id, true);
    const lease = await lab.during(lab.acquire(A, { waitMs: 5_000 }), 5_000);
    expect(lease.state).toBe('held');
    expect(lab.ensemble.nodes.has(orphan)).toBe(false);
  });

  it('R13: nor one that was watched, whose end was not heard of because the connection went', async () => {
    const lab = new ZookeeperLab();
    const first = await lab.acquire(A);
    const waiter = lab.acquire(A, { waitMs: 60_000 });
    await settle();
    const remove = lab.ensemble.remove.bind(lab.ensemble);
    lab.client.fire = () => undefined;
    lab.ensemble.remove = (path, version) => {
      lab.ensemble.remove = remove;
      remove(path, version);
      lab.ensemble.create(path, EMPTY, lab.client.session.id, false);
    };
    await lab.release(first.leaseId);
    await settle();
    lab.coordinator.resume();
    expect((await lab.during(waiter, 5_000)).state).toBe('held');
  });

  it('leaves a child of another session of ours alone: its own gateway deletes it', async () => {
    const lab = new ZookeeperLab();
    await lab.release((await lab.acquire(A)).leaseId);
    await lab.clock.advanceAsync(1_000);
    const other = lab.ensemble.create(`${NODE}/_c_${'0'.repeat(32)}-x5-lock-`, EMPTY, '0x99', true);
    const lease = lab.acquire(A, { waitMs: 60_000 });
    await settle();
    expect(lab.ensemble.nodes.has(other)).toBe(true);
    lab.ensemble.remove(other, null);
    expect((await lease).state).toBe('held');
  });

  it('grants nobody past a contender of another recipe, whatever the priority', async () => {
    const lab = new ZookeeperLab();
    const lease = await lab.acquire(A);
    const foreign = lab.ensemble.create(`${NODE}/_c_11111111-2222-lock-`, EMPTY, '0x99', true);
    const ours = lab.acquire(A, { waitMs: 60_000, priority: 9 });
    await settle();
    expect(await lab.locks.service.lock(A)).toMatchObject({ foreign: [foreign.slice(NODE.length + 1)], fenceLevel: 'incarnation' });
    await lab.release(lease.leaseId);
    await settle();
    expect(await lab.locks.service.lock(A)).toMatchObject({ holders: [], fenceLevel: 'token' });
    lab.ensemble.remove(foreign, null);
    expect((await ours).state).toBe('held');
    expect(await lab.locks.service.lock(A)).toMatchObject({ foreign: [], fenceLevel: 'incarnation' });
  });

  it('R26: shows who holds by another recipe where nobody of ours stands', async () => {
    const lab = new ZookeeperLab();
    lab.ensemble.create(NODE, EMPTY, '0', false);
    const second = lab.ensemble.create(`${NODE}/z-lock-`, EMPTY, '0x99', true);
    const third = lab.ensemble.create(`${NODE}/a-lock-`, EMPTY, '0x98', true);
    const foreign = [second, third].map((path) => path.slice(NODE.length + 1));
    expect(await lab.locks.service.lock(A)).toMatchObject({ holders: [], foreign, fenceLevel: 'token' });
    expect(await lab.locks.service.lock(resource('never'))).toMatchObject({ foreign: [], fenceLevel: 'incarnation' });
    lab.client.loseReply('children');
    await expect(lab.locks.service.lock(A)).rejects.toMatchObject({ code: 'coordinator_unavailable' });
  });

  it('all spellings of one file stand at one node where the volume folds names', async () => {
    const lab = new ZookeeperLab();
    const held = await lab.acquire(resourceOf('vol', ['Ledger.CSV'], true));
    await expect(lab.acquire(resourceOf('vol', ['ledger.csv'], true), { waitMs: 0 })).rejects.toMatchObject({ code: 'lock_not_acquired' });
    await lab.release(held.leaseId);
    await settle();
    await lab.acquire(resourceOf('vol', ['LEDGER.csv'], true));
    expect(lab.ensemble.children('/locks/vol')).toEqual(['ledger.csv']);
  });

  it('R7: keeps the order of arrival at the end of the counter, where every child gets the same number', async () => {
    const lab = new ZookeeperLab();
    lab.ensemble.create(NODE, EMPTY, '0', false);
    const node = lab.ensemble.nodes.get(NODE);
    if (node !== undefined) node.cversion = 2_147_483_645;
    let current = await lab.acquire(A);
    const waiting = [];
    for (let i = 0; i < 5; i += 1) {
      waiting.push(lab.acquire(A, { waitMs: 60_000, ttlMs: 60_000 }));
      await settle();
    }
    for (const wait of waiting) {
      await lab.release(current.leaseId);
      const next = await wait;
      expect(tokenOf(next) > tokenOf(current)).toBe(true);
      current = next;
    }
  });

  it('R11: wakes exactly one of 200 waiters by each release', async () => {
    const lab = new ZookeeperLab();
    let current = await lab.acquire(A, { ttlMs: 3_600_000 });
    const waiting = Array.from({ length: 200 }, () => lab.acquire(A, { waitMs: 60_000, ttlMs: 3_600_000 }));
    await lab.clock.advanceAsync(1);
    for (const wait of waiting.slice(0, 20)) {
      const before = lab.client.wakes;
      await lab.release(current.leaseId);
      current = await wait;
      await settle();
      expect(lab.client.wakes - before).toBe(1);
    }
  });

  it('says in the node, for people, whether the last holder was taken out by its own gateway or had lost its session', async () => {
    const lab = new ZookeeperLab();
    const gone = { lease: 'gone', node: '_c_ab-x5-lock-0000000000', mode: 'exclusive', token: 1n, home: '0x99', lockDelayMs: 0 } as const;
    lab.ensemble.create(NODE, encodeState({ ...FREE, holders: [gone] }), '0', false);
    const clean = (): unknown => (JSON.parse(String(Buffer.from(lab.ensemble.nodes.get(NODE)?.data ?? []))) as { clean: unknown }).clean;
    const lease = await lab.acquire(A);
    expect(clean()).toBe(false);
    await lab.release(lease.leaseId);
    await settle();
    expect(clean()).toBe(true);
  });

  it('names of a lease over several the child at each, and of one that is over the node that it had', async () => {
    const lab = new ZookeeperLab();
    const B = resource('b');
    const lease = await lab.acquire([A, B]);
    for (const one of [A, B]) {
      const { holders, znodePath } = await lab.locks.service.lock(one);
      expect(lab.ensemble.children(znodePath)).toEqual(holders.map(({ znode }) => znode));
    }
    expect(lab.ensemble.nodes.has(lease.acquiredZnodePath ?? '')).toBe(true);
    await lab.release(lease.leaseId);
    await lab.clock.advanceAsync(1_000);
    expect(lab.ensemble.nodes.has(lease.acquiredZnodePath ?? '')).toBe(false);
    expect((await lab.lease(lease.leaseId)).acquiredZnodePath).toBe(lease.acquiredZnodePath);
  });

  it('R26: says nothing of a lock on a volume that is not open at this gateway: its holders are known elsewhere', async () => {
    const lab = new ZookeeperLab();
    await lab.acquire(A);
    lab.owned = false;
    await expect(lab.locks.service.lock(A)).rejects.toMatchObject({ code: 'volume_unavailable' });
  });

  it.each(['{"v":2}', 'rubbish'])(
    'refuses a resource node with data that no gateway wrote (%s): nobody is granted, who asks is told why, until it is gone',
    async (data) => {
      const lab = new ZookeeperLab();
      lab.ensemble.create(NODE, Buffer.from(data), '0', false);
      const refusal = { code: 'coordinator_unavailable', message: expect.stringContaining(NODE) };
      for (const waitMs of [0, 5_000]) await expect(lab.during(lab.acquire(A, { waitMs }), 2_000)).rejects.toMatchObject(refusal);
      // Whoever stands there is gone from the line; nobody of ours need be there for the question.
      await expect(lab.during(lab.locks.service.lock(A), 2_000)).rejects.toMatchObject(refusal);
      expect(lab.ensemble.children(NODE)).toEqual([]);
      const reads = lab.client.counts.get('get');
      await lab.clock.advanceAsync(5_000);
      expect(lab.client.counts.get('get')).toBe(reads);
      const other = await lab.acquire(resource('other'));
      await lab.release(other.leaseId);
      lab.ensemble.set(NODE, EMPTY, lab.ensemble.stat(NODE).version);
      expect((await lab.acquire(A, { waitMs: 0 })).state).toBe('held');
      expect((await lab.locks.service.lock(A)).holders).toHaveLength(1);
      expect(lab.ensemble.children(NODE)).toHaveLength(1);
    },
  );

  it('refuses at a node with such data also whoever comes right after another one was refused, however short he waits', async () => {
    const lab = new ZookeeperLab();
    lab.ensemble.create(NODE, Buffer.from('rubbish'), '0', false);
    const remove = lab.client.remove.bind(lab.client);
    const second = new Promise((resolve, reject) => {
      lab.client.remove = (path, version) => {
        lab.client.remove = remove;
        lab.acquire(A, { waitMs: 300 }).then(resolve, reject);
        return remove(path, version);
      };
    });
    const refusal = { code: 'coordinator_unavailable', message: expect.stringContaining(NODE) };
    await Promise.all([
      expect(lab.during(second, 2_000)).rejects.toMatchObject(refusal),
      expect(lab.acquire(A, { waitMs: 0 })).rejects.toMatchObject(refusal),
    ]);
  });

  it('R26: who asks while the session ends is told that nobody can say, and not what was known before', async () => {
    const lab = new ZookeeperLab();
    await lab.acquire(A, { ttlMs: 600_000 });
    lab.client.holdReplies();
    const view = lab.locks.service.lock(A);
    await settle();
    lab.coordinator.end();
    await expect(view).rejects.toMatchObject({ code: 'coordinator_unavailable' });
  });

  it.each([0, 5_000])('who comes while the title of the volume is looked at again waits for that moment (wait_ms %d)', async (waitMs) => {
    const lab = new ZookeeperLab();
    lab.judged = true;
    const lease = lab.acquire(A, { waitMs });
    await settle();
    lab.judged = false;
    lab.coordinator.resume();
    expect((await lease).state).toBe('held');
  });

  it('R16: promises no holder more than the proof of the coordinator, by no answer: the lease, a renewal, a heartbeat of its session', async () => {
    const lab = new ZookeeperLab();
    const { sessionId } = await lab.locks.service.createSession(anybody, { ttlMs: 30_000, clientId: null });
    lab.remainderMs = 9_500;
    const lease = await lab.acquire(A, { sessionId, ttlMs: 30_000 });
    expect(lease.expiresInMs).toBe(9_500);
    lab.remainderMs = 8_000;
    expect(await lab.locks.service.heartbeat(anybody, sessionId)).toMatchObject({ expiresInMs: 8_000 });
    lab.remainderMs = 60_000;
    expect(await lab.locks.service.heartbeat(anybody, sessionId)).toMatchObject({ expiresInMs: 30_000 });
  });
});
