import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GatewayProcess } from '../support/gateway-process.ts';
import { newDirectory } from '../support/gateway-settings.ts';
import { until } from '../support/until.ts';
import { observer } from '../support/zookeeper-client.ts';
import { KNOWN, TestEnsemble } from '../support/zookeeper-ensemble.ts';
import { type HeldLease, ZooKeeperGateway } from '../support/zookeeper-gateway.ts';
import { writeCounter } from '../support/zookeeper-snapshot.ts';

/** What the ensemble knows is not what it knew: it was made anew, put back, or is another one; or its counters are near their end. */

let zookeeper: TestEnsemble;
const started: ZooKeeperGateway[] = [];
beforeAll(async () => {
  zookeeper = await TestEnsemble.start({ digests: false });
});
afterAll(async () => {
  for (const gateway of started) await gateway.process.kill();
  await zookeeper.stop();
});

const COUNTER_END = 2_147_483_647;
const forget = (directories: readonly string[]): void => {
  for (const directory of directories) rmSync(join(directory, KNOWN), { recursive: true });
};

async function start(directory?: string): Promise<ZooKeeperGateway> {
  const gateway = await ZooKeeperGateway.start(`${zookeeper.connect}/known`, {
    outlivesTest: true,
    ...(directory === undefined ? {} : { directory }),
  });
  started.push(gateway);
  return gateway;
}

/** The one of the test before, as it is after its rebase. */
async function running(): Promise<ZooKeeperGateway> {
  const last = started.at(-1);
  return last?.process.isRunning === true ? last : start();
}

/** A gateway that has granted and written, and what it granted last. */
async function experienced(name: string): Promise<{ gateway: ZooKeeperGateway; lease: HeldLease }> {
  const gateway = await running();
  for (let n = 0; n < 20; n += 1) await gateway.release(await gateway.acquire(`v/name-${n % 3}`));
  const lease = await gateway.acquire(name);
  expect(await gateway.put(name, 'before', lease)).toMatchObject({ status: 201 });
  return { gateway, lease };
}

/** One that went on for a while after what the ensemble knows was copied. */
async function beyondACopy(name: string): Promise<{ gateway: ZooKeeperGateway; lease: HeldLease; putBack: () => Promise<void> }> {
  const { gateway, lease: earlier } = await experienced(name);
  const putBack = await zookeeper.kept();
  await gateway.put(name, 'before', earlier, 60_000);
  for (let n = 0; n < 20; n += 1) await gateway.release(await gateway.acquire(`v/name-${n}`));
  await gateway.release(earlier);
  const lease = await gateway.acquire(name);
  await gateway.put(name, 'before', lease);
  return { gateway, lease, putBack };
}

async function refusesUntilRebase(gateway: ZooKeeperGateway, name: string, lease: HeldLease): Promise<void> {
  await gateway.inState('connected');
  const refused = await until(async () => {
    const answer = await gateway.put('v/other', 'x', null, 0);
    return answer.detail?.includes('rebase') === true ? answer : null;
  });
  expect(refused.status).toBe(503);
  expect(await gateway.tryAcquire(name, { waitMs: 0 })).toBe(503);
  expect((await gateway.put(name, 'late', lease)).status).toBeGreaterThanOrEqual(412);
  expect(await gateway.get(name)).toBe('before');
  const base = await gateway.rebase();
  expect(base > BigInt(lease.fencing_token)).toBe(true);
  const next = await gateway.acquire(name);
  expect(BigInt(next.fencing_token) > base).toBe(true);
  expect(await gateway.put(name, 'late', lease)).toMatchObject({ status: 412, code: 'stale_token' });
  expect(await gateway.put(name, 'after', next)).toMatchObject({ status: 200 });
}

describe('an ensemble that does not know what it knew', () => {
  it('because it was made anew under a running gateway: nothing is granted or written until a rebase, and no token falls', async () => {
    const { gateway, lease } = await experienced('v/anew');
    await zookeeper.whileStopped(forget);
    await refusesUntilRebase(gateway, 'v/anew', lease);
  });

  it('because an older state was put back, found by a gateway that starts: the same', async () => {
    const { gateway: first, lease, putBack } = await beyondACopy('v/back');
    const { directory } = first.process;
    await first.process.stop();
    await putBack();
    // A session of the state that was put back may still have the volume for a while.
    const next = await until(() => start(directory).catch(() => null));
    await refusesUntilRebase(next, 'v/back', lease);
  });

  it('because an older state was put back under a running gateway, whose session is in it: the same', async () => {
    const { gateway, lease, putBack } = await beyondACopy('v/under');
    await putBack();
    // Whatever is granted meanwhile has a number above all of before.
    const refused = await until(async () => {
      const answer = await gateway.put('v/other', 'x', null, 0);
      return answer.status === 503 && answer.detail?.includes('rebase') === true ? answer : null;
    });
    expect(refused.code).toBe('coordinator_unavailable');
    await refusesUntilRebase(gateway, 'v/under', lease);
  });

  it('because the tokens so far came from the gateway itself: the same', async () => {
    const directory = await newDirectory();
    const embedded = await GatewayProcess.start(directory);
    const ask = async (path: string, init: RequestInit): Promise<HeldLease> => (await fetch(embedded.url + path, init)).json() as Promise<HeldLease>;
    const body = JSON.stringify({ resource: 'v/ledger', ttl_ms: 600_000 });
    const lease = await ask('/v1/leases', { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    await ask('/v1/files/v/ledger', { method: 'PUT', headers: { 'x-fencing-token': lease.fencing_token }, body: 'before' });
    await embedded.stop();
    const gateway = await ZooKeeperGateway.start(`${zookeeper.connect}/other`, { directory });
    await refusesUntilRebase(gateway, 'v/ledger', lease);
    await gateway.process.kill();
  });
});

describe('a sequence counter near its end', () => {
  it('R7: keeps the order of arrival and one holder at a time; tokens grow, and the idle node is made anew', async () => {
    const path = '/known/locks/v/end';
    const first = await running();
    await first.release(await first.acquire('v/end'));
    const { directory } = first.process;
    await first.process.stop();
    // A start writes a snapshot of what there is.
    await zookeeper.whileStopped(() => undefined);
    await zookeeper.whileStopped(([place = '']) => writeCounter(place, path, COUNTER_END - 3));
    const gateway = await start(directory);
    const client = await observer(zookeeper.addresses);
    expect((await client.exists(path)).stat?.cversion).toBe(COUNTER_END - 3);
    let current = await gateway.acquire('v/end');
    const waiting: HeldLease[] = [];
    for (let n = 0; n < 6; n += 1) waiting.push(await gateway.acquire('v/end', { waitMs: 1 }));
    // The last of them may still be on its way to the ensemble when its wait is answered.
    await until(async () => ((await client.children(path)).names.filter((name) => name.endsWith(`-${COUNTER_END}`)).length > 1 ? true : null));
    for (const next of waiting) {
      expect((await gateway.lock('v/end')).holders).toMatchObject([{ lease_ref: current.lease_ref }]);
      await gateway.release(current);
      const granted = await gateway.lease(next, 60_000);
      expect([granted.state, BigInt(granted.fencing_token) > BigInt(current.fencing_token)]).toEqual(['held', true]);
      current = granted;
    }
    await gateway.release(current);
    await until(async () => ((await client.exists(path)).stat === null ? true : null));
    const anew = await gateway.acquire('v/end');
    expect(BigInt(anew.fencing_token) > BigInt(current.fencing_token)).toBe(true);
    expect((await client.exists(path)).stat?.cversion).toBe(1);
  });
});
