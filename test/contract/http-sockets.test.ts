import { execFile } from 'node:child_process';

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, expect, test } from 'vitest';
import { refuse } from '../../src/domain/errors.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { SystemClock } from '../../src/observability/system-clock.ts';
import { startHttp, type TestServer } from '../support/http-server.ts';

/** What only a real socket shows: who sends how much, when, and what the client gets to read. */

let server: TestServer;
afterEach(() => server.close());

const stale = () => refuse('stale_token', 'A newer token was granted.', { presented_token: '4102', newer_token_exists: true });
const real = { clock: new SystemClock() };
const start = (settings: Parameters<typeof startHttp>[0] = {}) => startHttp(settings, (deps) => Object.assign(deps, real));
const head = (line: string, ...headers: string[]) => `${[line, 'Host: localhost', ...headers].join('\r\n')}\r\n\r\n`;
const code = (body: string) => (JSON.parse(body) as { code: string }).code;

test('a stale writer that sends Expect uploads no byte: no 100 Continue before the refusal', async () => {
  server = await start();
  server.deps.writer.refusal = stale();
  const client = server.raw();
  client.send(head('PUT /v1/files/demo/a.txt HTTP/1.1', 'X-Fencing-Token: 4102', 'Expect: 100-continue', 'Content-Length: 52428800'));
  await client.until(() => client.received.includes('\r\n\r\n'));
  expect(client.received).not.toContain('100 Continue');
  const answer = await client.answer();
  expect(answer.status).toBe(412);
  expect(answer.headers['connection']).toBe('close');
  expect(JSON.parse(answer.body)).toMatchObject({ code: 'stale_token', presented_token: '4102', request_id: answer.headers['x-request-id'] });
});

test('an admitted writer that sends Expect gets 100 Continue when the body is opened, and not before', async () => {
  server = await start();
  let admit = (): void => undefined;
  server.deps.writer.onAdmitted = () =>
    new Promise<void>((resolve) => {
      admit = resolve;
    });
  const client = server.raw();
  client.send(head('PUT /v1/files/demo/a.txt HTTP/1.1', 'Expect: 100-continue', 'Content-Length: 5'));
  await expect.poll(() => admit.length === 0 && server.deps.writer.calls.length).toBe(0);
  await new Promise((resolve) => setImmediate(resolve));
  expect(client.received).toBe('');
  await expect
    .poll(() => {
      admit();
      return client.received;
    })
    .toContain('100 Continue');
  client.send('hello');
  expect((await client.answer()).status).toBe(201);
  expect(server.deps.writer.calls[0]?.bytes.toString()).toBe('hello');
});

test('a JSON request with Expect gets its 100 Continue too', async () => {
  server = await start();
  const client = server.raw();
  const body = JSON.stringify({ resource: 'demo/a.txt' });
  client.send(head('POST /v1/leases HTTP/1.1', 'Content-Type: application/json', 'Expect: 100-continue', `Content-Length: ${body.length}`));
  await client.until(() => client.received.includes('100 Continue'));
  client.send(body);
  expect((await client.answer()).status).toBe(201);
});

test('curl with Expect uploads 0 bytes when it is refused', async () => {
  server = await start();
  server.deps.writer.refusal = stale();
  const directory = await mkdtemp(join(tmpdir(), 'fencegate-http-'));
  try {
    const file = join(directory, 'big');
    await writeFile(file, Buffer.alloc(8_388_608));
    const { stdout } = await promisify(execFile)('curl', [
      '-s',
      '-o',
      join(directory, 'answer'),
      '-w',
      '%{http_code} %{size_upload}',
      '-H',
      'X-Fencing-Token: 4102',
      '-H',
      'Expect: 100-continue',
      '-T',
      file,
      `${server.url}/v1/files/demo/a.txt`,
    ]);
    expect(stdout).toBe('412 0');
  } finally {
    await rm(directory, { recursive: true });
  }
});

test('B33: a client that sends a large body without Expect reads the refusal, not a reset', async () => {
  server = await start();
  server.deps.writer.refusal = stale();
  const body = Buffer.alloc(20_971_520, 97);
  for (let i = 0; i < 10; i += 1) {
    const client = server.raw();
    client.send(head('PUT /v1/files/demo/a.txt HTTP/1.1', `Content-Length: ${body.byteLength}`));
    client.send(body);
    expect((await client.answer()).status).toBe(412);
    await client.until(() => client.ended);
    expect(client.error).toBeNull();
    client.close();
  }
});

test('a refused writer that goes on sending for ever is cut off at the drain limits', async () => {
  server = await start();
  server.deps.writer.refusal = stale();
  const client = server.raw();
  client.send(head('PUT /v1/files/demo/a.txt HTTP/1.1', 'Content-Length: 1000000000'));
  expect((await client.answer()).status).toBe(412);
  let closed = false;
  client.socket.on('close', () => {
    closed = true;
  });
  const before = Date.now();
  while (!closed && Date.now() - before < 3 * LIMITS.refusedBodyDrainMsMax) {
    client.send(Buffer.alloc(1_024));
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(closed).toBe(true);
});

test('a refused small body is dropped and the connection serves the next request', async () => {
  server = await start();
  server.deps.writer.refusal = stale();
  const client = server.raw();
  client.send(head('PUT /v1/files/demo/a.txt HTTP/1.1', 'Content-Length: 5'));
  expect((await client.answer()).headers['connection']).not.toBe('close');
  client.send(`hello${head('GET /healthz HTTP/1.1')}`);
  expect((await client.answer()).status).toBe(200);
});

test('an unknown expectation is 417', async () => {
  server = await start();
  const client = server.raw();
  client.send(head('PUT /v1/files/demo/a.txt HTTP/1.1', 'Expect: the-spanish-inquisition', 'Content-Length: 0'));
  const answer = await client.answer();
  expect([answer.status, code(answer.body)]).toEqual([417, 'expectation_failed']);
});

test('B1: a client that closes its side in the middle of a body is told incomplete_body', async () => {
  server = await start();
  const failures: unknown[] = [];
  server.deps.writer.onFailure = (error) => failures.push(error);
  const client = server.raw();
  client.send(`${head('PUT /v1/files/demo/a.txt HTTP/1.1', 'Content-Length: 100')}only this`);
  client.socket.end();
  const answer = await client.answer();
  expect([answer.status, code(answer.body)]).toEqual([400, 'incomplete_body']);
  expect(failures).toMatchObject([{ code: 'incomplete_body' }]);
  expect(server.deps.writer.calls).toEqual([]);
});

test('B1: a chunked body that ends without its last chunk is incomplete', async () => {
  server = await start();
  const client = server.raw();
  client.send(`${head('PUT /v1/files/demo/a.txt HTTP/1.1', 'Transfer-Encoding: chunked')}5\r\nhello\r\n`);
  client.socket.end();
  expect(code((await client.answer()).body)).toBe('incomplete_body');
});

test('B2: a connection that is reset in the middle of a body never reaches the end of the upload', async () => {
  server = await start();
  const failed = new Promise((resolve) => {
    server.deps.writer.onFailure = resolve;
  });
  const chunk = new Promise<void>((resolve) => {
    server.deps.writer.onChunk = () => resolve();
  });
  const client = server.raw();
  client.send(`${head('PUT /v1/files/demo/a.txt HTTP/1.1', 'Content-Length: 100')}only this`);
  await chunk;
  client.socket.resetAndDestroy();
  expect(await failed).toMatchObject({ code: 'incomplete_body' });
  expect(server.deps.writer.calls).toEqual([]);
});

test.each([
  ['a size that is no number', 'zz\r\n', /size of a chunk/],
  ['a size below zero', '-1\r\n', /size of a chunk/],
  ['words', 'this is no chunk size\r\n', /size of a chunk/],
  ['data longer than its size', '2\r\nmuch more\r\n', /chunks of the body/],
  ['endless extensions', `2;${'x'.repeat(20_000)}\r\nab\r\n`, /extensions/],
  ['a trailer that is no field', '0\r\nno field\r\n\r\n', /trailer section/],
])('broken chunk framing is invalid_request and says what is wrong: %s', async (_what, bytes, detail) => {
  server = await start();
  const failed = new Promise((resolve) => {
    server.deps.writer.onFailure = resolve;
  });
  const chunk = new Promise<void>((resolve) => {
    server.deps.writer.onChunk = () => resolve();
  });
  const client = server.raw();
  client.send(`${head('PUT /v1/files/demo/a.txt HTTP/1.1', 'Transfer-Encoding: chunked')}5\r\nhello\r\n`);
  await chunk;
  client.send(bytes);
  const answer = await client.answer();
  expect([answer.status, code(answer.body), answer.headers['connection']]).toEqual([400, 'invalid_request', 'close']);
  expect(JSON.parse(answer.body)).toMatchObject({ detail: expect.stringMatching(detail) });
  expect(await failed).toMatchObject({ code: 'invalid_request' });
  expect(server.deps.writer.calls).toEqual([]);
});

test.each([
  ['JSON', 'POST /v1/leases HTTP/1.1', 'Content-Type: application/json'],
  ['a form', 'POST /v1/files/demo/in/ HTTP/1.1', 'Content-Type: multipart/form-data; boundary=xyz'],
])('broken chunk framing of %s is told in the same words', async (_what, line, type) => {
  server = await start();
  const client = server.raw();
  client.send(`${head(line, type, 'Transfer-Encoding: chunked')}zz\r\n`);
  const answer = await client.answer();
  expect(JSON.parse(answer.body)).toMatchObject({ status: 400, code: 'invalid_request', detail: expect.stringMatching(/size of a chunk/) });
});

test('B14: a half-open upload ends by the idle limit', async () => {
  server = await startHttp({ uploadIdleMs: 5_000 });
  const chunk = new Promise<void>((resolve) => {
    server.deps.writer.onChunk = () => resolve();
  });
  const client = server.raw();
  client.send(`${head('PUT /v1/files/demo/a.txt HTTP/1.1', 'Content-Length: 100')}only this`);
  await chunk;
  const answer = client.answer();
  await new Promise((resolve) => setImmediate(resolve));
  await server.deps.clock.advanceAsync(5_001);
  expect(code((await answer).body)).toBe('upload_timeout');
});

test('an upload that dribbles below the least rate ends, though it is never idle', async () => {
  server = await startHttp({ uploadIdleMs: 5_000, uploadMinBytesPerSecond: 1_000 });
  let chunks = 0;
  server.deps.writer.onChunk = () => {
    chunks += 1;
  };
  const client = server.raw();
  client.send(head('PUT /v1/files/demo/a.txt HTTP/1.1', 'Content-Length: 1000000'));
  const answer = client.answer().then(({ body }) => code(body));
  let result = '';
  void answer.then((value) => {
    result = value;
  });
  for (let i = 1; i < 20 && result === ''; i += 1) {
    client.send('x');
    await expect.poll(() => result !== '' || chunks >= i).toBe(true);
    await new Promise((resolve) => setImmediate(resolve));
    await server.deps.clock.advanceAsync(2_000);
  }
  expect(await answer).toBe('upload_timeout');
  expect(chunks).toBeLessThan(10);
});

test('a JSON body that stops arriving ends by the idle limit', async () => {
  server = await startHttp({ uploadIdleMs: 5_000 });
  const client = server.raw();
  client.send(`${head('POST /v1/leases HTTP/1.1', 'Content-Type: application/json', 'Content-Length: 100')}{"resource"`);
  const answer = client.answer();
  let settled = false;
  void answer.then(() => {
    settled = true;
  });
  await expect
    .poll(async () => {
      await server.deps.clock.advanceAsync(5_001);
      return settled;
    })
    .toBe(true);
  expect(code((await answer).body)).toBe('upload_timeout');
});

test('a PUT with neither length nor chunks is 411 and never an empty file', async () => {
  server = await start();
  const client = server.raw();
  client.send(head('PUT /v1/files/demo/a.txt HTTP/1.1'));
  const answer = await client.answer();
  expect([answer.status, code(answer.body)]).toEqual([411, 'length_required']);
  expect(server.deps.writer.calls).toEqual([]);
});

test('a chunked PUT of nothing is an empty file', async () => {
  server = await start();
  const client = server.raw();
  client.send(`${head('PUT /v1/files/demo/a.txt HTTP/1.1', 'Transfer-Encoding: chunked')}0\r\n\r\n`);
  expect((await client.answer()).status).toBe(201);
  expect(server.deps.writer.calls[0]?.bytes.byteLength).toBe(0);
});

test('a declared length over the limit is 413 before a byte is asked for', async () => {
  server = await start({ bodyBytesMax: 10 });
  const client = server.raw();
  client.send(head('PUT /v1/files/demo/a.txt HTTP/1.1', 'Expect: 100-continue', 'Content-Length: 11'));
  const answer = await client.answer();
  expect([answer.status, code(answer.body)]).toEqual([413, 'body_too_large']);
  expect(client.received).not.toContain('100 Continue');
});

test('a chunked body over the limit is 413 while it arrives', async () => {
  server = await start({ bodyBytesMax: 10 });
  const client = server.raw();
  client.send(`${head('PUT /v1/files/demo/a.txt HTTP/1.1', 'Transfer-Encoding: chunked')}14\r\n${'x'.repeat(20)}\r\n0\r\n\r\n`);
  expect(code((await client.answer()).body)).toBe('body_too_large');
});

test.each([
  ['headers over the limit', head('GET /healthz HTTP/1.1', `X-Long: ${'x'.repeat(LIMITS.headerBytesMax)}`), 431, 'headers_too_large'],
  ['a URL over the limit', head(`GET /v1/files/demo/${'x'.repeat(LIMITS.uriBytesMax)} HTTP/1.1`), 414, 'uri_too_long'],
  ['a URL over the limit of the whole head', head(`GET /v1/files/demo/${'x'.repeat(2 * LIMITS.headerBytesMax)} HTTP/1.1`), 414, 'uri_too_long'],
  ['something that is not HTTP', 'hello there\r\n\r\n', 400, 'invalid_request'],
  ['both length and chunks', head('PUT /v1/files/demo/a HTTP/1.1', 'Content-Length: 5', 'Transfer-Encoding: chunked'), 400, 'invalid_request'],
  ['two lengths', head('PUT /v1/files/demo/a HTTP/1.1', 'Content-Length: 5', 'Content-Length: 6'), 400, 'invalid_request'],
  ['HTTP/1.1 without Host', 'GET /healthz HTTP/1.1\r\n\r\n', 400, 'invalid_request'],
  ['a foreign host', 'GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n', 421, 'wrong_host'],
])('%s is refused in the one form', async (_what, request, status, expected) => {
  server = await start();
  const client = server.raw();
  client.send(request);
  const answer = await client.answer();
  expect([answer.status, code(answer.body)]).toEqual([status, expected]);
  expect(answer.headers['content-type']).toBe('application/problem+json');
  expect(answer.headers['x-request-id']).toBe((JSON.parse(answer.body) as { request_id: string }).request_id);
});

test.each([
  '/v1/files/demo/../etc/passwd',
  '/v1/files/demo/%2e%2e/etc/passwd',
  '/v1/files/demo/..%2f..%2fetc',
  '/v1/files/demo/a%2Fb',
  '/v1/files/demo/a%00b',
  '/v1/files/demo/a%5cb',
  '/v1/files/demo/a\\b',
  '/v1/files/demo//a',
  '/v1/files/demo/./a',
  '/v1/files/demo/a//',
  '/v1/files/demo/%ff',
  '/v1/files/demo/%zz',
  '/v1/files/demo/%c0%ae%c0%ae/a',
  '/v1/files/demo/a%0ab',
  `/v1/files/demo/${'x'.repeat(256)}`,
  '/v1/files/demo/.fencegate/owner',
  '/v1/files/demo/d/.nfs0001',
  '/v1/files/demo/a#b',
])('B15, B30: PUT %s is 400 and nothing is touched', async (path) => {
  server = await start();
  const client = server.raw();
  client.send(head(`PUT ${path} HTTP/1.1`, 'Content-Length: 0'));
  const answer = await client.answer();
  expect([answer.status, code(answer.body)]).toEqual([400, 'invalid_path']);
  expect(server.deps.writer.calls).toEqual([]);
  expect(server.deps.refusals.early.concat(server.deps.refusals.durable)).toMatchObject([{ outcome: 'rejected', code: 'invalid_path' }]);
});

test('a plus sign is a plus sign, and an absolute-form target is understood', async () => {
  server = await start();
  const client = server.raw();
  client.send(head('PUT http://localhost/v1/files/demo/a+b%20c HTTP/1.1', 'Content-Length: 0'));
  expect((await client.answer()).status).toBe(201);
  expect(server.deps.writer.calls[0]?.resource?.path).toBe('a+b c');
});

test('a client that disconnects before the answer to its POST aborts the wait', async () => {
  server = await start();
  const aborted = new Promise<unknown>((resolve) => {
    server.deps.locks.acquireWait = (signal) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          resolve(signal.reason);
          reject(signal.reason);
        });
        client.close();
      });
  });
  const client = server.raw();
  const body = JSON.stringify({ resource: 'demo/a.txt', wait_ms: 60_000 });
  client.send(`${head('POST /v1/leases HTTP/1.1', 'Content-Type: application/json', `Content-Length: ${body.length}`)}${body}`);
  expect(await aborted).toMatchObject({ code: 'incomplete_body' });
});

test('the abort signal of a write does not fire when its body has been read', async () => {
  server = await start();
  const client = server.raw();
  client.send(`${head('PUT /v1/files/demo/a.txt HTTP/1.1', 'Content-Length: 5')}hello`);
  expect((await client.answer()).status).toBe(201);
  expect(server.deps.writer.calls[0]?.envelope.signal.aborted).toBe(false);
});

test('the end of draining aborts a running upload with its own code', async () => {
  server = await start();
  const chunk = new Promise<void>((resolve) => {
    server.deps.writer.onChunk = () => resolve();
  });
  const client = server.raw();
  client.send(`${head('PUT /v1/files/demo/a.txt HTTP/1.1', 'Content-Length: 100')}only this`);
  await chunk;
  server.deps.deadlineController.abort(refuse('draining', 'The gateway is stopping.'));
  const answer = await client.answer();
  expect([answer.status, code(answer.body)]).toEqual([503, 'draining']);
});
