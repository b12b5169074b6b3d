import { describe, expect, it } from 'vitest';
import { coordinatorNodes, coordinatorState } from '../../../src/doctor/coordinator-findings.ts';
import { settle } from '../../support/fake-clock.ts';
import { anybody, resource } from '../../support/lock-lab.ts';
import { ZookeeperLab } from '../../support/zookeeper-lab.ts';

const A = resource('a');
const NODE = '/locks/vol/a';
const EMPTY = new Uint8Array();

const contact = (state: 'connected' | 'suspended' | 'lost', reason: string | null = null) =>
  coordinatorState({ kind: 'zookeeper', state, sessionMs: 15_000, proofAgeMs: 6_000.4, reason }).map(({ finding }) => finding);

describe('the contact with the coordinator', () => {
  it('is a finding when it is suspended or lost, with the age of its proof', () => {
    expect(contact('connected')).toEqual([]);
    expect(contact('suspended')).toMatchObject([{ code: 'coordinator_suspended', severity: 'warning', evidence: { proof_age_ms: 6_000 } }]);
    expect(contact('lost')).toMatchObject([{ code: 'coordinator_lost', severity: 'error' }]);
  });

  it('is an error when its tokens are not above those of before, also while it is connected', () => {
    expect(contact('connected', 'it was put back')).toMatchObject([
      { code: 'coordinator_behind', severity: 'error', evidence: { what: 'it was put back', how: expect.stringContaining('rebase') } },
    ]);
  });
});

describe('nodes of ours', () => {
  const orphanBefore = async () => {
    const lab = new ZookeeperLab();
    const held = await lab.acquire(A, { ttlMs: 600_000 });
    const orphan = lab.ensemble.create(`${NODE}/_c_${'9'.repeat(32)}-x5-lock-`, EMPTY, lab.client.session.id, true);
    const elsewhere = lab.ensemble.create(`${NODE}/_c_${'8'.repeat(32)}-x5-lock-`, EMPTY, '0x99', true);
    const next = lab.acquire(A, { waitMs: 60_000, ttlMs: 600_000 });
    await settle();
    return { lab, held, orphan, elsewhere, next, nodes: () => lab.locks.nodes(), removeOrphan: lab.locks.removeOrphan };
  };

  it('R13: one that no lease stands behind is found, told from those of others, and its fix lets the line move on', async () => {
    const { lab, held, orphan, elsewhere, next, ...deps } = await orphanBefore();
    const [found, ...others] = await coordinatorNodes(deps);
    expect([found?.finding, others]).toMatchObject([{ code: 'node_orphaned', severity: 'error', resource: 'vol/a', evidence: { node: orphan } }, []]);
    await lab.release(held.leaseId);
    await settle();
    expect(await found?.remedy?.carryOut(anybody)).toEqual([`deleted ${orphan}`]);
    lab.ensemble.remove(elsewhere, null);
    expect(await next).toMatchObject({ state: 'held' });
    expect(await coordinatorNodes(deps)).toEqual([]);
    expect(await found?.remedy?.carryOut(anybody)).toEqual([expect.stringContaining('alone')]);
  });

  it('a contender that stands is never taken for one', async () => {
    const { lab, orphan, ...deps } = await orphanBefore();
    const [, waiter] = lab.ensemble.children(NODE).filter((name) => !/9{32}|8{32}/.test(name));
    expect(await deps.removeOrphan({ kind: 'orphan', resource: A, node: `${NODE}/${waiter}`, changes: 0 })).toBe(false);
    expect(lab.ensemble.nodes.has(`${NODE}/${waiter}`)).toBe(true);
    expect(lab.ensemble.nodes.has(orphan)).toBe(true);
  });

  it('a counter past 2^30 is told while the node is in use, and the node is made anew when it is idle', async () => {
    const lab = new ZookeeperLab();
    lab.ensemble.create(NODE, EMPTY, '0', false);
    const node = lab.ensemble.nodes.get(NODE);
    if (node !== undefined) node.cversion = 2 ** 30 + 1;
    const held = await lab.acquire(A, { ttlMs: 600_000 });
    const deps = { nodes: () => lab.locks.nodes(), removeOrphan: lab.locks.removeOrphan };
    expect((await coordinatorNodes(deps)).map(({ finding }) => finding)).toMatchObject([
      { code: 'sequence_counter_high', severity: 'warning', fix: null, evidence: { node: NODE, changes: 2 ** 30 + 2 } },
    ]);
    await lab.release(held.leaseId);
    await settle();
    expect(lab.ensemble.nodes.has(NODE)).toBe(false);
    await lab.acquire(A);
    expect(lab.ensemble.stat(NODE).cversion).toBe(1);
  });
});
