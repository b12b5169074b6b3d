import { createHash } from 'node:crypto';
import { appendFileSync, readFileSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, eventually, type Headers, jsonOf, textOf, verdictOf } from '../support/gateway-client.ts';
import { head } from '../support/raw-request.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** GET and HEAD over real files: versions, ranges, conditions, one descriptor per answer. */

const TEXT = '0123456789abcdefghij';
/** More than the buffers of both sides of a connection take. */
const LARGE = 32 * 1_048_576;
let gateway: VolumesGateway;
let etag: string;
let modified: string;

beforeAll(async () => {
  gateway = await startVolumes({ volumes: { v: { names: 'any' }, still: { read_only: true } } });
  const answer = await gateway.client.put('v/text', TEXT);
  etag = answer.headers['etag'] ?? '';
  modified = (await gateway.client.get('v/text')).headers['last-modified'] ?? '';
  await gateway.client.put('v/nothing', '');
});
afterAll(() => gateway.stop());

const read = (headers: Headers = {}, name = 'v/text'): Promise<Answer> => gateway.client.get(name, headers);
const sha256 = (text: string | Buffer): Buffer => createHash('sha256').update(text).digest();

describe('what a write says is what a read shows', () => {
  it('every member and header of the answers of PUT, replaced and created', async () => {
    for (const [status, body] of [
      [201, 'first'],
      [200, 'second, longer'],
    ] as const) {
      const answer = await gateway.client.put('v/told', body);
      const digest = sha256(body);
      const held = { etag: expect.stringMatching(/^"[0-9a-z]+-[0-9a-z]+-[0-9a-z]+"$/), token: expect.stringMatching(/^\d+$/) };
      expect(answer.status).toBe(status);
      expect(answer.headers).toMatchObject({
        etag: held.etag,
        'repr-digest': `sha-256=:${digest.toString('base64')}:`,
        'x-fencing-token': held.token,
        'content-type': 'application/json; charset=utf-8',
        'x-request-id': expect.any(String),
      });
      expect(jsonOf(answer)).toEqual({
        resource: 'v/told',
        volume: 'v',
        path: 'told',
        size_bytes: body.length,
        etag: answer.headers['etag'],
        digest: { 'sha-256': digest.toString('hex') },
        fencing_token: answer.headers['x-fencing-token'],
        lease_ref: expect.any(String),
        operation_id: answer.headers['x-operation-id'],
        durability: 'synced',
        fence_level: 'incarnation',
      });
      const got = await gateway.client.get('v/told');
      expect([got.status, textOf(got)]).toEqual([200, body]);
      expect(got.headers).toMatchObject({
        etag: answer.headers['etag'],
        'repr-digest': answer.headers['repr-digest'],
        'content-length': String(body.length),
        'accept-ranges': 'bytes',
      });
      const seen = await gateway.client.send('HEAD', '/v1/files/v/told');
      expect(seen.bytes.length).toBe(0);
      for (const name of ['etag', 'repr-digest', 'content-length', 'content-type', 'accept-ranges', 'last-modified', 'content-security-policy'])
        expect([name, seen.headers[name]]).toEqual([name, got.headers[name]]);
    }
  });

  it('two versions never share a tag, also when they are equal and quick', async () => {
    const tags = new Set<string>();
    for (let i = 0; i < 50; i += 1) tags.add((await gateway.client.put('v/quick', 'same')).headers['etag'] ?? '');
    expect(tags.size).toBe(50);
    expect(tags.has((await gateway.client.get('v/quick')).headers['etag'] ?? '')).toBe(true);
  });

  it('an X-Request-Id that is valid is kept, another one is replaced', async () => {
    expect((await read({ 'x-request-id': 'trace-7/a.b:c' })).headers['x-request-id']).toBe('trace-7/a.b:c');
    for (const bad of ['a b', 'x'.repeat(129), '\u00e4', '"']) expect((await read({ 'x-request-id': bad })).headers['x-request-id']).toMatch(/^req_/);
  });

  it('a read-only volume is read, and written by nobody', async () => {
    writeFileSync(gateway.path('still/given'), 'given');
    expect(textOf(await gateway.client.get('still/given'))).toBe('given');
    for (const answer of await Promise.all([
      gateway.client.put('still/given', 'x'),
      gateway.client.delete('still/given'),
      gateway.client.put('still/d/', ''),
      gateway.client.post('/v1/moves', { from: 'still/given', to: 'still/b' }),
    ]))
      expect(verdictOf(answer)).toBe('403 volume_read_only');
    expect((await gateway.client.post('/v1/copies', { from: 'still/given', to: 'v/taken' })).status).toBe(201);
  });
});

describe('ranges', () => {
  it.each([
    ['bytes=0-0', '0', 'bytes 0-0/20'],
    ['bytes=0-19', TEXT, 'bytes 0-19/20'],
    ['bytes=5-9', '56789', 'bytes 5-9/20'],
    ['bytes=15-', 'fghij', 'bytes 15-19/20'],
    ['bytes=-3', 'hij', 'bytes 17-19/20'],
    ['bytes=-100', TEXT, 'bytes 0-19/20'],
    ['bytes=10-1000', 'abcdefghij', 'bytes 10-19/20'],
    ['bytes=0-0,', '0', 'bytes 0-0/20'],
    ['BYTES=1-1', '1', 'bytes 1-1/20'],
    ['bytes=5-9,100-', '56789', 'bytes 5-9/20'],
  ])('%s', async (range, body, contentRange) => {
    const answer = await read({ range });
    if (range.endsWith(',') && answer.status === 200) return expect(textOf(answer)).toBe(TEXT);
    expect([answer.status, textOf(answer), answer.headers['content-range'], answer.headers['content-length']]).toEqual([
      206,
      body,
      contentRange,
      String(body.length),
    ]);
    expect(answer.headers['etag']).toBe(etag);
  });

  it.each([
    'bytes=20-',
    'bytes=20-30',
    'bytes=-0',
    'bytes=99999999999999999999-',
    'bytes=0-5,3-9',
    `bytes=${Array.from({ length: 17 }, (_, i) => `${i}-${i}`).join(',')}`,
  ])('%s is 416 with the size', async (range) => {
    const answer = await read({ range });
    expect([verdictOf(answer), answer.headers['content-range']]).toEqual(['416 range_not_satisfiable', 'bytes */20']);
  });

  it.each(['bytes=5-2', 'bytes=a-b', 'bytes', 'bytes=', 'lines=1-2', 'bytes=1', 'bytes=0-1;2-3', 'bytes=--1'])(
    '%s is no range and is ignored',
    async (range) => {
      expect([(await read({ range })).status, textOf(await read({ range }))]).toEqual([200, TEXT]);
    },
  );

  it('several come as multipart/byteranges, each with its place', async () => {
    const answer = await read({ range: 'bytes=0-1, 5-6 ,-2' });
    expect(answer.status).toBe(206);
    const boundary = /^multipart\/byteranges; boundary=(\S+)$/.exec(answer.headers['content-type'] ?? '')?.[1] ?? '';
    const parts = textOf(answer).split(`\r\n--${boundary}`).slice(1);
    expect(parts.pop()).toBe('--\r\n');
    expect(parts.map((part) => [/content-range: (.+)\r\n/i.exec(part)?.[1], part.split('\r\n\r\n')[1]])).toEqual([
      ['bytes 0-1/20', '01'],
      ['bytes 5-6/20', '56'],
      ['bytes 18-19/20', 'ij'],
    ]);
    expect(answer.headers['content-length']).toBe(String(answer.bytes.length));
  });

  it('of an empty file are 416; the whole of it is 200', async () => {
    expect(verdictOf(await read({ range: 'bytes=0-' }, 'v/nothing'))).toBe('416 range_not_satisfiable');
    const whole = await read({}, 'v/nothing');
    expect([whole.status, whole.headers['content-length'], whole.bytes.length]).toEqual([200, '0', 0]);
  });

  it('count for GET only', async () => {
    expect((await gateway.client.send('HEAD', '/v1/files/v/text', { headers: { range: 'bytes=0-0' } })).headers['content-length']).toBe('20');
  });

  it('hold only while If-Range does, which compares strongly', async () => {
    const cases: readonly (readonly [string, number])[] = [
      [etag, 206],
      [`W/${etag}`, 200],
      ['"other"', 200],
      ['Wed, 01 Jan 2020 00:00:00 GMT', 200],
    ];
    for (const [value, status] of cases) expect([value, (await read({ range: 'bytes=0-0', 'if-range': value })).status]).toEqual([value, status]);
  });
});

describe('conditions', () => {
  const past = 'Wed, 01 Jan 2020 00:00:00 GMT';
  const future = 'Sat, 01 Jan 2050 00:00:00 GMT';
  const cases: readonly (readonly [string, () => Record<string, string>, number])[] = [
    ['If-None-Match, the tag', () => ({ 'if-none-match': etag }), 304],
    ['If-None-Match, weakly', () => ({ 'if-none-match': `W/${etag}` }), 304],
    ['If-None-Match, in a list', () => ({ 'if-none-match': `"a", ${etag}` }), 304],
    ['If-None-Match: *', () => ({ 'if-none-match': '*' }), 304],
    ['If-None-Match, another', () => ({ 'if-none-match': '"other"' }), 200],
    ['If-Match, the tag', () => ({ 'if-match': etag }), 200],
    ['If-Match: *', () => ({ 'if-match': '*' }), 200],
    ['If-Match, weakly', () => ({ 'if-match': `W/${etag}` }), 412],
    ['If-Match, another', () => ({ 'if-match': '"other"' }), 412],
    ['If-Modified-Since, its own time', () => ({ 'if-modified-since': modified }), 304],
    ['If-Modified-Since, before', () => ({ 'if-modified-since': past }), 200],
    ['If-Modified-Since, not a date', () => ({ 'if-modified-since': 'yesterday' }), 200],
    ['If-Modified-Since beside If-None-Match', () => ({ 'if-modified-since': future, 'if-none-match': '"other"' }), 200],
    ['If-Unmodified-Since, its own time', () => ({ 'if-unmodified-since': modified }), 200],
    ['If-Unmodified-Since, before', () => ({ 'if-unmodified-since': past }), 412],
    ['If-Unmodified-Since beside If-Match', () => ({ 'if-unmodified-since': past, 'if-match': etag }), 200],
    ['both, the first fails', () => ({ 'if-match': '"other"', 'if-none-match': etag }), 412],
    ['a condition and a range', () => ({ 'if-none-match': etag, range: 'bytes=0-0' }), 304],
  ];
  it.each(cases)('%s', async (_what, headers, status) => {
    for (const method of ['GET', 'HEAD'] as const) {
      const answer = await gateway.client.send(method, '/v1/files/v/text', { headers: headers() });
      expect([method, answer.status]).toEqual([method, status]);
      if (status === 304) expect([answer.bytes.length, answer.headers['etag']]).toEqual([0, etag]);
    }
  });

  it('a malformed one is 400, never ignored', async () => {
    for (const headers of [{ 'if-match': 'unquoted' }, { 'if-none-match': '"a' }, { 'if-match': '"a" "b"' }])
      expect(verdictOf(await read(headers))).toBe('400 invalid_request');
  });
});

describe('a file that others change', () => {
  it('gets a weak tag while it may still change within its clock tick, and a strong one later', async () => {
    await gateway.client.put('v/foreign', 'ours');
    writeFileSync(gateway.path('v/foreign'), 'theirs');
    const fresh = await read({}, 'v/foreign');
    expect([textOf(fresh), fresh.headers['etag']]).toEqual(['theirs', expect.stringMatching(/^W\/"/)]);
    expect(fresh.headers['repr-digest']).toBeUndefined();
    expect(verdictOf(await gateway.client.put('v/foreign', 'x', { 'if-match': fresh.headers['etag'] ?? '' }))).toBe('412 precondition_failed');
    const long = new Date(Date.now() - 60_000);
    utimesSync(gateway.path('v/foreign'), long, long);
    const settled = await read({}, 'v/foreign');
    expect(settled.headers['etag']).toMatch(/^"/);
    expect((await gateway.client.put('v/foreign', 'x', { 'if-match': settled.headers['etag'] ?? '' })).status).toBe(200);
  });

  it('is served from the one descriptor that was opened: a replace during a slow GET changes nothing', async () => {
    const [old, fresh] = [Buffer.alloc(LARGE, 'o'), Buffer.alloc(LARGE, 'n')];
    await gateway.client.put('v/slow', old);
    const reading = await gateway.client.begin('v/slow');
    expect((await gateway.client.put('v/slow', fresh)).status).toBe(200);
    expect((await gateway.client.delete('v/slow')).status).toBe(204);
    const { bytes, whole } = await reading.rest();
    expect([reading.status, whole, bytes.equals(old)]).toEqual([200, true, true]);
  });

  it('that shrinks under a reader ends the answer, short: it is never filled up', async () => {
    await gateway.client.put('v/shrinks', Buffer.alloc(LARGE, 'o'));
    const reading = await gateway.client.begin('v/shrinks');
    writeFileSync(gateway.path('v/shrinks'), 'short');
    const { bytes, whole } = await reading.rest();
    expect([whole, bytes.length < LARGE, bytes.every((byte) => byte === 0x6f)]).toEqual([false, true, true]);
  });

  it('B21: a loop of readers over a loop of replaces sees whole files only', async () => {
    const bodyOf = (round: number): string => String(round % 10).repeat(100_000 + round);
    await gateway.client.put('v/loop', bodyOf(0));
    let over = false;
    const readers = Array.from({ length: 4 }, async () => {
      const seen: string[] = [];
      while (!over) seen.push(textOf(await read({}, 'v/loop')));
      return seen;
    });
    for (let round = 1; round < 40; round += 1) {
      if (round % 3 === 0) {
        writeFileSync(gateway.path('v/loop.tmp'), bodyOf(round));
        renameSync(gateway.path('v/loop.tmp'), gateway.path('v/loop'));
      } else expect((await gateway.client.put('v/loop', bodyOf(round))).status).toBe(200);
    }
    over = true;
    const whole = new Set(Array.from({ length: 40 }, (_, round) => bodyOf(round)));
    for (const seen of await Promise.all(readers)) for (const body of seen) expect(whole.has(body)).toBe(true);
  });
});

describe('B12, B5: a read needs no lease and waits for no upload', () => {
  it('while somebody holds, while others wait, while a body trickles in, during an append', async () => {
    await gateway.client.put('v/busy', 'old');
    await gateway.client.lease('v/busy');
    const upload = gateway.raw();
    const { fencing_token: token } = await gateway.client.lease('v/trickle');
    await eventually(
      () => read({}, 'v/trickle'),
      ({ status }) => status === 404,
    );
    upload.send(`${head('PUT /v1/files/v/trickle', `X-Fencing-Token: ${token}`, 'Content-Length: 10', 'X-Lease-Keepalive: true')}01234`);
    const answers = await Promise.all([
      read({}, 'v/busy'),
      read({}, 'v/busy'),
      read({ range: 'bytes=0-0' }, 'v/busy'),
      read({}, 'v/trickle'),
      gateway.client.get('v/'),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 206, 404, 200]);
    upload.send('56789');
    expect((await upload.answer()).status).toBe(201);
    expect(textOf(await read({}, 'v/trickle'))).toBe('0123456789');
  });
});

describe('what a browser is given is safe', () => {
  it.each([
    ['page.html', 'text/html; charset=utf-8', true],
    ['drawing.svg', 'image/svg+xml', true],
    ['script.js', 'text/javascript; charset=utf-8', true],
    ['notes.txt', 'text/plain; charset=utf-8', false],
    ['photo.png', 'image/png', false],
    ['photo.jpg', 'image/jpeg', false],
    ['book.pdf', 'application/pdf', true],
    ['table.csv', 'text/csv; charset=utf-8', true],
    ['data.json', 'application/json', true],
    ['noextension', 'application/octet-stream', true],
    ['odd.xyzzy', 'application/octet-stream', true],
    ['q"uo\u00e4te.html', 'text/html; charset=utf-8', true],
  ])('%s', async (name, type, attached) => {
    await gateway.client.put(`v/safe/${name}`, '<script>1</script>');
    const { headers } = await gateway.client.get(`v/safe/${name}`);
    expect(headers['content-type']?.replace(/; charset=utf-8$/, '')).toBe(type.replace(/; charset=utf-8$/, ''));
    expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'content-security-policy': "sandbox; default-src 'none'" });
    if (attached) expect(headers['content-disposition']).toMatch(/^attachment/);
    else expect(headers['content-disposition'] ?? '').not.toMatch(/^attachment/);
  });
});

describe('an append that another program made', () => {
  it('is seen at once: the size of the file counts', async () => {
    await gateway.client.put('v/log', 'a');
    appendFileSync(gateway.path('v/log'), 'b');
    expect(textOf(await read({}, 'v/log'))).toBe('ab');
    expect((await gateway.client.patch('v/log', 'append', 'c', { 'upload-offset': '2' })).status).toBe(200);
    expect(readFileSync(gateway.path('v/log'), 'utf8')).toBe('abc');
  });
});
