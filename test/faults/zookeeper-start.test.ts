import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { GatewayProcess, type GatewayProcessOptions } from '../support/gateway-process.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { auditOf } from '../support/history.ts';
import { type Answer, attempt, get, lease, post, put } from '../support/http-client.ts';
import { TestEnsemble } from '../support/zookeeper-ensemble.ts';
import { ZooKeeperProxy } from '../support/zookeeper-proxy.ts';

/** A start that no server of the ensemble answers: what listens meanwhile, what it says and does not do, and how it ends. */

const ONE_LINE = /^fencegate: [^\n]+\n$/;
const SESSION_MS = 8_000;

let zookeeper: TestEnsemble;
beforeAll(async () => {
  zookeeper = await TestEnsemble.start();
});
afterAll(() => zookeeper.stop());

let roots = 0;

/** Below one root of the ensemble, over a link of its own, cut from the beginning. */
async function cutOff(): Promise<{ readonly link: ZooKeeperProxy; readonly root: string; readonly directory: string }> {
  const link = await ZooKeeperProxy.to(zookeeper.servers[0]?.port ?? 0);
  link.cut();
  const directory = await newDirectory();
  onTestFinished(() => removeDirectory(directory));
  mkdirSync(join(directory, 'v'));
  writeFileSync(join(directory, 'v', 'a.txt'), 'before');
  roots += 1;
  return { link, root: `/start${roots}`, directory };
}

function over(port: number, root: string, environment: Record<string, string> = {}): GatewayProcessOptions {
  const own = { FENCEGATE_COORDINATOR: 'zookeeper', FENCEGATE_ZOOKEEPER_CONNECT: `127.0.0.1:${port}${root}`, FENCEGATE_LOG_LEVEL: 'info' };
  return { zookeeperSessionMs: SESSION_MS, environment: { ...own, ...environment } };
}

async function waiting(directory: string, options: GatewayProcessOptions): Promise<GatewayProcess> {
  const gateway = await GatewayProcess.spawn(directory, options);
  await gateway.waiting();
  return gateway;
}

const refused = (answer: Answer): unknown[] => [answer.status, answer.json['code'], Number(answer.headers['retry-after']) > 0];

describe('a start whose ensemble does not answer', () => {
  it('listens and says what it waits for, touches no volume, and goes on by itself when the ensemble answers', async () => {
    const { link, root, directory } = await cutOff();
    const volumes = { FENCEGATE_VOLUMES: `v=${directory}/v,names=` };
    const gateway = await waiting(directory, over(link.port, root, volumes));
    const { url } = gateway;
    expect((await get(url, '/healthz')).status).toBe(200);
    const ready = await get(url, '/readyz');
    expect([ready.status, ready.headers['retry-after']]).toEqual([503, '1']);
    expect(ready.json).toMatchObject({
      ready: false,
      coordinator: { kind: 'zookeeper', state: 'lost' },
      volumes: [
        { name: 'v', state: 'unavailable', reason: expect.stringMatching(/waits for .* session with the ZooKeeper ensemble/) },
        { name: 'names' },
      ],
    });
    expect(gateway.log).toMatch(/"message":"waiting for the coordinator"/);
    expect(refused(await get(url, '/v1/files/v/a.txt'))).toEqual([503, 'volume_unavailable', true]);
    expect(refused(await put(url, 'v/a.txt', 'refused'))).toEqual([503, 'volume_unavailable', true]);
    expect(refused(await post(url, '/v1/leases', { resource: 'v/a.txt' }))).toEqual([503, 'coordinator_unavailable', true]);
    expect(refused(await post(url, '/v1/leases', { resource: 'names/one' }))).toEqual([503, 'coordinator_unavailable', true]);
    expect(refused(await get(url, '/v1/locks/names/one'))).toEqual([503, 'coordinator_unavailable', true]);
    expect(refused(await post(url, '/v1/admin/volumes/v/adopt', { reason: 'too early' }))).toEqual([503, 'volume_unavailable', true]);
    expect(refused(await post(url, '/v1/admin/fences/rebase', { reason: 'too early' }))).toEqual([503, 'volume_unavailable', true]);
    expect((await get(url, '/v1/admin/doctor')).text).toContain('coordinator_lost');
    expect((await auditOf(url))[0]).toMatchObject({ action: 'start' });
    expect(readdirSync(join(directory, 'v'))).toEqual(['a.txt']);
    // What needs neither volume nor coordinator is made, and is there when the start is over.
    const session = await post(url, '/v1/sessions', { ttl_ms: 600_000 });
    expect(session.status).toBe(201);

    link.mend();
    await gateway.listening();
    expect(gateway.url).toBe(url);
    expect((await get(url, '/readyz')).status).toBe(200);
    expect((await get(url, '/v1/files/v/a.txt')).text).toBe('before');
    expect((await put(url, 'v/a.txt', 'after')).status).toBe(200);
    const held = await post(url, '/v1/leases', { resource: 'names/one', session_id: session.json['session_id'] });
    expect([held.status, held.json['state']]).toEqual([201, 'held']);
    expect(await auditOf(url, 'action=start')).toHaveLength(1);
    expect(await gateway.stop()).toEqual({ code: 0, signal: null, stderr: '' });
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('ends with 0 after %s, and leaves the volume as it was', async (signal) => {
    const { link, root, directory } = await cutOff();
    const gateway = await waiting(directory, over(link.port, root));
    gateway.signal(signal);
    expect(await gateway.ended()).toEqual({ code: 0, signal: null, stderr: '' });
    expect(readdirSync(join(directory, 'v'))).toEqual(['a.txt']);
  });

  it('does not answer a repeated request from a promise: what the process before left half done is pending, until recovery has seen the file', async () => {
    const { link, root, directory } = await cutOff();
    link.mend();
    const options = { ...over(link.port, root), takeoverAfterMs: 500 };
    const first = await GatewayProcess.start(directory, options);
    const headers = { 'idempotency-key': '"once"', 'content-length': 5 };
    const again = (url: string): Promise<Answer> => put(url, 'v/a.txt', 'after', headers);
    await first.hold('6.before_apply');
    const cut = attempt(first.url, { method: 'PUT', path: '/v1/files/v/a.txt', headers, body: 'after' });
    await first.until(() => first.held().size > 0);
    link.cut();
    await first.kill();
    expect(await cut).toBeNull();

    const second = await waiting(directory, options);
    const [operation = ''] = first.held();
    expect((await get(second.url, `/v1/operations/${operation}`)).json).toMatchObject({ outcome: 'pending' });
    expect((await again(second.url)).json).toMatchObject({ code: 'outcome_unknown', operation_id: operation });
    expect(readFileSync(join(directory, 'v', 'a.txt'), 'utf8')).toBe('before');
    await second.stop();

    // Whatever ended that start, the next one still looks.
    const third = await waiting(directory, options);
    link.mend();
    await third.listening();
    expect((await get(third.url, `/v1/operations/${operation}`)).json).toMatchObject({ outcome: 'committed' });
    expect((await again(third.url)).headers['idempotency-replayed']).toBe('true');
    expect((await get(third.url, '/v1/files/v/a.txt')).text).toBe('after');
  });

  it('ends the leases of the process before as lost, in the log and for whoever asks', async () => {
    const { link, root, directory } = await cutOff();
    link.mend();
    const options = { ...over(link.port, root), takeoverAfterMs: 500 };
    const first = await GatewayProcess.start(directory, options);
    const held = await lease(first.url, ['v/a.txt']);
    link.cut();
    await first.kill();
    const second = await waiting(directory, options);
    expect((await get(second.url, `/v1/leases/${held.id}`)).json).toMatchObject({ state: 'lost' });
    expect(await auditOf(second.url, 'action=lease_lose')).toHaveLength(1);
    link.mend();
    await second.listening();
    expect((await put(second.url, 'v/a.txt', 'late', { 'x-fencing-token': held.token })).status).toBe(412);
  });
});

describe('what ends a start also when it has waited', () => {
  it('a volume that another gateway has, and no other: code 1 and one line', async () => {
    const { link, root, directory } = await cutOff();
    const other = await newDirectory();
    onTestFinished(() => removeDirectory(other));
    const volumes = { FENCEGATE_VOLUMES: `v=${directory}/v` };
    await GatewayProcess.start(other, over(zookeeper.servers[0]?.port ?? 0, root, volumes));
    const gateway = await waiting(directory, over(link.port, root));
    link.mend();
    const { code, stderr } = await gateway.ended();
    expect([code, stderr]).toEqual([1, expect.stringMatching(ONE_LINE)]);
    expect(stderr).toMatch(/\bv\b.*taken over/);
  });

  it('an ensemble that answers with a refusal: code 1 and one line, after two session times', async () => {
    const { link, root, directory } = await cutOff();
    const other = await newDirectory();
    onTestFinished(() => removeDirectory(other));
    const auth = join(directory, 'zookeeper-auth');
    writeFileSync(auth, 'fencegate:s3cret\n', { mode: 0o600 });
    await GatewayProcess.start(other, over(zookeeper.servers[0]?.port ?? 0, root, { FENCEGATE_ZOOKEEPER_AUTH_FILE: auth }));
    const gateway = await waiting(directory, { ...over(link.port, root), zookeeperSessionMs: 3_000 });
    link.mend();
    const { code, stderr } = await gateway.ended();
    expect([code, stderr]).toEqual([1, expect.stringMatching(ONE_LINE)]);
    expect(stderr).toMatch(/The coordinator refused: this gateway has no right/);
    expect(readdirSync(join(directory, 'v'))).toEqual(['a.txt']);
  });

  it('the end of the process that starts the client: code 1 and one line', async () => {
    const { link, root, directory } = await cutOff();
    const gateway = await waiting(directory, over(link.port, root));
    process.kill(Number(readFileSync(`/proc/${gateway.pid}/task/${gateway.pid}/children`, 'utf8').trim().split(' ')[0]), 'SIGKILL');
    const { code, stderr } = await gateway.ended();
    expect([code, stderr]).toEqual([1, expect.stringMatching(ONE_LINE)]);
    expect(stderr).toMatch(/supervisor/);
  });
});
