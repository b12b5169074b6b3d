import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { removeDirectory, startGateway, type TestGateway } from '../support/gateway.ts';
import { RawConnection } from '../support/raw-http.ts';
import { rawVerdict } from '../support/raw-request.ts';

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
});
