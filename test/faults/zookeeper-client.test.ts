import { fork } from 'node:child_process';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { LIMITS } from '../../src/domain/limits.ts';
import type { ZkClient, ZkSessionState } from '../../src/locks/zookeeper/zk-client.ts';
import { TIER } from '../support/tier.ts';
import { until } from '../support/until.ts';
import { inState, isAlive, nextState, openEnsemble, SESSION_MS } from '../support/zookeeper-client.ts';
import { TestEnsemble } from '../support/zookeeper-ensemble.ts';
import type { HolderReport } from '../support/zookeeper-holder-child.ts';
import { ZooKeeperProxy } from '../support/zookeeper-proxy.ts';

const NOTHING = Buffer.alloc(0);

/** Everything that the client says of itself, from now on. */
function statesOf(client: ZkClient): ZkSessionState[] {
  const states: ZkSessionState[] = [];
  client.onState((state) => states.push(state));
  return states;
}

describe('the ZooKeeper client, with faults', () => {
  let zookeeper: TestEnsemble;
  let place = 0;
  const somewhere = (): string => {
    place += 1;
    return `/f${place}`;
  };

  beforeAll(async () => {
    zookeeper = await TestEnsemble.start();
  });
  afterAll(() => zookeeper.stop());

  const observer = async (): Promise<ZkClient> => {
    const client = (await openEnsemble({ servers: zookeeper.addresses })).open();
    await inState(client, 'connected');
    return client;
  };

  const behindProxy = async (sessionMs = SESSION_MS) => {
    const proxy = await ZooKeeperProxy.to(zookeeper.servers[0]?.port ?? 0);
    const said: string[] = [];
    const ensemble = await openEnsemble({ servers: [{ host: '127.0.0.1', port: proxy.port }], sessionMs, log: (line) => said.push(line) });
    const client = ensemble.open();
    await inState(client, 'connected');
    return { proxy, ensemble, client, said };
  };

  it('a reply that was lost is an unknown outcome; the node is there, and its session goes on', async () => {
    const { proxy, client } = await behindProxy();
    const path = somewhere();
    await client.create(path, NOTHING, 'persistent');
    const lost = proxy.loseReplyTo('create');
    const attempt = client.create(`${path}/_c_guid-lock-`, NOTHING, 'ephemeral_sequential');
    await expect(attempt).rejects.toMatchObject({ failure: 'unknown' });
    await lost;
    await inState(client, 'connected');
    await client.sync(path);
    const { names, connection } = await client.children(path);
    expect(names).toEqual(['_c_guid-lock-0000000000']);
    expect(connection).toBe(2);
    expect((await client.exists(`${path}/${names[0] ?? ''}`)).stat?.ephemeralOwner).toBe(client.session?.id);
  });

  it('a cut link is told, calls meanwhile are refused at once, and the same session comes back with another connection number', async () => {
    const { proxy, client } = await behindProxy();
    const { session } = client;
    const states = statesOf(client);
    proxy.cut();
    await inState(client, 'disconnected');
    await expect(client.get('/')).rejects.toMatchObject({ failure: 'unknown' });
    proxy.mend();
    await inState(client, 'connected');
    expect(client.session).toEqual(session);
    expect((await client.children('/')).connection).toBe(2);
    expect(states).toEqual(['disconnected', 'connected']);
  });

  it('comes back within a moment, however often the link was cut and however long the session is', async () => {
    const { proxy, client } = await behindProxy(60_000);
    await client.create('/back', NOTHING, 'ephemeral');
    for (let cut = 0; cut < 4; cut += 1) {
      const [lost, back] = [nextState(client, 'disconnected'), performance.now()];
      proxy.cutOnce();
      await lost;
      await inState(client, 'connected');
      expect(performance.now() - back).toBeLessThan(10_000);
    }
    expect((await client.exists('/back')).stat?.ephemeralOwner).toBe(client.session?.id);
  });

  it('a half-open link keeps nobody waiting: each call ends unknown within a third of the session', async () => {
    const { proxy, client } = await behindProxy();
    proxy.silence();
    const failed = await client.get('/').then(
      () => null,
      (thrown: unknown) => thrown,
    );
    expect(failed).toMatchObject({ failure: 'unknown' });
    proxy.mend();
  });

  it('a watch that fired while the link was cut is told after it', async () => {
    const { proxy, client } = await behindProxy();
    const other = await observer();
    const path = somewhere();
    await client.create(path, NOTHING, 'persistent');
    await client.get(path, { watch: true });
    const told = new Promise((resolve) => client.onWatch(resolve));
    proxy.cut();
    await inState(client, 'disconnected');
    await other.set(path, Buffer.from('x'), 0);
    proxy.mend();
    expect(await told).toBe(path);
  });

  it('a session that expired is over, its nodes are gone, and every watch is told', async () => {
    const { proxy, ensemble, client } = await behindProxy();
    const other = await observer();
    const path = somewhere();
    await client.create(path, NOTHING, 'ephemeral');
    await client.get(path, { watch: true });
    const told = new Promise((resolve) => client.onWatch(resolve));
    const gone = new Promise((resolve) => other.onWatch(resolve));
    await other.get(path, { watch: true });
    proxy.cut();
    await gone;
    proxy.mend();
    await inState(client, 'over');
    expect(await told).toBe(path);
    await expect(client.get(path)).rejects.toMatchObject({ failure: 'session_over' });
    const next = ensemble.open();
    await inState(next, 'connected');
    expect(next.session?.id).not.toBe(client.session?.id);
  });

  it('R37: a child process that was killed costs a moment, not the session', async () => {
    const { ensemble, client, said } = await behindProxy();
    const path = somewhere();
    const { session } = client;
    const states = statesOf(client);
    await client.create(path, NOTHING, 'ephemeral');
    await client.get(path, { watch: true });
    const told = new Promise((resolve) => client.onWatch(resolve));
    const running = ensemble.childPid;
    const pending = client.get('/').catch((thrown: unknown) => thrown);
    process.kill(running, 'SIGKILL');
    await pending;
    await inState(client, 'disconnected');
    await inState(client, 'connected');
    // Its watches died with the process: whoever waits on one looks again.
    expect(await told).toBe(path);
    expect(client.session).toEqual(session);
    expect((await client.exists(path)).stat?.ephemeralOwner).toBe(session?.id);
    expect(ensemble.childPid).not.toBe(running);
    expect(states).toEqual(['disconnected', 'connected']);
    expect(said).toContain('the client process ended (SIGKILL)');
  });

  it('a server that takes the connection and says nothing is left within seconds, and the session goes on at one that answers', async () => {
    const sockets: Socket[] = [];
    /** The second connection is the mute one. */
    const front = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => undefined);
      if (sockets.length === 2) return;
      const server = connect(zookeeper.servers[0]?.port ?? 0, '127.0.0.1').on('error', () => undefined);
      socket.pipe(server).pipe(socket);
    });
    await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
      front.close();
    });
    const { port } = front.address() as AddressInfo;
    // The native client alone would wait for two thirds of it, which is longer than this test may take.
    const client = (await openEnsemble({ servers: [{ host: '127.0.0.1', port }], sessionMs: 30 * LIMITS.zookeeperAttemptMsMax })).open();
    await inState(client, 'connected');
    const { session } = client;
    const back = nextState(client, 'connected');
    sockets[0]?.destroy();
    await back;
    expect(sockets.length).toBeGreaterThan(2);
    expect(client.session).toEqual(session);
  });

  it('a child process that hangs is replaced', async () => {
    const { ensemble, client } = await behindProxy();
    const { session } = client;
    const hung = ensemble.childPid;
    process.kill(hung, 'SIGSTOP');
    await inState(client, 'disconnected');
    await inState(client, 'connected');
    expect(isAlive(hung)).toBe(false);
    expect(client.session).toEqual(session);
  });

  const holder = async (path: string) => {
    const script = fileURLToPath(new URL('../support/zookeeper-holder-child.ts', import.meta.url));
    const process = fork(script, [String(zookeeper.servers[0]?.port ?? 0), String(SESSION_MS), path], { execArgv: ['--import', 'tsx'] });
    onTestFinished(() => void process.kill('SIGKILL'));
    const report = await new Promise<HolderReport>((resolve) =>
      process.on('message', (message: HolderReport | string) => {
        if (typeof message !== 'string') resolve(message);
      }),
    );
    return { process, ...report };
  };

  it('a child process lives on a permit: while the gateway is stopped it ends, its session runs out, and on waking that is told', async () => {
    const other = await observer();
    const path = somewhere();
    const { process, childPid } = await holder(path);
    const gone = new Promise((resolve) => other.onWatch(resolve));
    await other.get(path, { watch: true });
    process.kill('SIGSTOP');
    await until(() => (isAlive(childPid) ? null : true));
    await gone;
    const over = new Promise<void>((resolve) =>
      process.on('message', (message) => {
        if (message === 'over') resolve();
      }),
    );
    process.kill('SIGCONT');
    await over;
  });

  it('the supervisor and the child end with the gateway, however it ends', async () => {
    const { process, childPid, supervisorPid } = await holder(somewhere());
    process.kill('SIGKILL');
    await until(() => (isAlive(childPid) || isAlive(supervisorPid) ? null : true));
  });

  it('no node of ours is left over by a link that flaps', async () => {
    const { proxy, client } = await behindProxy(3 * SESSION_MS);
    const path = somewhere();
    await client.create(path, NOTHING, 'persistent');
    const { session } = client;
    for (let round = 0; round < TIER.linkFlaps; round += 1) {
      const lost = nextState(client, 'disconnected');
      const attempt = client.create(`${path}/_c_${round}-lock-`, NOTHING, 'ephemeral_sequential').catch(() => null);
      proxy.cutOnce();
      await attempt;
      await lost;
      await inState(client, 'connected');
      await client.sync(path);
      for (const child of (await client.children(path)).names) await client.remove(`${path}/${child}`, null);
    }
    expect(client.session).toEqual(session);
    await client.sync(path);
    expect((await client.children(path)).names).toEqual([]);
  });

  it('R8: a server that was restarted is found again, with the session when it was fast enough', async () => {
    const own = await TestEnsemble.start();
    try {
      const client = (await openEnsemble({ servers: own.addresses, sessionMs: 180_000 })).open();
      await inState(client, 'connected');
      const { session } = client;
      await client.create('/held', NOTHING, 'ephemeral');
      await own.servers[0]?.kill();
      await inState(client, 'disconnected');
      own.servers[0]?.start();
      await inState(client, 'connected');
      expect(client.session?.id).toBe(session?.id);
      expect((await client.exists('/held')).stat?.ephemeralOwner).toBe(session?.id);
    } finally {
      await own.stop();
    }
  });
});
