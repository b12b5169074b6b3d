import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { removeDirectory } from '../support/gateway-settings.ts';
import { RawConnection } from '../support/raw-http.ts';
import { rawVerdict } from '../support/raw-request.ts';
import { until } from '../support/until.ts';

let gateway: TestGateway;

afterEach(() => removeDirectory(gateway.directory));

describe('a stop', () => {
  it('waits for a running upload, tells new requests on new connections that it drains, and then ends whatever keeps its connection open', async () => {
    gateway = await startGateway({ environment: { FENCEGATE_DRAIN_MS: '20000' } });
    const upload = new RawConnection(gateway.port);
    upload.send('PUT /v1/files/v/slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n');
    await upload.until(() => upload.received.includes('100 Continue'));
    upload.send('ab');
    const watching = connect(gateway.port, '127.0.0.1');
    watching.write('GET /v1/watch?volume=v HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await once(watching, 'data');
    const half = connect(gateway.port, '127.0.0.1');
    half.write('GET /v1/vol');
    const stopped = gateway.stop();
    const ready = await fetch(`${gateway.url}/readyz`);
    expect(ready.status).toBe(503);
    const refused = await fetch(`${gateway.url}/v1/files/v/new`, { method: 'PUT', body: 'x' });
    expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([503, 'draining']);
    upload.send('cd');
    expect(rawVerdict(await upload.answer())).toBe('201');
    await stopped;
    for (const socket of [watching, half, upload.socket]) socket.destroy();
  });

  it('does not wait for requests whose clients went away long before: an upload that was cut, an answer not read, a wait given up', async () => {
    gateway = await startGateway({ environment: { FENCEGATE_DRAIN_MS: '60000' } });
    writeFileSync(join(gateway.directory, 'v', 'large'), Buffer.alloc(64 * 1024 * 1024));
    const went = async (head: string, seen: (text: string) => boolean): Promise<void> => {
      const connection = new RawConnection(gateway.port);
      connection.send(head);
      await connection.until(() => seen(connection.received));
      connection.socket.resetAndDestroy();
    };
    const lease = await fetch(`${gateway.url}/v1/leases`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ resource: 'v/held' }),
    });
    expect(lease.status).toBe(201);
    await went('PUT /v1/files/v/cut HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n', (text) =>
      text.includes('100'),
    );
    await went('GET /v1/files/v/large HTTP/1.1\r\nHost: localhost\r\n\r\n', (text) => text.includes('200 OK'));
    const waiting = new RawConnection(gateway.port);
    waiting.send('PUT /v1/files/v/held HTTP/1.1\r\nHost: localhost\r\nX-Lock-Wait-Ms: 60000\r\nContent-Length: 1\r\n\r\nx');
    const queue = async (): Promise<number> =>
      ((await (await fetch(`${gateway.url}/v1/locks/v/held`)).json()) as { queue_length: number }).queue_length;
    await until(async () => ((await queue()) === 1 ? true : null));
    waiting.socket.resetAndDestroy();
    await until(async () => ((await queue()) === 0 ? true : null));
    const started = performance.now();
    await gateway.stop();
    // A minute is what it would wait for them.
    expect(performance.now() - started).toBeLessThan(30_000);
  });

  it('answers a write that stands in line for a lock with draining, not with a lock that somebody holds', async () => {
    gateway = await startGateway();
    const post = (body: object): Promise<Response> =>
      fetch(`${gateway.url}/v1/leases`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
    expect((await post({ resource: 'v/held' })).status).toBe(201);
    const waiting = fetch(`${gateway.url}/v1/files/v/held`, { method: 'PUT', body: 'x', headers: { 'x-lock-wait-ms': '60000' } });
    await until(async () => {
      const lock = (await (await fetch(`${gateway.url}/v1/locks/v/held`)).json()) as { queue_length: number };
      return lock.queue_length > 0 ? true : null;
    });
    const stopped = gateway.stop();
    const answer = await waiting;
    expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([503, 'draining']);
    await stopped;
  });
});

describe('a start', () => {
  it('I4: leaves a record of each lease that did not come back because its volume is gone', async () => {
    gateway = await startGateway();
    const { directory } = gateway;
    const lease = await fetch(`${gateway.url}/v1/leases`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ resource: 'v/gone', ttl_ms: 600_000 }),
    });
    const { lease_ref } = (await lease.json()) as { lease_ref: string };
    await gateway.stop();
    gateway = await startGateway({ directory, environment: { FENCEGATE_VOLUMES: 'other=' } });
    const audit = await fetch(`${gateway.url}/v1/audit?lease_ref=${lease_ref}&action=lease_lose`);
    const { records } = (await audit.json()) as { records: { path: string; fencing_token: string }[] };
    expect(records).toMatchObject([{ path: 'gone', fencing_token: '1' }]);
    await gateway.stop();
  });
});
