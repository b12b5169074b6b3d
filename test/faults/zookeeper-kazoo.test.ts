import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CommandLine } from '../support/command-line.ts';
import { KazooContender, type KazooLock } from '../support/kazoo-contender.ts';
import { TIER } from '../support/tier.ts';
import { until } from '../support/until.ts';
import { observer } from '../support/zookeeper-client.ts';
import { TestEnsemble } from '../support/zookeeper-ensemble.ts';
import { ZooKeeperGateway } from '../support/zookeeper-gateway.ts';

/** Another client of the same ensemble must agree with the gateway about who holds. */

/** Nobody's session is to end here, however busy the machine is: a waiter of a lost one has ended. */
const STEADY_SESSION_MS = 180_000;

let zookeeper: TestEnsemble;
let gateway: ZooKeeperGateway;
beforeAll(async () => {
  zookeeper = await TestEnsemble.start();
  gateway = await ZooKeeperGateway.start(zookeeper.connect, { zookeeperSessionMs: STEADY_SESSION_MS, outlivesTest: true });
});
afterAll(async () => {
  await gateway.process.kill();
  await zookeeper.stop();
});

const KINDS: readonly KazooLock[] = ['Lock', 'WriteLock', 'ReadLock'];

describe.concurrent('kazoo, which nobody here wrote, and the gateway', () => {
  it('contend for one node and are never inside together', { timeout: 120_000 + 100 * TIER.kazooRounds }, async ({ onTestFinished }) => {
    const inside = new Set<string>();
    const overlaps: string[] = [];
    const enter = (who: string): void => {
      if (inside.size > 0) overlaps.push(`${who} while ${[...inside].join()}`);
      inside.add(who);
    };
    await gateway.release(await gateway.acquire('v/ledger'));
    const kazoo = new KazooContender(zookeeper.connect, '/locks/v/ledger', TIER.kazooRounds, 'Lock', onTestFinished);
    let [grants, turns, last, done] = [0, 0, 0n, false];
    kazoo.onIn = () => {
      grants += 1;
      enter('kazoo');
      // One turn inside, in which the other side could err.
      setImmediate(() => kazoo.leave());
    };
    kazoo.onOut = () => void inside.delete('kazoo');
    const ended = kazoo.ended();
    void ended.then(() => (done = true));
    while (!done) {
      const lease = await gateway.acquire('v/ledger', { waitMs: 60_000 });
      if (lease.state !== 'held') break;
      enter('gateway');
      expect(BigInt(lease.fencing_token) > last).toBe(true);
      last = BigInt(lease.fencing_token);
      turns += 1;
      // What it is for: kazoo would have the time to come in.
      expect((await gateway.put('v/ledger', `turn ${turns}`, lease)).status).toBeLessThan(300);
      inside.delete('gateway');
      await gateway.release(lease);
    }
    expect(await ended).toEqual([0, '']);
    expect(overlaps).toEqual([]);
    expect(grants).toBe(TIER.kazooRounds);
    expect(turns).toBeGreaterThan(0);
  });

  it.for(KINDS)('its %s waits for the gateway’s holder, and the gateway’s next one for it', async (kind, { onTestFinished }) => {
    const path = `/locks/v/${kind}`;
    const client = await observer(zookeeper.addresses, onTestFinished);
    const first = await gateway.acquire(`v/${kind}`);
    const order: string[] = [];
    const kazoo = new KazooContender(zookeeper.connect, path, 1, kind, onTestFinished);
    kazoo.onIn = () => void order.push('kazoo');
    await until(async () => ((await client.children(path)).names.length === 2 ? true : null));
    // A round trip of the gateway's own, in which kazoo could have come in.
    expect(await gateway.put(`v/${kind}`, 'first', first)).toMatchObject({ status: 201 });
    order.push('released');
    await gateway.release(first);
    await until(() => (order.length === 2 ? true : null));
    const second = await gateway.acquire(`v/${kind}`, { waitMs: 1, clientId: 'second' });
    const reader = await gateway.acquire(`v/${kind}`, { waitMs: 1, mode: 'shared' });
    expect([second.state, reader.state, order]).toEqual(['waiting', 'waiting', ['released', 'kazoo']]);
    expect(await gateway.put(`v/${kind}`, 'none', null, 0)).toMatchObject({ status: 423 });
    kazoo.leave();
    const granted = await gateway.lease(second, 60_000);
    expect(granted).toMatchObject({ state: 'held' });
    expect(BigInt(granted.fencing_token)).toBeGreaterThan(BigInt(first.fencing_token));
    expect(await kazoo.ended()).toEqual([0, '']);
  });
});

it('whoever waits for a lock of kazoo is told which of its nodes that is, also by the command line', async ({ onTestFinished }) => {
  const path = '/locks/v/named';
  const client = await observer(zookeeper.addresses, onTestFinished);
  await gateway.release(await gateway.acquire('v/named'));
  const kazoo = new KazooContender(zookeeper.connect, path, 1, 'Lock', onTestFinished);
  await new Promise<void>((resolve) => {
    kazoo.onIn = resolve;
  });
  // The gateway deletes its own child when the release is answered already.
  const [name = ''] = await until(async () => {
    const { names } = await client.children(path);
    return names.length === 1 ? names : null;
  });
  expect(await gateway.lock('v/named')).toMatchObject({ holders: [], foreign_contenders: [name], fence_level: 'token' });
  const refused = await (await gateway.post('/v1/leases', { resource: 'v/named' })).json();
  expect(refused).toMatchObject({ status: 409, foreign_contenders: [name], detail: expect.stringContaining(`${path}/${name}`) });
  expect(await gateway.put('v/named', 'none', null, 0)).toMatchObject({ status: 423, detail: expect.stringContaining(`${path}/${name}`) });
  const cli = new CommandLine(gateway.url, gateway.process.directory);
  expect((await cli.run('lock', 'show', 'v/named')).stdout).toMatch(new RegExp(`\nstate +held by another program\n[^]*\nother recipes +${name}\n`));
  for (const wait of ['0', '100ms']) {
    expect((await cli.run('exec', '--lock', 'v/named', '--wait', wait, '--', 'true')).stderr).toMatch(new RegExp(`lock_not_acquired: .*${name}`));
  }
  expect((await cli.run('lock', 'break', 'v/named', '--reason', 'it hangs')).stderr).toContain(name);
  kazoo.leave();
  expect(await kazoo.ended()).toEqual([0, '']);
});
