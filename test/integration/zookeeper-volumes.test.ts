import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { GatewayProcess } from '../support/gateway-process.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { auditOf } from '../support/history.ts';
import { get, lease, post, put } from '../support/http-client.ts';
import { until } from '../support/until.ts';
import { observer } from '../support/zookeeper-client.ts';
import { TestEnsemble } from '../support/zookeeper-ensemble.ts';
import { ZooKeeperProxy } from '../support/zookeeper-proxy.ts';

/** Whose a volume is when several gateways share one ensemble: each with a data directory of its own, as on hosts of their own. */

const ONE_LINE = /^fencegate: [^\n]+\n$/;
/** A third of it without an answer is SUSPENDED, also on a busy machine. */
const SESSION_MS = 8_000;

let zookeeper: TestEnsemble;
beforeAll(async () => {
  zookeeper = await TestEnsemble.start();
});
afterAll(() => zookeeper.stop());

async function directory(): Promise<string> {
  const made = await newDirectory();
  onTestFinished(() => removeDirectory(made));
  return made;
}

let root = 0;
const freshRoot = (): string => {
  root += 1;
  return `/volumes${root}`;
};

const over = (connect: string, environment: Record<string, string> = {}) => ({
  zookeeperSessionMs: SESSION_MS,
  environment: { FENCEGATE_COORDINATOR: 'zookeeper', FENCEGATE_ZOOKEEPER_CONNECT: connect, ...environment },
});

const incarnations = async (volume: string): Promise<readonly string[]> =>
  (await readdir(join(volume, '.fencegate'))).filter((name) => /^[0-9a-f]{32}$/.test(name)).sort();

const volumeState = async (url: string, name = 'v'): Promise<Record<string, unknown>> => {
  const { volumes } = (await get(url, '/readyz')).json as { volumes: Record<string, unknown>[] };
  return volumes.find((volume) => volume['name'] === name) ?? {};
};

const putted = (url: string, name: string, body: string): Promise<Awaited<ReturnType<typeof put>>> =>
  until(async () => {
    const answer = await put(url, name, body);
    return answer.status === 503 ? null : answer;
  });

describe('a standby on another host', () => {
  let first: GatewayProcess;
  let connect: string;
  beforeAll(async () => {
    connect = `${zookeeper.connect}${freshRoot()}`;
    const one = await newDirectory();
    first = await GatewayProcess.start(one, { ...over(connect, { FENCEGATE_VOLUMES: `v=${one}/v,names=` }), outlivesTest: true });
  });
  afterAll(async () => {
    await first.kill();
    await removeDirectory(first.directory);
  });

  it('refuses a volume whose name another volume has, and says what to do', async () => {
    const refused = await GatewayProcess.failing(await directory(), over(connect));
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(ONE_LINE)]);
    expect(refused.stderr).toMatch(/another name|another lock root/);
  });

  it('R27: is refused with one line while the first lives, takes over when it is silent, fences it, and needs no rebase', async () => {
    const [one, two] = [first.directory, await directory()];
    const shared = { FENCEGATE_VOLUMES: `v=${one}/v` };
    const held = await lease(first.url, ['v/ledger.csv']);
    expect((await put(first.url, 'v/ledger.csv', 'of the first', { 'x-fencing-token': held.token })).status).toBe(201);
    const refused = await GatewayProcess.failing(two, over(connect, shared));
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(ONE_LINE)]);
    expect(refused.stderr).toMatch(/\bv\b.*taken over/);
    const [before = ''] = await incarnations(`${one}/v`);

    const ensemble = await observer(zookeeper.addresses);
    const owners = `${connect.slice(connect.indexOf('/'))}/locks/.owners`;
    first.signal('SIGSTOP');
    const late = put(first.url, 'v/ledger.csv', 'too late', { 'x-fencing-token': held.token });
    // Whoever starts it again, for as long as it is refused, does so in vain until the ensemble has given the first one's session up.
    await until(async () => ((await ensemble.children(owners)).names.length === 0 ? true : null));
    const second = await GatewayProcess.start(two, over(connect, shared));
    expect(await incarnations(`${one}/v`)).not.toContain(before);
    const refusedToken = await put(second.url, 'v/ledger.csv', 'stale', { 'x-fencing-token': held.token });
    expect([refusedToken.status, refusedToken.json['code']]).toEqual([412, 'stale_token']);
    const written = await putted(second.url, 'v/ledger.csv', 'of the second');
    expect([written.status, BigInt(String(written.headers['x-fencing-token'])) > BigInt(held.token)]).toEqual([200, true]);
    expect(await volumeState(second.url)).toMatchObject({ state: 'open', reason: expect.stringMatching(/journal/) });
    expect(await auditOf(second.url, 'action=take_over&volume=v')).toHaveLength(1);

    first.signal('SIGCONT');
    // From its first answer on: whose the volume is it does not know, and what the successor wrote is nobody's doing behind its back.
    const woken = await get(first.url, '/v1/admin/doctor');
    expect(await volumeState(first.url)).toMatchObject({ state: 'unavailable', reason: expect.any(String) });
    expect(woken.json['volumes']).toMatchObject([{ name: 'v', state: 'unavailable' }, expect.anything()]);
    expect(woken.text).not.toContain('file_changed_behind_gateway');
    expect((await late).status).toBeGreaterThanOrEqual(412);
    expect((await put(first.url, 'v/ledger.csv', 'still too late', { 'x-lock-wait-ms': '0' })).status).toBeGreaterThanOrEqual(412);
    expect(await readFile(join(one, 'v', 'ledger.csv'), 'utf8')).toBe('of the second');
    await until(async () => ((await volumeState(first.url))['state'] === 'unavailable' ? true : null));

    await second.stop();
    const back = await putted(first.url, 'v/ledger.csv', 'of the first again');
    expect([back.status, BigInt(String(back.headers['x-fencing-token'])) > BigInt(String(written.headers['x-fencing-token']))]).toEqual([200, true]);
    expect(await auditOf(first.url, 'action=take_over&volume=v')).toHaveLength(1);
    expect((await get(first.url, '/v1/admin/doctor')).text).not.toContain('file_changed_behind_gateway');
  });

  it('with a volume of its own serves that one, and the other as soon as its owner is gone', async () => {
    const [one, two] = [first.directory, await directory()];
    await mkdir(join(two, 'own'));
    const second = await GatewayProcess.start(two, over(connect, { FENCEGATE_VOLUMES: `v=${one}/v,own=${two}/own,names=` }));
    expect((await putted(second.url, 'own/a.txt', 'its own')).status).toBe(201);
    expect((await put(second.url, 'v/a.txt', 'refused')).json).toMatchObject({ code: 'volume_unavailable' });
    const names = { resource: 'names/one', ttl_ms: 60_000, wait_ms: 0 };
    expect((await post(second.url, '/v1/leases', names)).json).toMatchObject({ code: 'volume_unavailable' });
    expect((await post(first.url, '/v1/leases', names)).status).toBe(201);
    expect((await get(second.url, '/v1/admin/doctor')).text).toContain('standby');
    await first.stop();
    expect((await putted(second.url, 'v/a.txt', 'taken over')).status).toBe(201);
    await until(async () => ((await post(second.url, '/v1/leases', names)).status === 201 ? true : null));
  });
});

describe('a gateway whose session is lost', () => {
  it('goes on with another incarnation: the old directory is gone before anything is written again', async () => {
    const proxy = await ZooKeeperProxy.to(zookeeper.servers[0]?.port ?? 0);
    const one = await directory();
    const gateway = await GatewayProcess.start(one, over(`127.0.0.1:${proxy.port}${freshRoot()}`));
    const held = await lease(gateway.url, ['v/a.txt']);
    await put(gateway.url, 'v/a.txt', 'before', { 'x-fencing-token': held.token });
    const before = await incarnations(`${one}/v`);
    proxy.cut();
    await until(async () => {
      const { json, status } = await get(gateway.url, '/readyz');
      expect((await get(gateway.url, '/v1/files/v/a.txt')).text).toBe('before');
      const { state } = json['coordinator'] as { state: string };
      if (state !== 'connected') expect(status).toBe(503);
      expect(json['volumes']).toMatchObject([{ state: state === 'lost' ? 'unavailable' : 'open' }]);
      return state === 'lost' ? true : null;
    });
    expect((await get(gateway.url, '/v1/admin/doctor')).text).toContain('coordinator_lost');
    const { text: metrics } = await get(gateway.url, '/metrics');
    expect(metrics).toMatch(/^fencegate_coordinator_usable 0$/m);
    expect(metrics).toMatch(/^fencegate_coordinator_interruptions_total\{state="lost"\} 1$/m);
    proxy.mend();
    expect((await putted(gateway.url, 'v/a.txt', 'after')).status).toBe(200);
    const after = await incarnations(`${one}/v`);
    expect([after.length, after]).toEqual([1, expect.not.arrayContaining([...before])]);
  });
});

describe('another coordinator over an existing data directory', () => {
  it('writes are refused with a clear message until the rebase, and tokens go on above every earlier one', async () => {
    const one = await directory();
    const embedded = await GatewayProcess.start(one);
    const held = await lease(embedded.url, ['v/a.txt']);
    await put(embedded.url, 'v/a.txt', 'one', { 'x-fencing-token': held.token });
    await embedded.stop();
    const connect = `${zookeeper.connect}${freshRoot()}`;
    const gateway = await GatewayProcess.start(one, over(connect));
    expect((await get(gateway.url, '/v1/files/v/a.txt')).text).toBe('one');
    const refused = await put(gateway.url, 'v/a.txt', 'refused');
    expect([refused.status, refused.text]).toEqual([503, expect.stringContaining('rebase')]);
    expect((await post(gateway.url, '/v1/admin/fences/rebase', { reason: 'a coordinator of its own' })).status).toBe(200);
    const written = await putted(gateway.url, 'v/a.txt', 'two');
    expect([written.status, BigInt(String(written.headers['x-fencing-token'])) > BigInt(held.token)]).toEqual([200, true]);
    expect((await put(gateway.url, 'v/a.txt', 'stale', { 'x-fencing-token': held.token })).json).toMatchObject({ code: 'stale_token' });
    await gateway.stop();
    const again = await GatewayProcess.start(one, over(connect));
    expect((await putted(again.url, 'v/a.txt', 'three')).status).toBe(200);
    await again.stop();
    const back = await GatewayProcess.failing(one);
    expect([back.code, back.stderr]).toEqual([1, expect.stringMatching(ONE_LINE)]);
  });
});
