import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ZkClient } from '../../src/locks/zookeeper/zk-client.ts';
import { newDirectory } from '../support/gateway-settings.ts';
import type { EventJson } from '../support/lock-client.ts';
import { type BehindLink, behindLink, type Ending, SharedGateway } from '../support/shared-gateway.ts';
import { TIER } from '../support/tier.ts';
import { until } from '../support/until.ts';
import { observer } from '../support/zookeeper-client.ts';
import { TestEnsemble } from '../support/zookeeper-ensemble.ts';
import { GATEWAY_SESSION_MS, type ZooKeeperGatewayOptions } from '../support/zookeeper-gateway.ts';

/**
 * The link between a gateway and its ensemble is cut, silenced, delayed, and loses replies. Each gateway has a link and a root of its own;
 * tests at the end of which all is as before take turns at one of them.
 */

let zookeeper: TestEnsemble;
let roots = 0;
beforeAll(async () => {
  zookeeper = await TestEnsemble.start();
});
afterAll(async () => {
  await shared.end();
  await zookeeper.stop();
});

const FLAP_MS_MAX = 20_000;

const serverPort = (): number => zookeeper.servers[0]?.port ?? 0;

const newRoot = (): string => {
  roots += 1;
  return `/g${roots}`;
};

/** For a test that does to its gateway what others must not meet. */
function alone({ onTestFinished }: Ending, options: ZooKeeperGatewayOptions = {}): Promise<BehindLink> {
  return behindLink(serverPort(), newRoot(), onTestFinished, options);
}

/** For those whose session stays. */
const shared = new SharedGateway((whenFinished) => behindLink(serverPort(), newRoot(), whenFinished));

/** Sees what is in the ensemble, whatever becomes of the gateway's link. */
function beside({ onTestFinished }: Ending): Promise<ZkClient> {
  return observer(zookeeper.addresses, onTestFinished);
}

async function childrenOf(client: ZkClient, path: string): Promise<readonly string[]> {
  await client.sync(path);
  return (await client.children(path)).names;
}

async function codeOf(answer: Response): Promise<string> {
  return `${answer.status} ${((await answer.json()) as { readonly code?: string }).code}`;
}

describe.concurrent('a link that is cut', () => {
  it('R12: stops protected writing at once; what was held goes on under the same lease when the session is there again', async (test) => {
    const { link, gateway } = await shared.inTurn(test);
    const lease = await gateway.acquire('v/cut');
    const watch = await gateway.watch('v/cut');
    expect(await gateway.put('v/cut', 'before', lease)).toMatchObject({ status: 201 });
    link.cut();
    await gateway.inState('suspended');
    expect(await gateway.put('v/cut', 'meanwhile', lease)).toMatchObject({ status: 503, code: 'coordinator_suspended' });
    expect(await gateway.put('v/other', 'meanwhile')).toMatchObject({ status: 503 });
    expect(await gateway.tryAcquire('v/another', { waitMs: 500 })).toBe(503);
    expect(await gateway.audit('path=another')).toMatchObject([
      { action: 'lease_refuse', outcome: 'rejected', code: 'coordinator_suspended', count: 1 },
    ]);
    expect(await gateway.get('v/cut')).toBe('before');
    link.mend();
    // A write that waits is carried out when there is contact again.
    expect(await gateway.put('v/cut', 'after', lease, 30_000)).toMatchObject({ status: 200 });
    expect(await gateway.lease(lease)).toMatchObject({ state: 'held', fencing_token: lease.fencing_token });
    expect(await watch.types(2)).toEqual(['suspended', 'reconnected']);
    watch.close();
  });

  it('R28: a volume may finish what was held before, and nothing else; after two thirds of the session not even that', async (test) => {
    const yaml = 'volumes:\n  v: { path: "{dir}/v" }\n  finishing: { path: "{dir}/finishing", on_coordinator_loss: finish_held }\n';
    const directory = await newDirectory();
    await mkdir(join(directory, 'finishing'));
    const { link, gateway } = await alone(test, { directory, yaml });
    const [strict, finishing] = [await gateway.acquire('v/a'), await gateway.acquire('finishing/a')];
    const reader = await gateway.acquire('finishing/b', { mode: 'shared' });
    link.cut();
    await gateway.inState('suspended');
    expect(await gateway.put('finishing/a', 'on', finishing)).toMatchObject({ status: 201 });
    expect(await gateway.put('v/a', 'on', strict)).toMatchObject({ status: 503, code: 'coordinator_suspended' });
    expect(await gateway.put('finishing/c', 'on')).toMatchObject({ status: 503 });
    expect((await gateway.put('finishing/b', 'on', reader)).status).toBeGreaterThanOrEqual(400);
    expect(await gateway.tryAcquire('finishing/d', { waitMs: 0 })).toBe(503);
    await gateway.inState('lost');
    expect((await gateway.put('finishing/a', 'late', finishing)).status).toBeGreaterThanOrEqual(412);
    expect(await gateway.get('finishing/a')).toBe('on');
  });

  it('R1, R2, R10: for longer than the session voids all; holder, waiter and watcher are told, no node of the past is adopted, tokens grow', async (test) => {
    const { link, gateway, root } = await alone(test);
    const client = await beside(test);
    const lease = await gateway.acquire('v/ledger');
    const waiter = await gateway.acquire('v/ledger', { waitMs: 1 });
    expect(waiter.state).toBe('waiting');
    const path = `${root}/locks/v/ledger`;
    await until(async () => ((await childrenOf(client, path)).length === 2 ? true : null));
    const watch = await gateway.watch('v/ledger');
    await gateway.put('v/ledger', 'before', lease);
    link.cut();
    const told: EventJson[] = [];
    while (told.filter(({ type }) => type === 'lost').length < 2) told.push(await watch.next());
    watch.close();
    expect(told.map(({ type }) => type)).toContain('suspended');
    expect(told.find(({ data }) => data['lease_ref'] === lease.lease_ref)?.data).toMatchObject({
      fencing_token: lease.fencing_token,
      reason: 'lost',
    });
    for (const one of [lease, waiter]) expect(await gateway.lease(one)).toMatchObject({ state: 'lost' });
    // The ensemble has not given the session up yet: its nodes are still there when the gateway is back.
    expect(await childrenOf(client, path)).toHaveLength(2);
    link.mend();
    const next = await gateway.acquire('v/ledger', { waitMs: 60_000 });
    expect(next.state).toBe('held');
    expect(BigInt(next.fencing_token) > BigInt(lease.fencing_token)).toBe(true);
    expect(await gateway.put('v/ledger', 'late', lease)).toMatchObject({ status: 412, code: 'stale_token' });
    expect(await gateway.get('v/ledger')).toBe('before');
    expect(await childrenOf(client, path)).toHaveLength(1);
  });

  it('R13: again and again leaves no node that belongs to nobody, and loses no lease', { timeout: FLAP_MS_MAX * TIER.linkFlaps }, async (test) => {
    const { link, gateway, root } = await alone(test, { zookeeperSessionMs: 3 * GATEWAY_SESSION_MS });
    const client = await beside(test);
    const kept = await gateway.acquire('v/kept', { ttlMs: 3_600_000 });
    let [over, grants] = [false, 0];
    const workers = [0, 1, 2].map(async (worker) => {
      while (!over) {
        let lease = await gateway.acquire(`v/flap-${worker % 2}`);
        // How long the line takes while links are cut is the machine's business; the place is kept.
        while (lease.state === 'waiting') lease = await gateway.lease(lease, 60_000);
        expect(lease.state).toBe('held');
        grants += 1;
        expect(await gateway.release(lease)).toBe(204);
      }
    });
    for (let flap = 0; flap < TIER.linkFlaps; flap += 1) {
      const before = grants;
      link.cutOnce();
      await until(() => (grants > before + 2 ? true : null));
      expect((await gateway.put('v/kept', `flap ${flap}`, kept, 60_000)).status).toBeLessThan(300);
    }
    over = true;
    await Promise.all(workers);
    expect(await gateway.lease(kept)).toMatchObject({ state: 'held', fencing_token: kept.fencing_token });
    for (const name of ['flap-0', 'flap-1']) {
      expect(await until(async () => ((await childrenOf(client, `${root}/locks/v/${name}`)).length === 0 ? 'none' : null))).toBe('none');
    }
    expect(await childrenOf(client, `${root}/locks/v/kept`)).toHaveLength(1);
  });
});

describe.concurrent('a link that is half-open', () => {
  it('for less than the session is SUSPENDED, and what was held goes on', async (test) => {
    const { link, gateway, root } = await shared.inTurn(test);
    const client = await beside(test);
    const lease = await gateway.acquire('v/half-open');
    link.silence();
    // Sent while nobody knows of it yet: a try is answered when that shows, a write when its wait is over, whether or not anybody holds.
    const [posted, tried, waited] = await Promise.all([
      gateway.post('/v1/leases', { resource: 'v/tried' }),
      gateway.put('v/tried', 'x', null, 0),
      gateway.put('v/waited', 'x', null, 500),
    ]);
    expect(await codeOf(posted)).toBe('503 coordinator_suspended');
    expect([tried, waited].map(({ status, code }) => `${status} ${code}`)).toEqual(['503 coordinator_suspended', '503 coordinator_suspended']);
    expect(await gateway.coordinatorState()).toBe('suspended');
    expect(await gateway.put('v/half-open', 'meanwhile', lease)).toMatchObject({ status: 503, code: 'coordinator_suspended' });
    link.mend();
    await gateway.acquire('v/tried');
    expect(await until(async () => ((await childrenOf(client, `${root}/locks/v/tried`)).length === 1 ? 'alone' : null))).toBe('alone');
    expect(await gateway.put('v/half-open', 'after', lease, 30_000)).toMatchObject({ status: 201 });
    expect(await gateway.lease(lease)).toMatchObject({ state: 'held', fencing_token: lease.fencing_token });
  });

  it('for good keeps nobody waiting: every request is answered, and the leases are lost before the ensemble gives the session up', async (test) => {
    const { link, gateway, root } = await alone(test);
    const client = await beside(test);
    const lease = await gateway.acquire('v/ledger');
    const path = `${root}/locks/v/ledger`;
    const inLine = gateway.post('/v1/leases', { resource: 'v/ledger', wait_ms: 60_000 });
    await until(async () => ((await childrenOf(client, path)).length === 2 ? 'in line' : null));
    link.silence();
    await gateway.inState('suspended');
    const answers = await Promise.all([
      gateway.put('v/ledger', 'x', lease, 60_000),
      gateway.put('v/other', 'x', null, 60_000),
      gateway.post('/v1/leases', { resource: 'v/another', wait_ms: 60_000 }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([503, 503, 503]);
    // Who waited is told so, also when the end of the session is what ended the wait.
    expect(answers[0].code).toBe('coordinator_suspended');
    expect(await codeOf(await inLine)).toBe('503 coordinator_suspended');
    expect((await inLine).headers.get('retry-after')).toBe('1');
    expect(await gateway.coordinatorState()).toBe('lost');
    expect(await gateway.lease(lease)).toMatchObject({ state: 'lost' });
    // The gateway's clock runs out first: there is nobody else yet who could hold it.
    expect(await childrenOf(client, path)).toHaveLength(2);
    link.mend();
    expect(await gateway.acquire('v/ledger', { waitMs: 60_000 })).toMatchObject({ state: 'held' });
  });
});

describe.concurrent('a link that is slow', () => {
  it('makes grants slow, not wrong; once an answer takes a third of the session nothing is written, and then all goes on', async (test) => {
    const { link, gateway } = await alone(test, { zookeeperSessionMs: 2 * GATEWAY_SESSION_MS });
    link.delay(100);
    const lease = await gateway.acquire('v/ledger');
    expect(await gateway.put('v/ledger', 'slow', lease)).toMatchObject({ status: 201 });
    expect(await gateway.coordinatorState()).toMatch(/^(re)?connected$/);
    link.delay(GATEWAY_SESSION_MS / 2);
    await gateway.inState('suspended');
    expect(await gateway.put('v/ledger', 'too slow', lease)).toMatchObject({ status: 503 });
    link.delay(0);
    expect(await gateway.put('v/ledger', 'fast', lease, 30_000)).toMatchObject({ status: 200 });
    expect(await gateway.lease(lease)).toMatchObject({ state: 'held', fencing_token: lease.fencing_token });
  });
});

describe.concurrent('a link that loses one request or one reply', () => {
  it('R3: the reply to a delete: the release is finished in the background, and the next one gets the lock', async (test) => {
    const { link, gateway } = await shared.inTurn(test);
    const lease = await gateway.acquire('v/deleted');
    const lost = link.loseReplyTo('remove');
    expect(await gateway.release(lease)).toBe(204);
    await lost;
    expect(await gateway.put('v/deleted', 'late', lease, 30_000)).toMatchObject({ status: 412 });
    const next = await gateway.acquire('v/deleted');
    expect(BigInt(next.fencing_token) > BigInt(lease.fencing_token)).toBe(true);
  });

  it.for([
    ['reply', 'create'],
    ['reply', 'set'],
    ['request', 'create'],
    ['request', 'set'],
  ] as const)('the %s of a %s: one contender, one grant, and nothing left behind', async ([what, op], test) => {
    const { link, gateway, root } = await shared.inTurn(test);
    const client = await beside(test);
    const name = `v/${what}-${op}`;
    await gateway.release(await gateway.acquire(name));
    const lost = what === 'reply' ? link.loseReplyTo(op) : link.loseRequest(op);
    const lease = await gateway.acquire(name);
    await lost;
    expect(lease.state).toBe('held');
    expect(await childrenOf(client, `${root}/locks/${name}`)).toHaveLength(1);
    await gateway.release(lease);
    await until(async () => ((await childrenOf(client, `${root}/locks/${name}`)).length === 0 ? true : null));
  });
});

describe.concurrent('what the ensemble sees of the clients', () => {
  it('R8, R11: a release wakes exactly one of many that wait, and the ensemble has one connection for all of them', async (test) => {
    const { link, gateway } = await alone(test);
    const granted = [await gateway.acquire('v/ledger', { ttlMs: 600_000 })];
    const stand = async (): Promise<void> => {
      let lease = await gateway.acquire('v/ledger', { waitMs: 60_000, ttlMs: 600_000 });
      while (lease.state === 'waiting') lease = await gateway.lease(lease, 60_000);
      granted.push(lease);
    };
    const all = Promise.all(Array.from({ length: TIER.contenders }, stand));
    await until(async () => ((await gateway.lock('v/ledger')).queue_length === TIER.contenders ? true : null));
    expect(link.connections).toBe(1);
    const wakes = (): number => link.counts.get('watch_event') ?? 0;
    for (let n = 0; n < TIER.contenders; n += 1) {
      const before = wakes();
      const [last] = granted.slice(-1);
      if (last === undefined) throw new Error('nobody holds it');
      await gateway.release(last);
      await until(() => (granted.length === n + 2 ? true : null));
      expect(wakes() - before).toBe(1);
    }
    await all;
    const tokens = granted.map(({ fencing_token: token }) => BigInt(token));
    expect(tokens).toEqual([...tokens].sort((a, b) => (a < b ? -1 : 1)));
    expect(new Set(tokens).size).toBe(TIER.contenders + 1);
  });

  it('R11: a waiter that renews nothing leaves the line with its node, and is never granted', async (test) => {
    const { gateway, root } = await shared.inTurn(test);
    const client = await beside(test);
    const lease = await gateway.acquire('v/silent');
    const waiter = await gateway.acquire('v/silent', { waitMs: 100, ttlMs: 1_000 });
    expect(waiter.state).toBe('waiting');
    await until(async () => ((await childrenOf(client, `${root}/locks/v/silent`)).length === 1 ? true : null));
    expect(await gateway.lease(waiter)).toMatchObject({ state: 'expired' });
    await gateway.release(lease);
    expect((await gateway.lock('v/silent')).holders).toEqual([]);
  });
});

it('R37: the native client’s process may be killed under held and contended locks: they stay, with their tokens', async (test) => {
  const { gateway } = await shared.inTurn(test);
  const lease = await gateway.acquire('v/client');
  const waiting = gateway.acquire('v/client', { waitMs: 60_000 });
  await until(async () => ((await gateway.lock('v/client')).queue_length === 1 ? true : null));
  const { client, supervisor } = gateway.clientProcesses();
  process.kill(client, 'SIGKILL');
  const after = await until(() => {
    const now = gateway.clientProcesses();
    return now.client === client || now.client === 0 ? null : now;
  });
  expect(after.supervisor).toBe(supervisor);
  expect(await gateway.put('v/client', 'on', lease, 30_000)).toMatchObject({ status: 201 });
  expect(await gateway.lease(lease)).toMatchObject({ state: 'held', fencing_token: lease.fencing_token });
  await gateway.release(lease);
  const next = await waiting;
  expect([next.state, BigInt(next.fencing_token) > BigInt(lease.fencing_token)]).toEqual(['held', true]);
});
