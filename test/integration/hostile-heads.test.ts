import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { GatewayClient, jsonOf } from '../support/gateway-client.ts';
import { removeDirectory } from '../support/gateway-settings.ts';
import { RawConnection } from '../support/raw-http.ts';
import { ask, rawVerdict } from '../support/raw-request.ts';
import { until } from '../support/until.ts';

/** Heads of requests that a library would not send: nothing in them may make a condition, a token or a length disappear. */

let gateway: TestGateway;
const open: RawConnection[] = [];

beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(async () => {
  for (const { socket } of open) socket.destroy();
  await gateway.stop();
  await removeDirectory(gateway.directory);
});

function connection(): RawConnection {
  const made = new RawConnection(gateway.port);
  open.push(made);
  return made;
}

const request = (lines: readonly string[], body: string | Buffer = ''): Buffer =>
  Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), Buffer.from(body)]);

async function verdict(lines: readonly string[], body: string | Buffer = ''): Promise<string> {
  return rawVerdict(await ask(connection(), request(lines, body)));
}

describe('hostile heads', () => {
  it('a condition behind a thousand other fields still counts', async () => {
    const put = (...more: string[]): string[] => ['PUT /v1/files/v/many HTTP/1.1', 'Host: localhost', 'Content-Length: 1', ...more];
    expect(await verdict(put(), 'x')).toBe('201');
    const filler = Array.from({ length: 1_500 }, () => 'a:1');
    expect(await verdict(put(...filler, 'If-None-Match: *'), 'y')).toBe('412 precondition_failed');
    expect(await verdict(put(...filler, 'X-Fencing-Token: 999'), 'y')).toBe('403 token_not_issued');
    expect(await verdict(put(...filler, 'Origin: http://evil.example'), 'y')).toBe('403 cross_origin');
  });

  it.each([
    ['a coding beside chunked', ['Transfer-Encoding: gzip, chunked']],
    ['a coding in a second field', ['Transfer-Encoding: identity', 'Transfer-Encoding: chunked']],
  ])('%s is refused and nothing is stored', async (_name, coding) => {
    const lines = ['PUT /v1/files/v/coded HTTP/1.1', 'Host: localhost', ...coding];
    expect(await verdict(lines, '1\r\nx\r\n0\r\n\r\n')).toMatch(/^400 /);
    expect(readdirSync(gateway.volume)).not.toContain('coded');
  });

  it('two Host fields are refused', async () => {
    expect(await verdict(['GET /v1/volumes HTTP/1.1', 'Host: localhost', 'Host: evil.example'])).toBe('400 invalid_request');
  });

  it('CONNECT is no way through: a problem document and the end of the connection', async () => {
    const answer = await ask(connection(), request(['CONNECT evil.example:443 HTTP/1.1', 'Host: evil.example:443']));
    expect([rawVerdict(answer), answer.headers['allow'], answer.headers['connection']]).toEqual([
      '405 method_not_allowed',
      'GET, HEAD, PUT, PATCH, POST, DELETE, OPTIONS',
      'close',
    ]);
    expect(answer.headers['x-request-id']).toBeDefined();
  });

  it.each(['GET ftp://x/..', 'GET *'])('%s is answered with a problem document', async (line) => {
    const answer = await ask(connection(), request([`${line} HTTP/1.1`, 'Host: localhost']));
    expect(rawVerdict(answer)).toBe('400 invalid_path');
    expect(answer.headers['x-request-id']).toBeDefined();
  });

  it('a body that is not UTF-8 names no file', async () => {
    await verdict(['PUT /v1/files/v/source HTTP/1.1', 'Host: localhost', 'Content-Length: 1'], 'x');
    const body = Buffer.concat([Buffer.from('{"from":"v/source","to":"v/'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]);
    const head = ['POST /v1/copies HTTP/1.1', 'Host: localhost', `Content-Length: ${body.length}`];
    expect(await verdict([...head, 'Content-Type: application/json'], body)).toBe('400 invalid_request');
    expect(await verdict([...head, 'Content-Type: application/json; charset=utf-16'], body)).toBe('415 unsupported_media_type');
  });

  it('C1 control characters are no part of a name', async () => {
    expect(await verdict(['PUT /v1/files/v/a%C2%85b HTTP/1.1', 'Host: localhost', 'Content-Length: 1'], 'x')).toBe('400 invalid_path');
  });

  it('requests that are sent without waiting are carried out in the order in which they came', async () => {
    const one = connection();
    const put = request(['PUT /v1/files/v/order HTTP/1.1', 'Host: localhost', 'Content-Length: 3'], 'new');
    const get = request(['GET /v1/files/v/order HTTP/1.1', 'Host: localhost']);
    const remove = request(['DELETE /v1/files/v/order HTTP/1.1', 'Host: localhost']);
    one.send(Buffer.concat([put, get, remove]));
    expect(rawVerdict(await one.answer())).toBe('201');
    const read = await one.answer();
    expect([read.status, read.body]).toEqual([200, 'new']);
    expect(rawVerdict(await one.answer())).toBe('204');
    expect(readdirSync(gateway.volume)).not.toContain('order');
  });

  it.each([
    ['surplus bytes in the same packet', 'abcdefg\r\n\r\n', '', '400 invalid_request'],
    ['surplus bytes a moment later', 'abc', 'defg\r\n\r\n', '400 invalid_request'],
    ['a request that is not HTTP', 'abc', 'NONSENSE\r\n\r\n', '400 invalid_request'],
    ['a tunnel', 'abc', 'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n', '405 method_not_allowed'],
  ])('B1: a write that came whole gets its own answer first, whatever comes behind it: %s', async (name, body, later, refusal) => {
    const path = `v/behind-${name.replaceAll(' ', '-')}`;
    const client = new GatewayClient(gateway.url);
    onTestFinished(() => client.close());
    // While somebody holds the lock the write waits, so that what comes behind it comes before its answer.
    const { lease_id } = await client.lease(path);
    const one = connection();
    one.send(request([`PUT /v1/files/${path} HTTP/1.1`, 'Host: localhost', 'Content-Length: 3', 'X-Lock-Wait-Ms: 60000'], body));
    await until(async () => (jsonOf<{ queue_length: number }>(await client.send('GET', `/v1/locks/${path}`)).queue_length === 1 ? true : null));
    if (later !== '') one.send(later);
    await until(async () => (one.socket.bytesWritten > 0 && one.socket.writableLength === 0 ? true : null));
    await client.send('DELETE', `/v1/leases/${lease_id}`);
    const written = await one.answer();
    expect([rawVerdict(written), written.headers['x-operation-id']]).toEqual(['201', expect.any(String)]);
    expect(rawVerdict(await one.answer())).toBe(refusal);
    await one.until(() => one.ended);
    expect(readFileSync(join(gateway.volume, path.slice(2)), 'utf8')).toBe('abc');
  });

  it('a time to live of any number is refused with the bounds', async () => {
    for (const ttl of ['-1', '0', '99999999999']) {
      const body = `{"resource":"v/x","ttl_ms":${ttl}}`;
      const answer = await ask(
        connection(),
        request(['POST /v1/leases HTTP/1.1', 'Host: localhost', 'Content-Type: application/json', `Content-Length: ${body.length}`], body),
      );
      expect(JSON.parse(answer.body)).toMatchObject({ code: 'ttl_out_of_range', min_ms: 1_000, max_ms: 3_600_000 });
    }
  });

  it('a value of the wrong type is told what was expected', async () => {
    const body = '{"resource":"v/x","ttl_ms":"soon","mode":"both"}';
    const answer = await ask(
      connection(),
      request(['POST /v1/leases HTTP/1.1', 'Host: localhost', 'Content-Type: application/json', `Content-Length: ${body.length}`], body),
    );
    expect(answer.body).toContain('Expected integer');
    expect(answer.body).toContain('Expected one of exclusive, shared');
  });
});
