import { type AddressInfo, connect, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { parseConnect } from '../../src/zookeeper/connect-string.ts';
import { until } from '../support/until.ts';
import { inState, isAlive, openEnsemble } from '../support/zookeeper-client.ts';
import { TestEnsemble } from '../support/zookeeper-ensemble.ts';

const text = (words: string): Buffer => Buffer.from(words);

describe('the ZooKeeper client on a real server', () => {
  let zookeeper: TestEnsemble;
  let place = 0;
  /** A path that no other test uses. */
  const somewhere = (): string => {
    place += 1;
    return `/t${place}`;
  };

  beforeAll(async () => {
    zookeeper = await TestEnsemble.start();
  });
  afterAll(() => zookeeper.stop());

  const connected = async (settings: Partial<Parameters<typeof openEnsemble>[0]> = {}) => {
    const ensemble = await openEnsemble({ servers: zookeeper.addresses, ...settings });
    const client = ensemble.open();
    await inState(client, 'connected');
    return { ensemble, client };
  };

  it('reads what it wrote, with the stat of the write that it was', async () => {
    const { client } = await connected();
    const path = somewhere();
    expect(await client.create(path, text('a'), 'persistent')).toMatchObject({ path, connection: 1 });
    const { stat: made } = await client.get(path);
    const { stat } = await client.set(path, text('b\u0000é'), 0);
    expect(stat.mzxid > made.mzxid).toBe(true);
    expect(stat).toMatchObject({ version: 1, czxid: made.czxid, ephemeralOwner: '0' });
    const read = await client.get(path);
    expect(read).toMatchObject({ stat, connection: 1 });
    expect(Buffer.from(read.data).toString()).toBe('b\u0000é');
  });

  it('tells absent, there already, changed meanwhile and not empty from each other', async () => {
    const { client } = await connected();
    const path = somewhere();
    await expect(client.get(path)).rejects.toMatchObject({ failure: 'no_node' });
    expect((await client.exists(path)).stat).toBeNull();
    await client.create(path, text(''), 'persistent');
    await expect(client.create(path, text(''), 'persistent')).rejects.toMatchObject({ failure: 'node_exists' });
    await expect(client.set(path, text('x'), 7)).rejects.toMatchObject({ failure: 'bad_version' });
    await client.create(`${path}/c`, text(''), 'ephemeral');
    await expect(client.remove(path, null)).rejects.toMatchObject({ failure: 'not_empty' });
    await expect(client.create(`${path}/c/d`, text(''), 'persistent')).rejects.toMatchObject({ failure: 'bad_arguments' });
    await expect(client.get('no/slash')).rejects.toMatchObject({ failure: 'bad_arguments' });
    await expect(client.create(`${path}/a\u0000b`, text(''), 'persistent')).rejects.toMatchObject({ failure: 'bad_arguments' });
    await client.remove(`${path}/c`, null);
    await client.remove(path, 0);
  });

  it('numbers sequential children, which are its session’s own', async () => {
    const { client } = await connected();
    const path = somewhere();
    await client.create(path, text(''), 'persistent');
    const made = await Promise.all([0, 1, 2].map(() => client.create(`${path}/_c_x-lock-`, text(''), 'ephemeral_sequential')));
    expect(made.map((one) => one.path)).toEqual(['0', '1', '2'].map((n) => `${path}/_c_x-lock-000000000${n}`));
    const { names } = await client.children(path);
    expect(names.toSorted()).toEqual(made.map((one) => one.path.slice(path.length + 1)));
    expect((await client.exists(made[0]?.path ?? '')).stat?.ephemeralOwner).toBe(client.session?.id);
    expect((await client.exists(path)).stat).toMatchObject({ cversion: 3, numChildren: 3 });
    await client.remove(made[0]?.path ?? '', null);
    await client.remove(made[1]?.path ?? '', null);
    expect((await client.exists(path)).stat).toMatchObject({ cversion: 3, numChildren: 1 });
  });

  it('sends requests in the order of the calls, without waiting for answers', async () => {
    const { client } = await connected();
    const path = somewhere();
    const [, first, , , read] = await Promise.all([
      client.create(path, text('0'), 'persistent'),
      client.set(path, text('1'), 0),
      client.set(path, text('2'), 1),
      client.sync(path),
      client.get(path),
    ]);
    expect(first.stat.version).toBe(1);
    expect(Buffer.from(read.data).toString()).toBe('2');
  });

  it('tells a watch once, for a change and for the end of the node', async () => {
    const { client } = await connected();
    const { client: other } = await connected();
    const path = somewhere();
    await client.create(path, text('0'), 'persistent');
    const seen: string[] = [];
    let told: () => void = () => undefined;
    client.onWatch((changed) => {
      seen.push(changed);
      told();
    });
    const next = (): Promise<void> => new Promise((resolve) => (told = resolve));
    await client.get(path, { watch: true });
    const changed = next();
    await other.set(path, text('1'), 0);
    await other.set(path, text('2'), 1);
    await changed;
    await client.sync(path);
    expect(seen).toEqual([path]);
    await client.get(path, { watch: true });
    const removed = next();
    await other.remove(path, null);
    await removed;
    expect(seen).toEqual([path, path]);
  });

  it('stays below its chroot, which it makes', async () => {
    const chroot = `${somewhere()}/apps`;
    const { client } = await connected({ chroot });
    const { client: other } = await connected();
    await client.create('/n', text('0'), 'persistent');
    const told = new Promise((resolve) => client.onWatch(resolve));
    await client.get('/n', { watch: true });
    await other.set(`${chroot}/n`, text('1'), 0);
    expect(await told).toBe('/n');
    expect((await client.create('/n/c-', text(''), 'ephemeral_sequential')).path).toBe('/n/c-0000000000');
    expect((await client.children('/')).names).toEqual(['n']);
  });

  it('makes nodes that nobody without its credentials may read, change or contend on', async () => {
    const { client: own } = await connected({ auth: 'fencegate:s3cret' });
    const { client: same } = await connected({ auth: 'fencegate:s3cret' });
    const { client: stranger } = await connected({ auth: 'fencegate:guess' });
    const path = somewhere();
    await own.create(path, text('0'), 'persistent');
    const child = (await own.create(`${path}/c-`, text(''), 'ephemeral_sequential')).path;
    for (const attempt of [
      () => stranger.get(path),
      () => stranger.set(path, text('x'), 0),
      () => stranger.create(`${path}/x`, text(''), 'ephemeral'),
      () => stranger.remove(child, null),
      () => stranger.set(child, text('x'), 0),
    ]) {
      await expect(attempt()).rejects.toMatchObject({ failure: 'no_auth' });
    }
    expect(await same.set(path, text('1'), 0)).toMatchObject({ stat: { version: 1 } });
  });

  it('makes a chroot of that kind, too', async () => {
    const chroot = `${somewhere()}/deep`;
    const auth = 'fencegate:s3cret';
    const { client: own } = await connected({ auth, chroot });
    await own.create('/n', text('0'), 'persistent');
    const { client: stranger } = await connected();
    for (const path of [chroot, chroot.slice(0, chroot.lastIndexOf('/'))]) {
      await expect(stranger.children(path)).rejects.toMatchObject({ failure: 'no_auth' });
    }
    const { client: same } = await connected({ auth, chroot });
    expect((await same.children('/')).names).toEqual(['n']);
  });

  it('leaves the rights of a node alone that somebody else made', async () => {
    const { client: stranger } = await connected();
    const { client: own } = await connected({ auth: 'fencegate:s3cret' });
    const path = somewhere();
    await stranger.create(path, text('0'), 'persistent');
    await expect(own.create(path, text('1'), 'persistent')).rejects.toMatchObject({ failure: 'node_exists' });
    expect(await stranger.set(path, text('2'), 0)).toMatchObject({ stat: { version: 1 } });
  });

  it('ends its session when it closes, and opens another one', async () => {
    const { ensemble, client } = await connected();
    const { client: other } = await connected();
    const path = somewhere();
    await client.create(path, text(''), 'ephemeral');
    const gone = new Promise((resolve) => other.onWatch(resolve));
    await other.get(path, { watch: true });
    await client.close();
    await gone;
    expect(client.state).toBe('over');
    await expect(client.get('/')).rejects.toMatchObject({ failure: 'session_over' });
    const next = ensemble.open();
    await inState(next, 'connected');
    expect(next.session?.id).not.toBe(client.session?.id);
    await next.create(path, text(''), 'ephemeral');
  });

  it('resumes a session that an earlier process left, and can end it', async () => {
    const { ensemble: dead, client: past } = await connected();
    const path = somewhere();
    await past.create(path, text(''), 'ephemeral');
    const session = past.session;
    const child = dead.childPid;
    process.kill(dead.supervisorPid, 'SIGKILL');
    await inState(past, 'disconnected');
    await until(() => (isAlive(child) ? null : true));
    const ensemble = await openEnsemble({ servers: zookeeper.addresses });
    const resumed = ensemble.open(session);
    await inState(resumed, 'connected');
    expect(resumed.session).toEqual(session);
    expect((await resumed.exists(path)).stat?.ephemeralOwner).toBe(session?.id);
    await resumed.close();
    const after = ensemble.open(session);
    await inState(after, 'over');
    expect(after.state).toBe('over');
  });

  it('looks names up by itself, and says which one it cannot', async () => {
    const said: string[] = [];
    const { client } = await connected({
      servers: [
        { host: 'no-such-host.invalid', port: 2181 },
        { host: 'localhost', port: zookeeper.servers[0]?.port ?? 0 },
      ],
      log: (line) => said.push(line),
    });
    expect((await client.children('/')).names).toContain('zookeeper');
    expect(said.join('\n')).toContain('no-such-host.invalid cannot be resolved (ENOTFOUND)');
  });

  it('connects to an IPv6 address', async () => {
    const front = createServer((client) => {
      const server = connect(zookeeper.servers[0]?.port ?? 0, '127.0.0.1');
      client.on('error', () => server.destroy()).pipe(server);
      server.on('error', () => client.destroy()).pipe(client);
    });
    await new Promise<void>((resolve) => front.listen(0, '::1', resolve));
    onTestFinished(() => void front.close());
    const parsed = parseConnect(`[::1]:${(front.address() as AddressInfo).port}`);
    if (typeof parsed === 'string') throw new Error(parsed);
    const { client } = await connected({ servers: parsed.servers });
    expect((await client.exists(somewhere())).stat).toBeNull();
  });

  it('works, once the list can be read, however long its children’s names are', async () => {
    const { client } = await connected();
    const path = somewhere();
    await client.create(path, text(''), 'persistent');
    const names = Array.from({ length: 1_000 }, (_, n) => `_c_${String(n).padStart(22, '0')}-x5-lock-`);
    await Promise.all(names.map((name) => client.create(`${path}/${name}`, text(''), 'ephemeral_sequential')));
    expect((await client.children(path)).names).toHaveLength(1_000);
  });

  it('leaves no process behind', async () => {
    const { ensemble } = await connected();
    const pids = [ensemble.supervisorPid, ensemble.childPid];
    await ensemble.stop();
    expect(pids.filter(isAlive)).toEqual([]);
  });
});
