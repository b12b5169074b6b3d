import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, type Headers, jsonOf, textOf, verdictOf } from '../support/gateway-client.ts';
import { ask, head, rawVerdict } from '../support/raw-request.ts';
import { bearerOf, principalsFile, startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** `Idempotency-Key`: a retry gets the first answer, and the write happens once. */

let gateway: VolumesGateway;
let keys = 0;
beforeAll(async () => {
  gateway = await startVolumes();
});
afterAll(() => gateway.stop());

const newKey = (): { 'idempotency-key': string } => {
  keys += 1;
  return { 'idempotency-key': `"key-${keys}"` };
};
const at = (name: string): string => readFileSync(gateway.path(name), 'utf8');
const REPLAYED = { 'idempotency-replayed': 'true' };

describe('a retry with the same key', () => {
  it('of an append gets the stored answer, and the bytes are there once', async () => {
    const key = newKey();
    const first = await gateway.client.patch('v/log', 'append', 'line;', key);
    const again = await gateway.client.patch('v/log', 'append', 'line;', key);
    expect([first.status, again.status, at('v/log')]).toEqual([201, 201, 'line;']);
    expect(textOf(again)).toBe(textOf(first));
    expect(first.headers).not.toHaveProperty('idempotency-replayed');
    expect(again.headers).toMatchObject({
      ...REPLAYED,
      etag: first.headers['etag'],
      'x-fencing-token': first.headers['x-fencing-token'],
      'x-operation-id': first.headers['x-operation-id'],
    });
    expect(await gateway.client.audit({ path: 'log', action: 'append' })).toHaveLength(1);
  });

  it('of every other verb, too', async () => {
    const { client } = gateway;
    await client.put('v/verbs/a', 'a');
    await client.put('v/verbs/b', 'b');
    const form = {
      headers: { 'content-type': 'multipart/form-data; boundary=b' },
      body: '--b\r\nContent-Disposition: form-data; name="f"; filename="up"\r\n\r\nx\r\n--b--\r\n',
    };
    const verbs: (readonly [string, (headers: Headers) => ReturnType<typeof client.put>])[] = [
      ['put', (headers) => client.put('v/verbs/put', 'x', headers)],
      ['patch', (headers) => client.patch('v/verbs/a', 'bytes=0-0', 'x', headers)],
      ['delete', (headers) => client.delete('v/verbs/b', headers)],
      ['mkdir', (headers) => client.put('v/verbs/d/', '', headers)],
      ['rmdir', (headers) => client.delete('v/verbs/d/', headers)],
      ['move', (headers) => client.post('/v1/moves', { from: 'v/verbs/a', to: 'v/verbs/moved' }, headers)],
      ['copy', (headers) => client.post('/v1/copies', { from: 'v/verbs/moved', to: 'v/verbs/copied' }, headers)],
      ['upload', (headers) => client.send('POST', '/v1/files/v/verbs/', { ...form, headers: { ...form.headers, ...headers } })],
    ];
    for (const [verb, run] of verbs) {
      const key = newKey();
      const [first, again] = [await run(key), await run(key)];
      expect([verb, again.status, again.headers['idempotency-replayed'], textOf(again)]).toEqual([verb, first.status, 'true', textOf(first)]);
      expect(first.status).toBeLessThan(300);
    }
  });

  it('is answered before the body is asked for', async () => {
    const key = 'Idempotency-Key: "early"';
    const request = head('PUT /v1/files/v/early', key, 'Expect: 100-continue', 'Content-Length: 5');
    const first = gateway.raw();
    first.send(request);
    await first.until(() => first.received.includes('100 Continue'));
    first.send('hello');
    expect((await first.answer()).status).toBe(201);
    const again = gateway.raw();
    again.send(request);
    await again.until(() => again.received.includes('\r\n\r\n'));
    expect(again.received).not.toContain('100 Continue');
    const { status, headers } = await again.answer();
    expect([status, headers['idempotency-replayed']]).toEqual([201, 'true']);
  });

  it('still learns what its first try did after its token went stale', async () => {
    const { client } = gateway;
    const held = await client.lease('v/fenced');
    const headers = { ...newKey(), 'x-fencing-token': held.fencing_token };
    expect((await client.put('v/fenced', 'mine', headers)).status).toBe(201);
    await client.release(held);
    await client.put('v/fenced', 'theirs');
    const again = await client.put('v/fenced', 'mine', headers);
    expect([again.status, again.headers['idempotency-replayed'], at('v/fenced')]).toEqual([201, 'true', 'theirs']);
    expect(verdictOf(await client.put('v/fenced', 'mine', { ...headers, ...newKey() }))).toBe('412 stale_token');
    const renewed = await client.lease('v/fenced');
    expect((await client.put('v/fenced', 'mine', { ...headers, 'x-fencing-token': renewed.fencing_token })).headers).toMatchObject(REPLAYED);
  });

  it('survives a restart, and is found by GET /v1/operations', async () => {
    const key = newKey();
    const first = await gateway.client.patch('v/restart', 'append', 'once', key);
    const { directory } = gateway;
    await gateway.halt();
    gateway = await startVolumes({ directory });
    const again = await gateway.client.patch('v/restart', 'append', 'once', key);
    expect([again.headers['idempotency-replayed'], textOf(again), at('v/restart')]).toEqual(['true', textOf(first), 'once']);
    const operation = jsonOf(await gateway.client.send('GET', '/v1/operations', { query: { idempotency_key: `key-${keys}` } }));
    expect(operation).toEqual({
      operation_id: first.headers['x-operation-id'],
      action: 'append',
      resource: 'v/restart',
      outcome: 'committed',
      code: null,
      at: expect.stringMatching(/Z$/),
      etag: first.headers['etag'],
      fencing_token: first.headers['x-fencing-token'],
    });
    expect(jsonOf(await gateway.client.send('GET', '/v1/operations', { query: { idempotency_key: `"key-${keys}"` } }))).toEqual(operation);
    for (const query of [`/${first.headers['x-operation-id']}`, `?request_id=${encodeURIComponent(first.headers['x-request-id'] ?? '')}`])
      expect(jsonOf(await gateway.client.send('GET', `/v1/operations${query}`))).toEqual(operation);
    for (const query of ['', '?idempotency_key=a&request_id=b', '?other=1'])
      expect(verdictOf(await gateway.client.send('GET', `/v1/operations${query}`))).toBe('400 invalid_request');
  });
});

describe('another request with the same key', () => {
  it('is 422: another length, digest, condition, range, offset or JSON body', async () => {
    const { client } = gateway;
    const digest = (byte: number): string => `sha-256=:${Buffer.alloc(32, byte).toString('base64')}:`;
    const key = newKey();
    await client.put('v/other', 'x', key);
    for (const [body, headers] of [
      ['xx', {}],
      ['x', { 'if-match': '"a"' }],
      ['x', { 'if-none-match': '*' }],
      ['x', { 'content-digest': digest(1) }],
      ['x', { 'repr-digest': digest(2) }],
    ] as const) {
      expect(verdictOf(await client.put('v/other', body, { ...key, ...headers }))).toBe('422 idempotency_key_reused');
    }
    const patched = newKey();
    await client.patch('v/other', 'bytes=0-0', 'y', patched);
    expect(verdictOf(await client.patch('v/other', 'append', 'y', patched))).toBe('422 idempotency_key_reused');
    expect(verdictOf(await client.patch('v/other', 'bytes=0-0', 'y', { ...patched, 'upload-offset': '1' }))).toBe('422 idempotency_key_reused');
    const moved = newKey();
    await client.post('/v1/copies', { from: 'v/other', to: 'v/other2' }, moved);
    expect(verdictOf(await client.post('/v1/copies', { from: 'v/other', to: 'v/other3' }, moved))).toBe('422 idempotency_key_reused');
    expect(at('v/other')).toBe('y');
  });

  it('on another path, by another method or another principal is another request', async () => {
    const { client } = gateway;
    const key = newKey();
    expect((await client.put('v/scope/a', 'x', key)).status).toBe(201);
    expect((await client.put('v/scope/b', 'longer', key)).headers).not.toHaveProperty('idempotency-replayed');
    expect((await client.delete('v/scope/a', key)).headers).not.toHaveProperty('idempotency-replayed');
    const guarded = await startVolumes({
      auth: principalsFile([
        { name: 'a', roles: ['writer'] },
        { name: 'b', roles: ['writer'] },
      ]),
    });
    expect(verdictOf(await guarded.client.as(bearerOf('a')).put('v/a', 'x', key))).toBe('201');
    const other = await guarded.client.as(bearerOf('b')).put('v/a', 'x', key);
    expect([other.status, other.headers['idempotency-replayed']]).toEqual([200, undefined]);
    expect(verdictOf(await guarded.client.put('v/a', 'x', key))).toBe('401 unauthenticated');
    await guarded.stop();
  });

  it('while the first still runs is 409; and when the first was cut off, the key is free', async () => {
    const slow = gateway.raw();
    slow.send(head('PUT /v1/files/v/running', 'Idempotency-Key: "running"', 'Expect: 100-continue', 'Content-Length: 4'));
    await slow.until(() => slow.received.includes('100 Continue'));
    expect(verdictOf(await gateway.client.put('v/running', 'done', { 'idempotency-key': '"running"' }))).toBe('409 idempotency_in_progress');
    slow.close();
    const answer = await eventually(
      () => gateway.client.put('v/running', 'done', { 'idempotency-key': '"running"' }),
      ({ status }) => status !== 409,
    );
    expect([answer.status, answer.headers['idempotency-replayed']]).toEqual([201, undefined]);
  });
});

describe('a refusal is not stored', () => {
  it('the same key may be used again once the reason is gone', async () => {
    const { client } = gateway;
    const key = newKey();
    const held = await client.lease('v/later');
    expect(verdictOf(await client.put('v/later', 'x', { ...key, 'x-lock-wait-ms': '0' }))).toBe('423 resource_locked');
    await client.release(held);
    const answer = await client.put('v/later', 'x', { ...key, 'x-lock-wait-ms': '0' });
    expect([answer.status, answer.headers['idempotency-replayed']]).toEqual([201, undefined]);
  });
});

describe('the form of a key', () => {
  it.each([
    ['"a b"', '400'],
    ['', '400'],
    ['"', '400'],
    ['"unterminated', '400'],
    ['x'.repeat(256), '400'],
    ['\u00fc', '400'],
    ['"8e03978e-40d5-43dd-bc93-6894a57f9324"', '201'],
    ['8e03978e', '201'],
    ['"q\\"uote"', '201'],
    ['x'.repeat(255), '201'],
  ])('%j: %s', async (value, verdict) => {
    const answer = await ask(
      gateway.raw(),
      Buffer.from(
        `${head(`PUT /v1/files/v/form-${value.length}-${Buffer.from(value).toString('hex').slice(0, 40)}`, `Idempotency-Key: ${value}`, 'Content-Length: 1')}x`,
        'latin1',
      ),
    );
    expect(rawVerdict(answer).split(' ')[0]).toBe(verdict);
  });

  it('quoted and bare it is the same key; sent twice it is none', async () => {
    expect((await gateway.client.put('v/quotes', 'x', { 'idempotency-key': 'k-1' })).status).toBe(201);
    expect((await gateway.client.put('v/quotes', 'x', { 'idempotency-key': '"k-1"' })).headers).toMatchObject(REPLAYED);
    const twice = await ask(gateway.raw(), `${head('PUT /v1/files/v/quotes', 'Idempotency-Key: a', 'Idempotency-Key: a', 'Content-Length: 1')}x`);
    expect(rawVerdict(twice)).toBe('400 invalid_request');
  });
});
