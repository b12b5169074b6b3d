import { describe, expect, it } from 'vitest';
import { settle } from '../../../support/fake-clock.ts';
import { anybody, never, request, resource } from '../../../support/lock-lab.ts';
import { ZookeeperLab } from '../../../support/zookeeper-lab.ts';

/** Whoever waits for a contender of another recipe is told which: it has no lease, so nothing else names it. */

const A = resource('a');
const NODE = '/locks/vol/a';
const EMPTY = new Uint8Array();

/** A lab in which other programs stand at the node of A, and their names. */
function contended(...prefixes: readonly string[]): { readonly lab: ZookeeperLab; readonly names: readonly string[] } {
  const lab = new ZookeeperLab();
  lab.ensemble.create(NODE, EMPTY, '0', false);
  const paths = prefixes.map((prefix) => lab.ensemble.create(`${NODE}/${prefix}`, EMPTY, '0x99', true));
  return { lab, names: paths.map((path) => path.slice(NODE.length + 1)) };
}

const write = (lab: ZookeeperLab, waitMs: number) =>
  lab.locks.writeLeases.acquireImplicit({ resources: [A], caller: anybody, waitMs, signal: never });

describe('a contender of another recipe', () => {
  it('is named to who tries, with its node', async () => {
    const { lab, names } = contended('kazoo__lock__');
    await expect(lab.acquire(A)).rejects.toMatchObject({
      code: 'lock_not_acquired',
      message: expect.stringContaining(`${NODE}/${names[0]}`),
      members: { resource: 'vol/a', holder_client_id: null, foreign_contenders: names },
    });
  });

  it('is named to who waited for it, whoever ends the wait', async () => {
    const { lab, names } = contended('kazoo__lock__', 'curator-lock-');
    const refusal = {
      code: 'lock_not_acquired',
      message: expect.stringContaining(`${NODE}/${names[0]}, and 1 more`),
      members: { state: 'cancelled', reason: 'max_wait', foreign_contenders: names },
    };
    await expect(lab.during(lab.acquire(A, { waitMs: 30_000, maxWaitMs: 2_000 }), 5_000)).rejects.toMatchObject(refusal);
    const unbounded = lab.locks.service.acquire(anybody, request(A, { waitMs: null, maxWaitMs: 2_000 }), never);
    await expect(lab.during(unbounded, 5_000)).rejects.toMatchObject(refusal);
  });

  it('is named to a write without a token, whether it waits or not', async () => {
    const { lab, names } = contended('kazoo__lock__');
    const refusal = {
      code: 'resource_locked',
      message: expect.stringContaining(`${NODE}/${names[0]}`),
      members: { holder_client_id: null, foreign_contenders: names },
    };
    for (const waitMs of [0, 2_000]) await expect(lab.during(write(lab, waitMs), 5_000)).rejects.toMatchObject(refusal);
    const waiter = lab.acquire(A, { waitMs: 60_000 });
    await settle();
    expect(lab.locks.writeLeases.holder(A)).toMatchObject({ clientId: null, queueLength: 1, foreign: { hold: true, names } });
    lab.ensemble.remove(`${NODE}/${names[0]}`, null);
    expect((await waiter).state).toBe('held');
  });

  it('that waits behind a holder of ours is listed, and is not said to hold', async () => {
    const { lab } = contended();
    await lab.acquire(A, { clientId: 'ours' });
    const behind = lab.ensemble.create(`${NODE}/kazoo__lock__`, EMPTY, '0x99', true).slice(NODE.length + 1);
    await expect(lab.acquire(A)).rejects.toMatchObject({
      message: expect.not.stringContaining(behind),
      members: { holder_client_id: 'ours', foreign_contenders: [behind] },
    });
  });

  it('is one of ten that a refusal names; the lock itself names all', async () => {
    const { lab, names } = contended(...Array.from({ length: 12 }, () => 'kazoo__lock__'));
    await expect(lab.acquire(A)).rejects.toMatchObject({ members: { foreign_contenders: names.slice(0, 10) } });
    expect((await lab.locks.service.lock(A)).foreign).toEqual(names);
  });
});
