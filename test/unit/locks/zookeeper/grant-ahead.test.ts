import { beforeEach, describe, expect, it } from 'vitest';
import { encodeState, FREE } from '../../../../src/locks/zookeeper/resource-node.ts';
import { settle } from '../../../support/fake-clock.ts';
import { resource, tokenOf } from '../../../support/lock-lab.ts';
import { ZookeeperLab } from '../../../support/zookeeper-lab.ts';

const A = resource('a');
const NODE = '/locks/vol/a';
const EMPTY = new Uint8Array();

let lab: ZookeeperLab;
beforeEach(async () => {
  lab = new ZookeeperLab();
  await cycle();
});

/** After it the gateway knows how it left the node. */
async function cycle(): Promise<void> {
  await lab.release((await lab.acquire(A)).leaseId);
  await settle();
}

function holders(): readonly unknown[] {
  const { data } = lab.ensemble.nodes.get(NODE) ?? {};
  return (JSON.parse(String(Buffer.from(data ?? []))) as { holders: unknown[] }).holders;
}

function foreign(): string {
  return lab.ensemble.create(`${NODE}/_c_11111111-2222-lock-`, EMPTY, '0x99', true);
}

describe('a grant that is sent before anybody has looked', () => {
  it('is none when a contender of another recipe came first: the node says so, and who watches the child hears of it', async () => {
    const other = foreign();
    const ours = lab.acquire(A, { waitMs: 60_000 });
    await lab.clock.advanceAsync(1);
    expect(holders()).toEqual([]);
    const child = lab.ensemble.children(NODE).find((name) => name.includes('-x5-'));
    expect(lab.ensemble.stat(`${NODE}/${child}`).version).toBe(1);
    expect(await lab.locks.service.lock(A)).toMatchObject({ holders: [], queueLength: 1 });
    lab.ensemble.remove(other, null);
    const lease = await ours;
    expect(BigInt(tokenOf(lease))).toBe(lab.ensemble.stat(NODE).mzxid);
  });

  it.each(['set', 'exists', 'get', 'children', 'create'] as const)(
    'is none either when the reply to %s is lost and a contender of another recipe came first',
    async (call) => {
      const other = foreign();
      lab.client.loseReply(call);
      const ours = lab.acquire(A, { waitMs: 60_000, ttlMs: 60_000 });
      await lab.clock.advanceAsync(5_000);
      expect(holders()).toEqual([]);
      expect(await lab.locks.service.lock(A)).toMatchObject({ holders: [], queueLength: 1 });
      lab.ensemble.remove(other, null);
      expect((await ours).state).toBe('held');
    },
  );

  it('costs no lock-delay when somebody came and went, so that its child has another name than was expected', async () => {
    lab.ensemble.remove(foreign(), null);
    const lease = await lab.acquire(A, { lockDelayMs: 60_000, waitMs: 0 });
    expect(lease.state).toBe('held');
    expect(holders()).toHaveLength(1);
    expect(BigInt(tokenOf(lease))).toBe(lab.ensemble.stat(NODE).mzxid);
  });

  it('is refused by a node that somebody changed, and granted by the look', async () => {
    lab.ensemble.set(NODE, EMPTY, lab.ensemble.stat(NODE).version);
    expect((await lab.acquire(A, { waitMs: 0 })).state).toBe('held');
  });

  it('writes over nothing that another program has in a node that no gateway made', async () => {
    const data = Buffer.from('of somebody else');
    lab.ensemble.create('/locks/vol/b', data, '0', false);
    await expect(lab.during(lab.acquire(resource('b'), { waitMs: 0 }), 2_000)).rejects.toMatchObject({ code: 'coordinator_unavailable' });
    expect(lab.ensemble.nodes.get('/locks/vol/b')?.data).toBe(data);
  });

  it('of a name never seen is refused by a node that another program wrote to while the read was on its way', async () => {
    const answer = lab.client.holdReplies();
    const ours = lab.acquire(resource('b'), { waitMs: 0 });
    await settle();
    const data = Buffer.from('of somebody else');
    lab.ensemble.set('/locks/vol/b', data, 0);
    answer();
    await expect(lab.during(ours, 2_000)).rejects.toMatchObject({ code: 'coordinator_unavailable' });
    expect(lab.ensemble.nodes.get('/locks/vol/b')?.data).toBe(data);
  });

  it('is told to nobody while something of a dead incarnation is on the volume', async () => {
    lab.cleared = false;
    const ours = lab.acquire(A, { waitMs: 60_000 });
    let told = false;
    void ours.then(() => {
      told = true;
    });
    await settle();
    expect(told).toBe(false);
    lab.cleared = true;
    lab.coordinator.resume();
    expect(tokenOf(await ours)).toBeGreaterThan(0n);
  });

  it('is taken back when its client has gone before the answer was there', async () => {
    const answer = lab.client.holdReplies();
    const gone = new AbortController();
    const ours = lab.acquire(A, { waitMs: 60_000 }, undefined, gone.signal);
    await settle();
    gone.abort(new Error('gone'));
    await expect(ours).rejects.toThrow();
    answer();
    await lab.clock.advanceAsync(1_000);
    expect(holders()).toEqual([]);
    expect(lab.ensemble.children(NODE)).toEqual([]);
  });
});

describe('a waiter that begins to watch', () => {
  it('looks again when whom it watches has become less since its look', async () => {
    const theirs = foreignGateway();
    lab.client.onceBeforeWatch = () => theirs.becomesReader();
    const ours = lab.acquire(A, { mode: 'shared', waitMs: 60_000 });
    expect((await lab.during(ours, 1_000)).mode).toBe('shared');
    expect(lab.ensemble.children(NODE)).toContain(theirs.child);
  });
});

/** A holder at another gateway, as the node and its child show it. */
function foreignGateway(): { readonly child: string; becomesReader(): void } {
  const child = lab.ensemble.create(`${NODE}/_c_${'ab'.repeat(16)}-x5-lock-`, EMPTY, '0x99', true).slice(NODE.length + 1);
  const entry = { lease: 'another', node: child, home: '0x99', lockDelayMs: 0, token: null } as const;
  const set = (mode: 'exclusive' | 'shared'): void => {
    lab.ensemble.set(NODE, encodeState({ ...FREE, holders: [{ ...entry, mode }] }), lab.ensemble.stat(NODE).version);
  };
  set('exclusive');
  return {
    child,
    becomesReader: () => {
      set('shared');
      lab.ensemble.set(`${NODE}/${child}`, EMPTY, 0);
    },
  };
}
