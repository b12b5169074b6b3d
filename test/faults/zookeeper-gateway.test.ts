import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/until.ts';
import { TestEnsemble } from '../support/zookeeper-ensemble.ts';
import { ZooKeeperGateway } from '../support/zookeeper-gateway.ts';
import { ZooKeeperProxy } from '../support/zookeeper-proxy.ts';

const inState = (gateway: ZooKeeperGateway, ...states: string[]): Promise<string> =>
  until(async () => {
    const state = await gateway.coordinatorState();
    return states.includes(state) ? state : null;
  });

describe('a gateway over one ZooKeeper server', () => {
  let zookeeper: TestEnsemble;
  beforeAll(async () => {
    zookeeper = await TestEnsemble.start();
  });
  afterAll(() => zookeeper.stop());

  /** Each test has a root of its own. */
  let root = 0;
  const behindProxy = async () => {
    root += 1;
    const proxy = await ZooKeeperProxy.to(zookeeper.servers[0]?.port ?? 0);
    const gateway = await ZooKeeperGateway.start(`127.0.0.1:${proxy.port}/g${root}`);
    return { proxy, gateway };
  };

  it('stops protected writing while it has no contact, and goes on under the same lease when the session is there again', async () => {
    const { proxy, gateway } = await behindProxy();
    const lease = await gateway.acquire('v/ledger');
    expect(await gateway.put('ledger', 'before', lease)).toMatchObject({ status: 201 });
    proxy.cut();
    await inState(gateway, 'suspended');
    expect(await gateway.put('ledger', 'meanwhile', lease)).toMatchObject({ status: 503, code: 'coordinator_suspended' });
    expect(await gateway.put('other', 'meanwhile')).toMatchObject({ status: 503 });
    expect(await gateway.get('ledger')).toBe('before');
    proxy.mend();
    await inState(gateway, 'connected');
    expect(await gateway.lease(lease)).toMatchObject({ state: 'held', fencing_token: lease.fencing_token });
    expect(await gateway.put('ledger', 'after', lease)).toMatchObject({ status: 200 });
  });

  it('R1, R10: a session that was lost voids what was held through it; its holder is told, its writes are refused, the next token is greater', async () => {
    const { proxy, gateway } = await behindProxy();
    const lease = await gateway.acquire('v/ledger');
    await gateway.put('ledger', 'before', lease);
    proxy.cut();
    await inState(gateway, 'lost');
    expect(await gateway.lease(lease)).toMatchObject({ state: 'lost' });
    expect((await gateway.put('ledger', 'late', lease)).status).toBeGreaterThanOrEqual(412);
    proxy.mend();
    await inState(gateway, 'connected');
    expect(await gateway.put('ledger', 'late', lease)).toMatchObject({ status: 412, code: 'lease_ended' });
    const next = await gateway.acquire('v/ledger');
    expect(BigInt(next.fencing_token) > BigInt(lease.fencing_token)).toBe(true);
    expect(await gateway.put('ledger', 'late', lease)).toMatchObject({ status: 412, code: 'stale_token' });
    expect(await gateway.get('ledger')).toBe('before');
  });

  it('R3: a release whose reply is lost is finished in the background, and the next one gets the lock', async () => {
    const { proxy, gateway } = await behindProxy();
    const lease = await gateway.acquire('v/ledger');
    const lost = proxy.loseReplyTo('remove');
    await gateway.release(lease);
    await lost;
    const next = await gateway.acquire('v/ledger');
    expect(next.state).toBe('held');
    expect(await gateway.put('ledger', 'late', lease)).toMatchObject({ status: 412 });
  });

  it('a lost reply to the making of a contender leaves no second one, and the lease is granted', async () => {
    const { proxy, gateway } = await behindProxy();
    await gateway.release(await gateway.acquire('v/ledger'));
    const lost = proxy.loseReplyTo('create');
    const lease = await gateway.acquire('v/ledger');
    await lost;
    expect(lease.state).toBe('held');
    await gateway.release(lease);
    expect(await gateway.acquire('v/ledger')).toMatchObject({ state: 'held' });
  });

  it('R1, T22: a gateway that was stopped for longer than its session commits nothing on waking that was queued under an old lease', async () => {
    const { gateway } = await behindProxy();
    const lease = await gateway.acquire('v/ledger');
    await gateway.put('ledger', 'before', lease);
    gateway.process.signal('SIGSTOP');
    const queued = Array.from({ length: 8 }, (_, n) => gateway.put('ledger', `queued ${n}`, lease));
    // The server's word that the session is gone.
    await until(async () => (/Ephemerals \(0\)|ephemerals_count\t0/.test((await zookeeper.servers[0]?.ask('mntr')) ?? '') ? true : null));
    gateway.process.signal('SIGCONT');
    const answers = await Promise.all(queued);
    expect(answers.filter(({ status }) => status < 400)).toEqual([]);
    expect(await gateway.get('ledger')).toBe('before');
  });
});

describe('a gateway over three ZooKeeper servers', () => {
  let zookeeper: TestEnsemble;
  beforeAll(async () => {
    zookeeper = await TestEnsemble.start({ size: 3 });
  });
  afterAll(() => zookeeper.stop());

  it('R13: the leader’s death loses no lock, and the line moves on after it', async () => {
    const gateway = await ZooKeeperGateway.start(`${zookeeper.connect}/leader`, { zookeeperSessionMs: 40_000 });
    const lease = await gateway.acquire('v/ledger');
    const waiting = gateway.acquire('v/ledger', 60_000);
    const leader = await zookeeper.leader();
    await leader.kill();
    await until(async () => ((await gateway.put('ledger', 'on', lease)).status < 400 ? true : null));
    expect(await gateway.lease(lease)).toMatchObject({ state: 'held', fencing_token: lease.fencing_token });
    await gateway.release(lease);
    const next = await waiting;
    expect(BigInt(next.fencing_token) > BigInt(lease.fencing_token)).toBe(true);
    leader.start();
    await zookeeper.serving();
  });

  it('R7: without a quorum nothing is granted and nothing written, every answer comes, and with it again all goes on', async () => {
    const gateway = await ZooKeeperGateway.start(`${zookeeper.connect}/quorum`);
    const lease = await gateway.acquire('v/ledger');
    await gateway.put('ledger', 'before', lease);
    const [first, second] = zookeeper.servers;
    await Promise.all([first?.kill(), second?.kill()]);
    await inState(gateway, 'suspended', 'lost');
    expect((await gateway.put('ledger', 'late', lease)).status).toBeGreaterThanOrEqual(412);
    expect(await gateway.tryAcquire('v/another', 500)).toBe(503);
    expect(await gateway.get('ledger')).toBe('before');
    first?.start();
    second?.start();
    await zookeeper.serving();
    await inState(gateway, 'connected');
    expect(await gateway.acquire('v/another')).toMatchObject({ state: 'held' });
  });

  it('T21: behind a follower that lost its leader the gateway stops writing, though its reads are answered', async () => {
    const follower = await zookeeper.follower();
    const gateway = await ZooKeeperGateway.start(`127.0.0.1:${follower.port}/cut`);
    const lease = await gateway.acquire('v/ledger');
    await gateway.put('ledger', 'before', lease);
    for (const other of zookeeper.servers) if (other !== follower) zookeeper.part(follower, other);
    await inState(gateway, 'suspended', 'lost');
    expect((await gateway.put('ledger', 'late', lease)).status).toBeGreaterThanOrEqual(412);
    await inState(gateway, 'lost');
    expect(await gateway.lease(lease)).toMatchObject({ state: 'lost' });
    expect(await gateway.get('ledger')).toBe('before');
    zookeeper.heal();
    await zookeeper.serving();
    await inState(gateway, 'connected');
    expect(await gateway.put('ledger', 'late', lease)).toMatchObject({ status: 412 });
  });
});
