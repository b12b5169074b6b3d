import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { refuse } from '../../src/domain/errors.ts';
import { startHttp, type TestServer } from '../support/http-server.ts';

let server: TestServer;
const MTIME_NS = 1_767_225_600_500_000_000n;
const MODIFIED = 'Thu, 01 Jan 2026 00:00:00 GMT';
const TEXT = '0123456789';
beforeAll(async () => {
  server = await startHttp();
});
afterAll(() => server.close());
beforeEach(() => {
  server.deps.digest = null;
  server.deps.volumes.openError = null;
  server.deps.volumes.files.set('demo/a.txt', { bytes: Buffer.from(TEXT), mtimeNs: MTIME_NS, etag: '"v1"' });
  server.deps.volumes.files.set('demo/page.html', { bytes: Buffer.from('<script>'), mtimeNs: MTIME_NS });
  server.deps.volumes.files.set('demo/weak.bin', { bytes: Buffer.from(TEXT), mtimeNs: MTIME_NS, etag: 'W/"v1"' });
  server.deps.volumes.files.set('demo/empty', { bytes: Buffer.alloc(0), mtimeNs: MTIME_NS });
});
afterEach(() => expect.poll(() => server.deps.volumes.openDescriptors, { message: 'every descriptor is closed' }).toBe(0));
const get = (path: string, headers: Record<string, string> = {}, method = 'GET') => server.fetch(`/v1/files/${path}`, { method, headers });

test('a GET sends the bytes with validators and what keeps a browser safe', async () => {
  server.deps.digest = 'ab'.repeat(32);
  const answer = await get('demo/a.txt');
  expect(answer.status).toBe(200);
  expect(await answer.text()).toBe(TEXT);
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    etag: '"v1"',
    'last-modified': MODIFIED,
    'accept-ranges': 'bytes',
    'content-type': 'text/plain',
    'content-length': '10',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "sandbox; default-src 'none'",
    'repr-digest': `sha-256=:${Buffer.from('ab'.repeat(32), 'hex').toString('base64')}:`,
  });
  expect(answer.headers.has('content-disposition')).toBe(false);
});

test('a page is sent as an attachment', async () => {
  const answer = await get('demo/page.html');
  expect(answer.headers.get('content-type')).toBe('text/html');
  expect(answer.headers.get('content-disposition')).toBe('attachment; filename=page.html');
  await answer.text();
});

test('a HEAD has the headers of the GET and no body', async () => {
  const withoutChance = (answer: Response) =>
    Object.fromEntries([...answer.headers].filter(([name]) => !['date', 'x-request-id', 'connection', 'keep-alive'].includes(name)));
  const head = await get('demo/a.txt', {}, 'HEAD');
  const full = await get('demo/a.txt');
  expect(head.status).toBe(200);
  expect(await head.text()).toBe('');
  expect(withoutChance(head)).toEqual(withoutChance(full));
  await full.text();
});

test.each([
  ['bytes=0-3', '0123', 'bytes 0-3/10'],
  ['bytes=7-', '789', 'bytes 7-9/10'],
  ['bytes=-4', '6789', 'bytes 6-9/10'],
  ['bytes=-400', TEXT, 'bytes 0-9/10'],
  ['bytes=8-100', '89', 'bytes 8-9/10'],
  ['bytes=50-60, 0-0', '0', 'bytes 0-0/10'],
])('Range: %s sends %s', async (range, text, contentRange) => {
  const answer = await get('demo/a.txt', { range });
  expect([answer.status, await answer.text(), answer.headers.get('content-range')]).toEqual([206, text, contentRange]);
});

test('several ranges come as multipart/byteranges of the length that was said', async () => {
  const answer = await get('demo/a.txt', { range: 'bytes=0-1,4-5,-1' });
  expect(answer.status).toBe(206);
  const boundary = /^multipart\/byteranges; boundary=(.+)$/.exec(answer.headers.get('content-type') ?? '')?.[1];
  const text = await answer.text();
  expect(text.split(`--${boundary}`)).toHaveLength(5);
  expect(text).toContain('content-range: bytes 4-5/10\r\n\r\n45\r\n');
  expect(text.length).toBe(Number(answer.headers.get('content-length')));
});

test.each([
  ['outside the file', 'bytes=10-'],
  ['an empty suffix', 'bytes=-0'],
  ['ranges that overlap', 'bytes=0-5,3-7'],
  ['more ranges than are sent at once', `bytes=${Array.from({ length: 17 }, (_, i) => `${i}-${i}`).join(',')}`],
])('416 for %s, with the size', async (_what, range) => {
  const answer = await get('demo/a.txt', { range });
  expect([answer.status, answer.headers.get('content-range')]).toEqual([416, 'bytes */10']);
  expect(await answer.json()).toMatchObject({ code: 'range_not_satisfiable' });
});

test.each(['lines=1-2', 'bytes=5-2', 'bytes=a-b', 'bytes'])('Range: %s is ignored', async (range) => {
  const answer = await get('demo/a.txt', { range });
  expect([answer.status, await answer.text()]).toEqual([200, TEXT]);
});

test.each([
  ['the strong tag', 'demo/a.txt', '"v1"', 206],
  ['another tag', 'demo/a.txt', '"v0"', 200],
  ['a weak tag', 'demo/weak.bin', 'W/"v1"', 200],
  ['a date', 'demo/a.txt', MODIFIED, 200],
])('If-Range with %s', async (_what, path, ifRange, status) => {
  const answer = await get(path, { range: 'bytes=0-0', 'if-range': ifRange });
  expect(answer.status).toBe(status);
  await answer.text();
});

test.each([
  [{ 'if-match': '"v1"' }, 200],
  [{ 'if-match': '*' }, 200],
  [{ 'if-match': '"v0", "v1"' }, 200],
  [{ 'if-match': '"v0"' }, 412],
  [{ 'if-match': 'W/"v1"' }, 412],
  [{ 'if-none-match': '"v1"' }, 304],
  [{ 'if-none-match': 'W/"v1"' }, 304],
  [{ 'if-none-match': '*' }, 304],
  [{ 'if-none-match': '"v0"' }, 200],
  [{ 'if-modified-since': MODIFIED }, 304],
  [{ 'if-modified-since': 'Wed, 31 Dec 2025 00:00:00 GMT' }, 200],
  [{ 'if-modified-since': 'gibberish' }, 200],
  [{ 'if-unmodified-since': MODIFIED }, 200],
  [{ 'if-unmodified-since': 'Wed, 31 Dec 2025 00:00:00 GMT' }, 412],
  // RFC 9110, 13.2.2: the tag goes before the date.
  [{ 'if-match': '"v1"', 'if-unmodified-since': 'Wed, 31 Dec 2025 00:00:00 GMT' }, 200],
  [{ 'if-none-match': '"v0"', 'if-modified-since': MODIFIED }, 200],
  [{ 'if-match': '"v0"', 'if-none-match': '"v1"' }, 412],
  [{ 'if-none-match': '"v1"', range: 'bytes=0-1' }, 304],
  [{ 'if-match': 'v1' }, 400],
  [{ 'if-none-match': '"v1" "v2"' }, 400],
])('conditions %j answer %i', async (headers, status) => {
  const answer = await get('demo/a.txt', headers as Record<string, string>);
  expect(answer.status).toBe(status);
  if (status === 304) expect([answer.headers.get('etag'), await answer.text()]).toEqual(['"v1"', '']);
  else await answer.text();
});

test('an empty file is 200 with no bytes', async () => {
  const answer = await get('demo/empty');
  expect([answer.status, answer.headers.get('content-length'), await answer.text()]).toEqual([200, '0', '']);
});

test.each([
  ['demo/.fencegate/owner', 404, 'not_found'],
  ['demo/.nfs001', 404, 'not_found'],
  ['nowhere/a', 404, 'volume_not_found'],
  ['UPPER/a', 404, 'volume_not_found'],
  ['jobs/a', 404, 'not_found'],
  ['demo/missing', 404, 'not_found'],
  ['demo', 404, 'not_found'],
])('GET %s is %i %s', async (path, status, code) => {
  const answer = await get(path);
  expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([status, code]);
});

test('a directory lists its entries, without the names that are hidden', async () => {
  const answer = await get('demo/2026/?limit=5&cursor=abc');
  expect(await answer.json()).toEqual({
    entries: [
      { name: 'q3.csv', name_base64: null, type: 'file', size_bytes: 3, modified_at: '2026-01-01T00:00:00.000Z' },
      { name: null, name_base64: '/w==', type: 'file', size_bytes: 1, modified_at: null },
    ],
    next_cursor: null,
  });
  expect(server.deps.volumes.listed).toEqual({ directory: 'demo/2026', page: { limit: 5, cursor: 'abc' } });
});

test('the root of a volume is listed with a trailing slash', async () => {
  expect((await get('demo/')).status).toBe(200);
  expect(server.deps.volumes.listed).toMatchObject({ directory: null, page: { limit: 1_000, cursor: null } });
});

test('a client that goes away before it has read the file leaves no descriptor open', async () => {
  server.deps.volumes.files.set('demo/big', { bytes: Buffer.alloc(50_000_000), mtimeNs: MTIME_NS });
  for (let i = 0; i < 5; i += 1) {
    const client = server.raw();
    client.send('GET /v1/files/demo/big HTTP/1.1\r\nHost: localhost\r\n\r\n');
    if (i % 2 === 0) await client.until(() => client.received !== '');
    client.close();
  }
  await expect.poll(() => server.deps.volumes.openedEver > 0 && server.deps.volumes.openDescriptors === 0).toBe(true);
});

test('a volume that is shut is 503 with Retry-After', async () => {
  server.deps.volumes.openError = refuse('volume_unavailable', 'The volume hangs.');
  const answer = await get('demo/a.txt');
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
});
