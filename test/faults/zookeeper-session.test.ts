import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LIMITS } from '../../src/domain/limits.ts';
import { newDirectory } from '../support/gateway-settings.ts';
import { RawConnection } from '../support/raw-http.ts';
import { behindLink, SharedGateway } from '../support/shared-gateway.ts';
import { until } from '../support/until.ts';
import { observer } from '../support/zookeeper-client.ts';
import { TestEnsemble } from '../support/zookeeper-ensemble.ts';
import { GATEWAY_SESSION_MS, ZooKeeperGateway } from '../support/zookeeper-gateway.ts';

/** The gateway's session ends while it holds locks: by a cut link, a stopped process, a killed one, a server that is gone. */

/** A server is back long before two thirds of it, also on a busy machine. */
const STEADY_SESSION_MS = 180_000;

let zookeeper: TestEnsemble;
let roots = 0;
beforeAll(async () => {
  zookeeper = await TestEnsemble.start();
});
afterAll(async () => {
  await shared.end();
  await zookeeper.stop();
});

const serverPort = (): number => zookeeper.servers[0]?.port ?? 0;

function newRoot(): string {
  roots += 1;
  return `/s${roots}`;
}

/** Loses its session again and again, and in the end the supervisor of its client. */
const shared = new SharedGateway((whenFinished) => behindLink(serverPort(), newRoot(), whenFinished));

interface Committed {
  readonly fencing_token: string;
  readonly seq: number;
}

/** Every write of the file that was carried out, oldest first. */
async function commitsOf(gateway: ZooKeeperGateway, path: string): Promise<readonly Committed[]> {
  const records = (await gateway.audit(`volume=v&path=${path}&action=put&outcome=committed&limit=1000`)) as unknown as readonly Committed[];
  return records.toSorted((a, b) => a.seq - b.seq);
}

describe.concurrent('the session of a gateway', () => {
  it('R13: ends under a holder who keeps writing: none of its writes comes after the grant of the next one', async (test) => {
    const { link, gateway } = await shared.inTurn(test);
    const first = await gateway.acquire('v/ledger');
    let over = false;
    let refused = 0;
    const writing = (async () => {
      for (let n = 0; !over; n += 1) {
        const { status } = await gateway.put('v/ledger', `first ${n}`, first, 50);
        if (status >= 400) refused += 1;
      }
    })();
    await until(async () => ((await commitsOf(gateway, 'ledger')).length > 0 ? true : null));
    link.cut();
    await gateway.inState('lost');
    link.mend();
    const second = await gateway.acquire('v/ledger', { waitMs: 60_000 });
    expect((await gateway.put('v/ledger', 'second', second)).status).toBe(200);
    const before = refused;
    await until(() => (refused > before + 2 ? true : null));
    over = true;
    await writing;
    expect(await gateway.get('v/ledger')).toBe('second');
    const tokens = (await commitsOf(gateway, 'ledger')).map(({ fencing_token: token }) => token);
    expect(tokens.indexOf(second.fencing_token)).toBe(tokens.length - 1);
    expect(new Set(tokens)).toEqual(new Set([first.fencing_token, second.fencing_token]));
  });

  it('R1, T22: runs out while its gateway is stopped: on waking it commits nothing of what was queued under an old lease', async (test) => {
    const { gateway, root } = await behindLink(serverPort(), newRoot(), test.onTestFinished);
    const client = await observer(zookeeper.addresses, test.onTestFinished);
    const lease = await gateway.acquire('v/ledger');
    await gateway.put('v/ledger', 'before', lease);
    gateway.process.signal('SIGSTOP');
    const queued = Array.from({ length: 8 }, (_, n) => gateway.put('v/ledger', `queued ${n}`, lease));
    // The ensemble's word that the session is over.
    await until(async () => ((await client.children(`${root}/locks/v/ledger`)).names.length === 0 ? true : null));
    gateway.process.signal('SIGCONT');
    const answers = await Promise.all(queued);
    expect(answers.filter(({ status }) => status < 400)).toEqual([]);
    expect(await gateway.get('v/ledger')).toBe('before');
    const next = await gateway.acquire('v/ledger', { waitMs: 60_000 });
    expect(BigInt(next.fencing_token) > BigInt(lease.fencing_token)).toBe(true);
  });

  it('R13: ends while bodies arrive that no lease waits for: what lies in the directory of before gets into no file, and its client is told why', async (test) => {
    const { link, gateway } = await behindLink(serverPort(), newRoot(), test.onTestFinished);
    for (const name of ['replaced', 'appended', 'patched']) await gateway.put(`v/${name}`, 'before');
    const form = '--cut\r\nContent-Disposition: form-data; name="a"; filename="a"\r\n\r\nabcdef\r\n--cut--\r\n';
    const uploads = [
      ['PUT /v1/files/v/made', '', 'abcdef'],
      ['PUT /v1/files/v/replaced', '', 'abcdef'],
      ['PATCH /v1/files/v/appended', 'X-Update-Range: append\r\n', 'abcdef'],
      ['PATCH /v1/files/v/patched', 'X-Update-Range: bytes=0-5\r\n', 'abcdef'],
      ['POST /v1/files/v/several/', 'Content-Type: multipart/form-data; boundary=cut\r\n', form],
    ].map(([order = '', headers = '', body = '']) => {
      const connection = new RawConnection(Number(new URL(gateway.url).port));
      test.onTestFinished(() => void connection.socket.destroy());
      const cut = body.indexOf('def');
      const type = headers.includes('X-Update-Range') ? 'Content-Type: application/octet-stream\r\n' : '';
      connection.send(`${order} HTTP/1.1\r\nHost: localhost\r\n${type}${headers}Content-Length: ${body.length}\r\n\r\n${body.slice(0, cut)}`);
      return { connection, rest: body.slice(cut) };
    });
    const control = join(gateway.process.directory, 'v', '.fencegate');
    await until(async () => {
      const [incarnation = ''] = (await readdir(control)).filter((name) => /^[0-9a-f]{32}$/.test(name));
      return (await readdir(join(control, incarnation))).filter((name) => name.startsWith(`${incarnation}-`)).length >= uploads.length ? true : null;
    });
    link.cut();
    await gateway.inState('lost');
    link.mend();
    // The volume is open again.
    await gateway.acquire('v/other', { waitMs: 60_000 });
    const answers = await Promise.all(
      uploads.map(({ connection, rest }) => {
        connection.send(rest);
        return connection.answer();
      }),
    );
    const verdicts = answers.map(({ status, body }) => `${status} ${(JSON.parse(body) as { code?: string }).code ?? ''}`);
    const refused = '503 volume_unavailable';
    // A range is put over a copy of the file, and that is made under the lease.
    expect(verdicts).toEqual([refused, refused, refused, '200 ', refused]);
    expect(await Promise.all(['replaced', 'appended', 'patched'].map((name) => gateway.get(`v/${name}`)))).toEqual(['before', 'before', 'abcdef']);
    const refusals = (await gateway.audit('outcome=rejected&code=volume_unavailable')).map(({ action }) => String(action));
    expect(refusals.filter((action) => action !== 'lease_refuse').sort()).toEqual(['append', 'put', 'put', 'upload']);
  });

  it('ends with a gateway that stops: who holds is told before the streams end', async (test) => {
    const gateway = await ZooKeeperGateway.start(`${zookeeper.connect}${newRoot()}`, { whenFinished: test.onTestFinished });
    const readers = [await gateway.acquire('v/ledger', { mode: 'shared' }), await gateway.acquire('v/ledger', { mode: 'shared' })];
    const watch = await gateway.watch('v/ledger');
    await gateway.process.stop();
    const told = [await watch.next(), await watch.next()];
    expect(told.map(({ type, data }) => `${type} ${String(data['lease_ref'])}`).sort()).toEqual(
      readers.map(({ lease_ref: ref }) => `lost ${ref}`).sort(),
    );
    await expect(watch.next()).rejects.toThrow('the stream has ended');
  });

  it('of a gateway that was killed is closed by the next one over its directory: nobody waits for it to run out', async (test) => {
    const root = newRoot();
    const directory = await newDirectory();
    // Longer than the test may take.
    const options = { directory, zookeeperSessionMs: 300_000, takeoverAfterMs: 500 };
    const { gateway } = await behindLink(serverPort(), root, test.onTestFinished, options);
    const lease = await gateway.acquire('v/ledger');
    await gateway.put('v/ledger', 'before', lease);
    await gateway.process.kill();
    const { gateway: next } = await behindLink(serverPort(), root, test.onTestFinished, options);
    expect(await next.put('v/ledger', 'late', lease)).toMatchObject({ status: 412 });
    const fresh = await next.acquire('v/ledger');
    expect(fresh.state).toBe('held');
    expect(BigInt(fresh.fencing_token) > BigInt(lease.fencing_token)).toBe(true);
    expect(await next.get('v/ledger')).toBe('before');
  });
});

describe('a ZooKeeper server that is gone', () => {
  it('R8: for a moment, costs no lock: its session is in what it stored', async () => {
    const gateway = await ZooKeeperGateway.start(`${zookeeper.connect}/moment`, { zookeeperSessionMs: STEADY_SESSION_MS });
    const lease = await gateway.acquire('v/ledger');
    await zookeeper.servers[0]?.kill();
    await gateway.inState('suspended');
    zookeeper.servers[0]?.start();
    await zookeeper.serving();
    expect(await gateway.put('v/ledger', 'on', lease, LIMITS.writeWaitMsMax)).toMatchObject({ status: 201 });
    expect(await gateway.lease(lease)).toMatchObject({ state: 'held', fencing_token: lease.fencing_token });
  });

  it('R8: for longer than the session, costs the locks and no more: the next acquire is granted', async (test) => {
    const { gateway } = await shared.inTurn(test);
    const lease = await gateway.acquire('v/longer');
    await zookeeper.servers[0]?.kill();
    await gateway.inState('lost');
    expect(await gateway.lease(lease)).toMatchObject({ state: 'lost' });
    zookeeper.servers[0]?.start();
    await zookeeper.serving();
    const back = performance.now();
    const next = await gateway.acquire('v/longer', { waitMs: 60_000 });
    console.log(`granted ${Math.round(performance.now() - back)} ms after the server was back, with sessions of ${GATEWAY_SESSION_MS} ms`);
    expect(BigInt(next.fencing_token) > BigInt(lease.fencing_token)).toBe(true);
    expect(await gateway.put('v/longer', 'late', lease)).toMatchObject({ status: 412 });
  });
});

it('a session can never come again when the supervisor of its client was killed: the gateway stops, with an error', async (test) => {
  const { gateway } = await shared.inTurn(test);
  const { supervisor } = gateway.clientProcesses();
  process.kill(supervisor, 'SIGKILL');
  const { code, signal } = await gateway.process.ended();
  expect([code, signal]).toEqual([1, null]);
});
