import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { TIER } from '../support/tier.ts';
import { until } from '../support/until.ts';
import { inState, observer, openEnsemble } from '../support/zookeeper-client.ts';
import { TestEnsemble } from '../support/zookeeper-ensemble.ts';
import { ZooKeeperGateway } from '../support/zookeeper-gateway.ts';

/** Three servers with a real quorum: the leader is killed, one and two of them are stopped, the gateway's follower is cut off. */

let zookeeper: TestEnsemble;
const started: ZooKeeperGateway[] = [];
beforeAll(async () => {
  zookeeper = await TestEnsemble.start({ size: 3 });
});
afterAll(async () => {
  for (const gateway of started) await gateway.process.kill();
  await zookeeper.stop();
});

/** Long enough for an election on a busy machine: what is shown there is that nothing is lost. */
const PATIENT_SESSION_MS = 180_000;
const ELECTION_MS_MAX = 60_000;
/** Long beside a request, short beside the session. */
const FOLLOWER_LAG_MS = 500;

async function gatewayAt(connect: string, zookeeperSessionMs: number): Promise<ZooKeeperGateway> {
  const gateway = await ZooKeeperGateway.start(connect, { zookeeperSessionMs, outlivesTest: true });
  started.push(gateway);
  return gateway;
}

/** Of all three servers, with a session that no election ends; each test has names of its own. */
let steady: Promise<ZooKeeperGateway> | null = null;
function steadyGateway(): Promise<ZooKeeperGateway> {
  steady ??= gatewayAt(`${zookeeper.connect}/steady`, PATIENT_SESSION_MS);
  return steady;
}

/** Clients that take and release locks that others want, too, for as long as they are let. */
class Contention {
  readonly #gateway: ZooKeeperGateway;
  readonly #clients: Promise<void>[];
  readonly #last = new Map<string, bigint>();
  #over = false;
  /** When each grant came, ms. */
  readonly grantsMs: number[] = [];

  constructor(gateway: ZooKeeperGateway, clients: number) {
    this.#gateway = gateway;
    this.#clients = Array.from({ length: clients }, (_, n) => this.#contend(`v/contended-${n % 2}`));
  }

  /** The longest time in which nobody was granted, until now. */
  get gapMs(): number {
    const ends = [...this.grantsMs.slice(1), performance.now()];
    return Math.max(...this.grantsMs.map((grantedMs, n) => (ends[n] ?? grantedMs) - grantedMs));
  }

  async goOn(): Promise<void> {
    const before = this.grantsMs.length;
    await until(() => (this.grantsMs.length > before + 5 ? true : null));
  }

  async end(): Promise<void> {
    this.#over = true;
    await Promise.all(this.#clients);
  }

  async #contend(resource: string): Promise<void> {
    while (!this.#over) {
      let lease = await this.#gateway.acquire(resource, { waitMs: 60_000 });
      while (lease.state === 'waiting') lease = await this.#gateway.lease(lease, 60_000);
      expect(lease.state).toBe('held');
      const token = BigInt(lease.fencing_token);
      expect(token > (this.#last.get(resource) ?? 0n)).toBe(true);
      this.#last.set(resource, token);
      this.grantsMs.push(performance.now());
      expect(await this.#gateway.release(lease)).toBe(204);
    }
  }
}

describe('a gateway over three ZooKeeper servers', () => {
  it('R13: the leader’s death loses no lock, and every line moves on after it', { timeout: ELECTION_MS_MAX * (1 + TIER.leaderKills) }, async () => {
    const gateway = await steadyGateway();
    const held = await gateway.acquire('v/held', { ttlMs: 3_600_000 });
    const waiting = await gateway.acquire('v/held', { waitMs: 1, ttlMs: 3_600_000 });
    const contention = new Contention(gateway, 4);
    const gaps: string[] = [];
    for (let kill = 0; kill < TIER.leaderKills; kill += 1) {
      await contention.goOn();
      contention.grantsMs.splice(0, contention.grantsMs.length - 1);
      const leader = await zookeeper.leader();
      await leader.kill();
      const killedMs = performance.now();
      const elected = zookeeper.leader().then(() => performance.now() - killedMs);
      await contention.goOn();
      gaps.push(`${Math.round(contention.gapMs)} ms (the election ${Math.round(await elected)} ms)`);
      expect((await gateway.put('v/held', `kill ${kill}`, held, 60_000)).status).toBeLessThan(300);
      leader.start();
      await zookeeper.serving();
    }
    await contention.end();
    console.log(`time without grants after the leader was killed: ${gaps.join(', ')}`);
    expect(await gateway.lease(held)).toMatchObject({ state: 'held', fencing_token: held.fencing_token });
    await gateway.release(held);
    expect(await gateway.lease(waiting, 60_000)).toMatchObject({ state: 'held' });
  });

  it('R7: goes on without one server; without two nothing is granted and nothing written, every answer comes; then all goes on', async () => {
    const gateway = await steadyGateway();
    const client = await observer(zookeeper.addresses);
    const lease = await gateway.acquire('v/ledger', { ttlMs: 3_600_000 });
    await gateway.put('v/ledger', 'before', lease);
    const first = await zookeeper.follower();
    await first.kill();
    expect((await gateway.put('v/ledger', 'with two', lease, 60_000)).status).toBe(200);
    await gateway.release(await gateway.acquire('v/another'));
    const second = await zookeeper.leader();
    await second.kill();
    await gateway.inState('suspended', 'lost');
    const answers = await Promise.all([gateway.put('v/ledger', 'late', lease), gateway.put('v/other', 'late')]);
    expect(answers).toMatchObject([503, 503].map((status) => ({ status, code: 'coordinator_suspended' })));
    expect(await gateway.tryAcquire('v/another', { waitMs: 500 })).toBe(503);
    expect(await gateway.release(lease)).toBe(204);
    await expect(client.create('/none', Buffer.alloc(0), 'persistent')).rejects.toMatchObject({ failure: 'unknown' });
    expect(await gateway.get('v/ledger')).toBe('with two');
    first.start();
    second.start();
    await zookeeper.serving();
    expect(await gateway.acquire('v/another')).toMatchObject({ state: 'held' });
    // The release that was answered without a quorum reaches it now.
    expect(await gateway.acquire('v/ledger')).toMatchObject({ state: 'held' });
  });

  it('R13: a server that hangs, and closes nothing, costs no session: it goes on at another one before it is lost', {
    timeout: ELECTION_MS_MAX * 2,
  }, async () => {
    const sessionMs = 60_000;
    const client = (await openEnsemble({ servers: zookeeper.addresses, sessionMs })).open();
    const states: string[] = [];
    client.onState((state) => states.push(state));
    await inState(client, 'connected');
    const path = `/hung-${client.session?.id}`;
    await client.create(path, Buffer.alloc(0), 'ephemeral');
    const here = await until(async () => {
      for (const server of zookeeper.servers) if ((await server.ask('cons')).includes(`sid=0x${client.session?.id},`)) return server;
      return null;
    });
    const { id } = client.session ?? {};
    here.signal('SIGSTOP');
    onTestFinished(() => here.signal('SIGCONT'));
    const hungMs = performance.now();
    const made = await until(() => client.create(`${path}-after`, Buffer.alloc(0), 'ephemeral').catch(() => null));
    expect(performance.now() - hungMs).toBeLessThan((2 / 3) * sessionMs);
    expect([made.path, states.includes('over'), client.session?.id]).toEqual([`${path}-after`, false, id]);
    expect((await client.exists(path)).stat?.ephemeralOwner).toBe(id);
  });

  it('R12, T21: behind a follower that lost its leader the gateway stops writing, though reads there are answered', async () => {
    const follower = await zookeeper.follower();
    const gateway = await ZooKeeperGateway.start(`127.0.0.1:${follower.port}/cut`);
    const client = await observer([{ host: '127.0.0.1', port: follower.port }]);
    const lease = await gateway.acquire('v/ledger');
    await gateway.put('v/ledger', 'before', lease);
    const { names } = await client.children('/cut/locks/v/ledger');
    for (const other of zookeeper.servers) if (other !== follower) zookeeper.part(follower, other);
    // A lock service that believed its reads would go on.
    expect((await client.children('/cut/locks/v/ledger')).names).toEqual(names);
    const none = client.create('/cut/none', Buffer.alloc(0), 'persistent');
    none.catch(() => undefined);
    await gateway.inState('suspended', 'lost');
    expect((await gateway.put('v/ledger', 'late', lease)).status).toBeGreaterThanOrEqual(412);
    await gateway.inState('lost');
    expect(await gateway.lease(lease)).toMatchObject({ state: 'lost' });
    expect(await gateway.get('v/ledger')).toBe('before');
    await expect(none).rejects.toMatchObject({ failure: 'unknown' });
    zookeeper.heal();
    await zookeeper.serving();
    await gateway.inState('connected', 'reconnected');
    // The volume opens again for the new session; until then it is 503.
    await until(async () => ((await gateway.put('v/ledger', 'late', lease)).status === 412 ? true : null));
    expect(await gateway.get('v/ledger')).toBe('before');
    await gateway.process.kill();
  });

  it('R26: what it tells of a lock is what the ensemble has decided, not what its follower has heard of yet', async () => {
    const follower = await zookeeper.follower();
    const others = zookeeper.servers.filter((server) => server !== follower);
    const gateway = await ZooKeeperGateway.start(`127.0.0.1:${follower.port}/reads`, { zookeeperSessionMs: PATIENT_SESSION_MS });
    const client = await observer(others.map(({ port }) => ({ host: '127.0.0.1', port })));
    const lease = await gateway.acquire('v/ledger');
    const lock = await gateway.lock('v/ledger');
    expect(lock.holders).toMatchObject([{ lease_ref: lease.lease_ref }]);
    zookeeper.delay(follower, FOLLOWER_LAG_MS);
    const [child] = (await client.children('/reads/locks/v/ledger')).names;
    await client.remove(`/reads/locks/v/ledger/${child}`, null);
    expect((await gateway.lock('v/ledger')).holders).toEqual([]);
    expect(await gateway.lease(lease)).toMatchObject({ state: 'lost' });
    zookeeper.heal();
    await gateway.process.kill();
  });

  it('is found out when it was put back, though the election makes its numbers higher: who holds is lost, nobody is granted before a rebase', async () => {
    const gateway = await ZooKeeperGateway.start(`${zookeeper.connect}/copied`, { zookeeperSessionMs: PATIENT_SESSION_MS });
    const reader = await gateway.acquire('v/ledger', { mode: 'shared', ttlMs: 3_600_000 });
    const putBack = await zookeeper.kept();
    // What the copy does not know.
    await until(async () => ((await gateway.post(`/v1/leases/${reader.lease_id}/convert`, { mode: 'exclusive' })).status === 200 ? true : null));
    await putBack();
    const refused = await until(async () => {
      const answer = await gateway.put('v/other', 'x', null, 0);
      return answer.detail?.includes('rebase') === true ? answer : null;
    });
    expect(refused).toMatchObject({ status: 503, code: 'coordinator_unavailable' });
    expect(await gateway.tryAcquire('v/ledger', { mode: 'shared', waitMs: 0 })).toBe(503);
    expect(await gateway.lease(reader)).toMatchObject({ state: 'lost' });
    const base = await gateway.rebase();
    const next = await gateway.acquire('v/ledger', { mode: 'shared' });
    expect(BigInt(next.fencing_token) > base).toBe(true);
    await gateway.process.kill();
  });
});
