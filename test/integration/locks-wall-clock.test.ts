import { expect, it, onTestFinished } from 'vitest';
import { FakedClock } from '../support/faked-clock.ts';
import { GatewayClient, jsonOf, type LeaseJson, verdictOf } from '../support/gateway-client.ts';
import { GatewayProcess } from '../support/gateway-process.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { LockClient } from '../support/lock-client.ts';
import { TestEnsemble } from '../support/zookeeper-ensemble.ts';
import { ZooKeeperGateway } from '../support/zookeeper-gateway.ts';

/** A gateway process whose wall clock is set while it runs; its monotonic clock goes on as it does. */

const HOUR_S = 3_600;

async function withSettableClock(): Promise<{ readonly locks: LockClient; set(offsetS: number): void; wallMs(): Promise<number> }> {
  const directory = await newDirectory();
  onTestFinished(() => removeDirectory(directory));
  const clock = new FakedClock(directory);
  const gateway = await GatewayProcess.start(directory, { environment: clock.environment });
  const client = new GatewayClient(gateway.url);
  onTestFinished(() => client.close());
  const locks = new LockClient(client);
  // What a lease that is taken now would show.
  const wallMs = async (): Promise<number> => Date.parse(String((await client.lease('v/clock', { ttl_ms: 1_000 }))['granted_at']));
  return { locks, set: (offsetS) => clock.set(offsetS), wallMs };
}

it.each([
  ['an hour back', -HOUR_S],
  ['a day ahead', 24 * HOUR_S],
])(
  'a wall clock that is set %s neither extends a lease nor cuts it short, nor the grace of a break',
  async (_, offsetS) => {
    const { locks, set, wallMs } = await withSettableClock();
    const startMs = performance.now();
    const short = await locks.client.lease('v/short', { ttl_ms: 3_000 });
    const grantedMs = performance.now();
    const long = await locks.client.lease('v/long', { ttl_ms: 600_000 });
    const broken = await locks.client.lease('v/broken', { ttl_ms: 600_000 });
    expect((await locks.break('v/broken', { grace_ms: 3_000 })).status).toBe(202);
    const announcedMs = performance.now();
    set(offsetS);
    // The process has the other time indeed.
    expect(Math.abs((await wallMs()) - Date.now() - offsetS * 1_000)).toBeLessThan(60_000);

    const [next, after] = await Promise.all(['v/short', 'v/broken'].map((name) => locks.acquire(name, { wait_ms: 60_000 })));
    expect([next, after].map((answer) => answer && jsonOf<LeaseJson>(answer).state)).toEqual(['held', 'held']);
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(3_000);
    expect(performance.now() - announcedMs).toBeLessThan(60_000);
    expect(performance.now() - grantedMs).toBeLessThan(60_000);
    expect(await locks.lease(short)).toMatchObject({ state: 'expired', reason: 'expired' });
    expect(await locks.lease(broken)).toMatchObject({ state: 'broken' });
    expect(verdictOf(await locks.renew(short))).toBe('409 lease_not_held');
    const left = Number((await locks.lease(long))['expires_in_ms']);
    expect(left).toBeLessThanOrEqual(600_000 - 3_000);
    expect(left).toBeGreaterThan(500_000);
  },
  120_000,
);

it('over ZooKeeper, too, a waiter of before a restart is lost, not unknown, when the wall clock was set an hour back in between', async () => {
  const directory = await newDirectory();
  onTestFinished(() => removeDirectory(directory));
  const ensemble = await TestEnsemble.start();
  onTestFinished(() => ensemble.stop());
  const clock = new FakedClock(directory);
  const start = () => ZooKeeperGateway.start(ensemble.connect, { directory, environment: clock.environment });
  const before = await start();
  await before.acquire('v/held');
  const waiter = await before.acquire('v/held', { waitMs: 1 });
  expect(waiter.state).toBe('waiting');
  await before.process.kill();
  clock.set(-HOUR_S);
  const after = await start();
  expect(await after.lease(waiter)).toMatchObject({ state: 'lost', reason: 'lost' });
}, 120_000);
