import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startHttp, type TestServer } from '../support/http-server.ts';

/** What the headers of a write mean, and which of them are refused for their form. */

let server: TestServer;
beforeAll(async () => {
  server = await startHttp();
});
afterAll(() => server.close());
beforeEach(() => {
  Object.assign(server.deps.writer, { answer: null, refusal: null });
  server.deps.writer.calls.length = 0;
});

async function send(
  line: string,
  headers: readonly string[],
  body = '',
): Promise<{ status: number; code: string | null; headers: Readonly<Record<string, string>> }> {
  const client = server.raw();
  client.send(
    `${line} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${headers.map((header) => `${header}\r\n`).join('')}\r\n${body}`,
  );
  const answer = await client.answer();
  client.close();
  return { status: answer.status, headers: answer.headers, code: answer.status < 400 ? null : (JSON.parse(answer.body) as { code: string }).code };
}
const put = (...headers: string[]) => send('PUT /v1/files/demo/a.txt', headers, 'hello');
const envelope = () => server.deps.writer.calls.at(-1)?.envelope;
const SHA256 = 'sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:';

test('the defaults of an envelope', async () => {
  await put();
  expect(envelope()).toMatchObject({
    presentedToken: null,
    leaseId: null,
    waitMs: 5_000,
    keepAlive: false,
    ifMatch: null,
    ifNoneMatch: null,
    ifUnmodifiedSinceS: null,
    digests: { content: {}, representation: {} },
    idempotency: null,
  });
});

test('every header reaches the writer', async () => {
  await put(
    'X-Fencing-Token: 4103',
    'X-Lease-Id: lease',
    'X-Client-Id: b\u00e4tch',
    'X-Lock-Wait-Ms: 0',
    'X-Lease-Keepalive: true',
    'If-Match: "a", W/"b"',
    'If-None-Match: *',
    `Content-Digest: ${SHA256}`,
    `Repr-Digest: unknown=:AAAA:, ${SHA256}`,
    'Idempotency-Key: "k 1"'.replace(' 1', '-1'),
  );
  const hex = '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824';
  expect(envelope()).toMatchObject({
    presentedToken: '4103',
    leaseId: 'lease',
    waitMs: 0,
    keepAlive: true,
    ifMatch: ['"a"', 'W/"b"'],
    ifNoneMatch: '*',
    digests: { content: { sha256: hex }, representation: { sha256: hex } },
    idempotency: { key: 'k-1', method: 'PUT', path: 'demo/a.txt' },
    caller: { clientId: 'bätch', remoteAddress: '127.0.0.1' },
  });
});

test.each([
  ['X-Fencing-Token:'],
  ['X-Fencing-Token: 5', 'X-Fencing-Token: 9'],
  ['X-Fencing-Token: 5', 'x-fencing-token: 5'],
  [`X-Fencing-Token: ${'9'.repeat(2_000)}`],
])('%s %s is 400 invalid_token', async (...headers) => {
  expect(await put(...headers)).toMatchObject({ status: 400, code: 'invalid_token' });
  expect(server.deps.writer.calls).toEqual([]);
});

test.each([
  ['X-Lease-Id:'],
  ['X-Lease-Id: a', 'X-Lease-Id: b'],
  ['X-Lock-Wait-Ms: 60001'],
  ['X-Lock-Wait-Ms: -1'],
  ['X-Lock-Wait-Ms: 5e3'],
  ['X-Lock-Wait-Ms: 05'],
  ['X-Lease-Keepalive: yes'],
  ['If-Match: v1'],
  ['If-Match: "a" "b"'],
  ['If-Match:'],
  ['If-None-Match: *, "a"'],
  ['Content-Digest: sha-256=abc'],
  ['Content-Digest: sha-256=:AAAA:'],
  ['Repr-Digest: ;;'],
  ['Repr-Digest: sha-256'],
  ['Idempotency-Key: "open'],
  ['Idempotency-Key: two words'],
  [`Idempotency-Key: ${'k'.repeat(256)}`],
  ['Idempotency-Key: a', 'Idempotency-Key: b'],
  ['Idempotency-Key: ""'],
  ['X-Lease-Id: a', 'X-Lease-Id: a'],
  ['X-Client-Id: a', 'X-Client-Id: b'],
  ['X-Lock-Wait-Ms: 0', 'X-Lock-Wait-Ms: 0'],
  ['X-Lease-Keepalive: true', 'X-Lease-Keepalive: true'],
  ['Authorization: Bearer one', 'Authorization: Bearer two'],
  ['authorization: Bearer one', 'AUTHORIZATION: Bearer one'],
  ['Content-Type: text/plain', 'Content-Type: text/html'],
  ['If-Unmodified-Since: Thu, 01 Jan 2026 00:00:00 GMT', 'If-Unmodified-Since: Fri, 01 Jan 2100 00:00:00 GMT'],
  ['Sec-Fetch-Site: same-origin', 'Sec-Fetch-Site: cross-site'],
  ['Content-Range: bytes 0-4/5'],
  [`X-Client-Id: ${'c'.repeat(257)}`],
  ['X-Client-Id: \u00ff\u00fe'],
])('%s is 400 invalid_request', async (...headers) => {
  const client = server.raw();
  client.send(
    Buffer.from(
      `PUT /v1/files/demo/a.txt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n${headers.map((header) => `${header}\r\n`).join('')}\r\nhello`,
      'latin1',
    ),
  );
  const answer = await client.answer();
  expect([answer.status, (JSON.parse(answer.body) as { code: string }).code]).toEqual([400, 'invalid_request']);
  expect(server.deps.writer.calls).toEqual([]);
});

test('fields that are lists may come in several lines, and every one of them counts', async () => {
  const [sha256, sha512] = [SHA256, `sha-512=:${Buffer.alloc(64, 1).toString('base64')}:`];
  await put(
    'If-Match: "a"',
    'If-Match: "b", "c"',
    'If-None-Match: "d"',
    'If-None-Match: "e"',
    `Content-Digest: ${sha256}`,
    `Content-Digest: ${sha512}`,
  );
  expect(envelope()).toMatchObject({
    ifMatch: ['"a"', '"b"', '"c"'],
    ifNoneMatch: ['"d"', '"e"'],
    digests: { content: { sha256: expect.any(String), sha512: '01'.repeat(64) } },
  });
});

test('of a read, too, a field that has one value is refused when it comes twice', async () => {
  for (const field of ['Range: bytes=0-0', 'If-Range: "a"', 'If-Modified-Since: Thu, 01 Jan 2026 00:00:00 GMT', 'Authorization: Bearer a'])
    expect(await send('GET /v1/files/demo/a.txt', [field, field])).toMatchObject({ status: 400, code: 'invalid_request' });
  expect(await send('GET /v1/watch/demo/a.txt', ['Last-Event-ID: 1', 'Last-Event-ID: 2'])).toMatchObject({ status: 400, code: 'invalid_request' });
});

test.each([
  [['Idempotency-Key: abc'], 'abc'],
  [['Idempotency-Key: "abc"'], 'abc'],
  [['Idempotency-Key: 8e03978e-40d5-43e8-bc93-6894a57f9324'], '8e03978e-40d5-43e8-bc93-6894a57f9324'],
  [['Idempotency-Key: "a\\"b"'], 'a"b'],
])('%j is the key %s', async (headers, key) => {
  await put(...headers);
  expect(envelope()?.idempotency?.key).toBe(key);
});

test('a fingerprint tells requests apart by length, digest, conditions and range, not by token', async () => {
  const of = async (...headers: string[]) => {
    await put('Idempotency-Key: k', ...headers);
    return envelope()?.idempotency?.fingerprint;
  };
  const plain = await of();
  expect(await of('X-Fencing-Token: 9')).toBe(plain);
  expect(await of()).toBe(plain);
  expect(
    new Set([
      plain,
      await of('If-Match: "a"'),
      await of('If-None-Match: *'),
      await of(`Content-Digest: ${SHA256}`),
      await of(`Repr-Digest: ${SHA256}`),
    ]).size,
  ).toBe(5);
  await send('PUT /v1/files/demo/a.txt', ['Idempotency-Key: k'], 'longer than hello');
  expect(envelope()?.idempotency?.fingerprint).not.toBe(plain);
});

test('the fingerprint of a JSON request is of its body', async () => {
  const of = async (body: object) => {
    await send('POST /v1/copies', ['Content-Type: application/json', 'Idempotency-Key: k'], JSON.stringify(body));
    return envelope()?.idempotency?.fingerprint;
  };
  expect(await of({ from: 'demo/a', to: 'demo/b' })).toBe(await of({ from: 'demo/a', to: 'demo/b' }));
  expect(await of({ from: 'demo/a', to: 'demo/b' })).not.toBe(await of({ from: 'demo/a', to: 'demo/c' }));
});

test('a stored answer is sent as it was, and says that it is one', async () => {
  server.deps.writer.answer = { status: 204, headers: { 'X-Operation-Id': 'op_old' }, body: null, replayed: true };
  const answer = await send('DELETE /v1/files/demo/a.txt', ['Idempotency-Key: k']);
  expect([answer.status, answer.headers['idempotency-replayed'], answer.headers['x-operation-id']]).toEqual([204, 'true', 'op_old']);
});

test.each([
  ['append', { kind: 'append' }],
  ['bytes=0-4', { kind: 'bytes', start: 0, end: 4 }],
  ['bytes=10-', { kind: 'bytes', start: 10, end: null }],
])('X-Update-Range: %s', async (range, target) => {
  await send(
    'PATCH /v1/files/demo/a.txt',
    [`X-Update-Range: ${range}`, 'Upload-Offset: 10', 'Content-Type: application/x-sabredav-partialupdate'],
    'hello',
  );
  expect(server.deps.writer.calls.at(-1)?.extra).toEqual({ target, offset: 10 });
});

test.each([
  [[], 'invalid_request', 400],
  [['X-Update-Range: bytes=-5'], 'invalid_request', 400],
  [['X-Update-Range: bytes=5-4'], 'invalid_request', 400],
  [['X-Update-Range: bytes=0-1,3-4'], 'invalid_request', 400],
  [['X-Update-Range: append', 'X-Update-Range: append'], 'invalid_request', 400],
  [['X-Update-Range: append', 'Upload-Offset: -1'], 'invalid_request', 400],
  [['X-Update-Range: append', 'Content-Type: text/plain'], 'unsupported_media_type', 415],
  [['X-Update-Range: append', 'Content-Encoding: gzip'], 'unsupported_media_type', 415],
] as const)('PATCH with %j is %s', async (headers, code, status) => {
  expect(await send('PATCH /v1/files/demo/a.txt', headers, 'hello')).toMatchObject({ status, code });
  expect(server.deps.writer.calls).toEqual([]);
});

const JSON_REQUESTS = [
  ['POST /v1/copies', '{"from":"demo/a","to":"demo/b"}'],
  ['POST /v1/moves', '{"from":"demo/a","to":"demo/b"}'],
  ['POST /v1/leases', '{"resource":"demo/a"}'],
  ['POST /v1/leases/secret/renew', '{"ttl_ms":5000}'],
  ['POST /v1/leases/secret/convert', '{"mode":"shared"}'],
  ['POST /v1/sessions', '{}'],
  ['POST /v1/sessions/heartbeats', '{"session_ids":["s"]}'],
  ['POST /v1/admin/locks/break', '{"resource":"demo/a","reason":"stuck"}'],
  ['POST /v1/admin/fences/rebase', '{"reason":"restored"}'],
] as const;
const digestOf = (content: string, algorithm = 'sha256') =>
  `${algorithm.replace('sha', 'sha-')}=:${createHash(algorithm).update(content).digest('base64')}:`;

test.each(JSON_REQUESTS)('%s: both digest fields are of its JSON', async (line, body) => {
  for (const field of ['Content-Digest', 'Repr-Digest']) {
    const announcing = (value: string) => send(line, ['Content-Type: application/json', `${field}: ${value}`], body);
    expect((await announcing(`${digestOf(body)}, ${digestOf(body, 'sha512')}, unixsum=30637`)).status).toBeLessThan(300);
    server.deps.writer.calls.length = 0;
    for (const wrong of [digestOf(`${body} `), digestOf(body, 'sha512').replace(/:.{4}/, ':AAAA'), `${digestOf(body)}, ${digestOf('', 'sha512')}`])
      expect(await announcing(wrong)).toMatchObject({ status: 400, code: 'digest_mismatch' });
    expect(await announcing('sha-256=abc')).toMatchObject({ status: 400, code: 'invalid_request' });
    expect(server.deps.writer.calls).toEqual([]);
  }
});

test.each([
  'DELETE /v1/files/demo/a.txt',
  'DELETE /v1/files/demo/d/',
  'PUT /v1/files/demo/d/',
  'POST /v1/leases/secret/renew',
  'DELETE /v1/leases/secret',
  'DELETE /v1/sessions/secret',
])('%s has no content, and a digest of any other is not taken', async (line) => {
  for (const field of ['Content-Digest', 'Repr-Digest']) {
    expect((await send(line, [`${field}: ${digestOf('')}`])).status).toBeLessThan(300);
    expect(await send(line, [`${field}: ${digestOf('x')}`])).toMatchObject({ status: 400, code: 'digest_mismatch' });
  }
});

test('a body where none is read cannot have its digest judged', async () => {
  expect(await send('DELETE /v1/files/demo/a.txt', [`Content-Digest: ${digestOf('x')}`], 'x')).toMatchObject({
    status: 400,
    code: 'invalid_request',
  });
  expect(server.deps.writer.calls).toEqual([]);
});

test.each(JSON_REQUESTS)('%s refuses a coded body as a file would be refused, and takes identity', async (line, body) => {
  const sent = (coding: string) => send(line, ['Content-Type: application/json', `Content-Encoding: ${coding}`], body);
  for (const coding of ['gzip', 'br', 'identity, gzip']) expect(await sent(coding)).toMatchObject({ status: 415, code: 'unsupported_media_type' });
  expect((await sent('identity')).status).toBeLessThan(300);
});

test('a request without a body has nothing that could be coded', async () => {
  expect((await send('POST /v1/leases/secret/renew', ['Content-Encoding: gzip'])).status).toBe(200);
});

test('a coded body is 415, identity is not', async () => {
  expect(await put('Content-Encoding: gzip')).toMatchObject({ status: 415, code: 'unsupported_media_type' });
  expect((await put('Content-Encoding: identity')).status).toBe(201);
});

test('directories: PUT and DELETE with a trailing slash; a body, and the root, are refused', async () => {
  expect((await send('PUT /v1/files/demo/d/e/', [])).status).toBe(201);
  expect(server.deps.writer.calls.at(-1)).toMatchObject({ verb: 'makeDirectory', resource: { name: 'demo/d/e' } });
  expect((await send('DELETE /v1/files/demo/d/e/', [])).status).toBe(204);
  expect(await send('PUT /v1/files/demo/d/', [], 'bytes')).toMatchObject({ code: 'invalid_request' });
  expect(await send('PUT /v1/files/demo/', [])).toMatchObject({ code: 'invalid_path' });
  expect(await send('DELETE /v1/files/demo/', [])).toMatchObject({ code: 'invalid_path' });
});

test('moves and copies carry both names and tokens', async () => {
  const body = JSON.stringify({ from: 'demo/a', to: 'other/b', overwrite: true, from_token: '7', to_token: '8' });
  expect((await send('POST /v1/moves', ['Content-Type: application/json'], body)).status).toBe(201);
  expect(server.deps.writer.calls.at(-1)).toMatchObject({
    verb: 'moveFile',
    extra: { from: { name: 'demo/a' }, to: { name: 'other/b' }, overwrite: true, fromToken: '7', toToken: '8' },
  });
  expect(await send('POST /v1/moves', ['Content-Type: application/json'], JSON.stringify({ from: 'demo/.nfs1', to: 'demo/b' }))).toMatchObject({
    code: 'invalid_path',
  });
  expect(await send('POST /v1/copies', ['Content-Type: application/json'], JSON.stringify({ from: 'demo/.nfs1', to: 'demo/b' }))).toMatchObject({
    code: 'not_found',
  });
  expect(await send('POST /v1/moves', ['Content-Type: application/json'], JSON.stringify({ from: 'demo/a' }))).toMatchObject({
    code: 'invalid_request',
  });
});
