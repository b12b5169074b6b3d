import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, jsonOf, textOf, verdictOf } from '../support/gateway-client.ts';
import { RawConnection } from '../support/raw-http.ts';
import { ask, head, rawVerdict } from '../support/raw-request.ts';
import { stagedNames } from '../support/volume-snapshot.ts';
import { bearerOf, principalsFile, startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** Limits and patience, of the whole gateway and of a volume. */

const AUTH = principalsFile([
  { name: 'one', roles: ['reader', 'writer'] },
  { name: 'two', roles: ['reader', 'writer'] },
]);
const as = (name: string): string => `Authorization: Bearer ${bearerOf(name)}`;
let gateway: VolumesGateway;
beforeAll(async () => {
  gateway = await startVolumes({
    auth: AUTH,
    volumes: { v: {}, small: { limits: { body_bytes: 100 } }, quota: { limits: { staged_bytes: 100 } } },
    environment: {
      FENCEGATE_BODY_MAX_BYTES: '1000',
      FENCEGATE_UPLOADS_MAX: '2',
      FENCEGATE_UPLOAD_IDLE_MS: '1000',
      FENCEGATE_UPLOAD_MIN_BYTES_PER_SECOND: '50',
    },
  });
});
afterAll(() => gateway.stop());

/** An upload that was let in and has sent nothing of its body yet. */
async function upload(name: string, principal: string, ...framing: string[]): Promise<RawConnection> {
  const connection = gateway.raw();
  connection.send(head(`PUT /v1/files/${name}`, as(principal), 'Expect: 100-continue', ...framing));
  await connection.until(() => connection.received.includes('\r\n\r\n'));
  return connection;
}
const nothingStaged = (volume: string) =>
  eventually(
    () => stagedNames(gateway.path(volume)),
    (names) => names.length === 0,
  );

describe('a body that is too large', () => {
  it.each([
    ['v', 1_000],
    ['small', 100],
  ])('declared, on %s: 413 before a byte of it; exactly %i bytes are not too large', async (volume, max) => {
    const refused = await upload(`${volume}/a`, 'one', `Content-Length: ${max + 1}`);
    expect([refused.received.includes('100 Continue'), rawVerdict(await refused.answer())]).toEqual([false, '413 body_too_large']);
    const client = gateway.client.as(bearerOf('one'));
    expect((await client.put(`${volume}/a`, 'x'.repeat(max))).status).toBe(201);
    expect(jsonOf(await client.put(`${volume}/a`, 'x'.repeat(max + 1)))).toMatchObject({ code: 'body_too_large', body_bytes_max: max });
  });

  it.each([
    ['v', 1_000],
    ['small', 100],
  ])('in chunks, on %s: 413 as soon as it is, and nothing is left of it', async (volume, max) => {
    const connection = await upload(`${volume}/chunked`, 'one', 'Transfer-Encoding: chunked');
    expect(connection.received).toContain('100 Continue');
    const size = max + 1;
    connection.send(`${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`);
    expect(rawVerdict(await connection.answer())).toBe('413 body_too_large');
    await nothingStaged(volume);
    expect((await gateway.client.as(bearerOf('one')).get(`${volume}/chunked`)).status).toBe(404);
  });
});

describe('uploads at once', () => {
  it('are counted per principal; a place is free again when its client is gone', async () => {
    const [first, second] = [await upload('v/u1', 'one', 'Content-Length: 1'), await upload('v/u2', 'one', 'Content-Length: 1')];
    const third = await upload('v/u3', 'one', 'Content-Length: 1');
    expect([third.received.includes('100 Continue'), rawVerdict(await third.answer())]).toEqual([false, '429 too_many_uploads']);
    expect((await gateway.client.as(bearerOf('two')).put('v/u3', 'x')).status).toBe(201);
    expect((await gateway.client.as(bearerOf('one')).get('v/u3')).status).toBe(200);
    first.close();
    await eventually(
      () => gateway.client.as(bearerOf('one')).put('v/u4', 'x'),
      ({ status }) => status === 201,
    );
    second.send('x');
    expect((await second.answer()).status).toBe(201);
  });
});

describe('bytes that lie staged', () => {
  it('are bounded per principal; what is declared is reserved before the body', async () => {
    const client = gateway.client.as(bearerOf('one'));
    const first = await upload('quota/a', 'one', 'Content-Length: 60');
    const second = await upload('quota/b', 'one', 'Content-Length: 60');
    expect([second.received.includes('100 Continue'), rawVerdict(await second.answer())]).toEqual([false, '507 insufficient_storage']);
    expect((await gateway.client.as(bearerOf('two')).put('quota/b', 'x'.repeat(60))).status).toBe(201);
    first.send('x'.repeat(60));
    expect((await first.answer()).status).toBe(201);
    expect((await client.put('quota/b', 'x'.repeat(100))).status).toBe(200);
    expect(verdictOf(await client.put('quota/b', 'x'.repeat(101)))).toBe('507 insufficient_storage');
    const chunked = await upload('quota/c', 'one', 'Transfer-Encoding: chunked');
    chunked.send(`65\r\n${'x'.repeat(101)}\r\n`);
    expect(rawVerdict(await chunked.answer())).toBe('507 insufficient_storage');
    await nothingStaged('quota');
  });
});

describe('patience with a body', () => {
  it('B14: that stands still ends by the idle limit: 408, audited as aborted, nothing left', async () => {
    const connection = await upload('v/still', 'one', 'Content-Length: 10');
    connection.send('12345');
    const answer = await connection.answer();
    expect([rawVerdict(answer), answer.headers['connection']]).toEqual(['408 upload_timeout', 'close']);
    await nothingStaged('v');
  });

  it('that trickles below the least rate ends too, though it never stands still', async () => {
    const connection = await upload('v/trickle', 'one', 'Content-Length: 1000');
    let over = false;
    const answer = connection.answer().finally(() => {
      over = true;
    });
    await eventually(
      () => {
        if (!over) connection.send('x');
        return over;
      },
      (ended) => ended,
    );
    expect(rawVerdict(await answer)).toMatch(/^(408 upload_timeout|201|400 incomplete_body)$/);
    if (rawVerdict(await answer) !== '408 upload_timeout')
      expect(textOf(await gateway.client.as(bearerOf('one')).get('v/trickle'))).toHaveLength(1_000);
  });

  it('of JSON has the same limit', async () => {
    const connection = gateway.raw();
    connection.send(`${head('POST /v1/leases', as('one'), 'Content-Type: application/json', 'Content-Length: 50')}{"resource"`);
    expect(rawVerdict(await connection.answer())).toBe('408 upload_timeout');
  });
});

describe('the rate limit', () => {
  it('counts requests per principal and second, says when to come back, and leaves health alone', async () => {
    const limited = await startVolumes({ auth: AUTH, environment: { FENCEGATE_RATE_LIMIT_PER_SECOND: '10' } });
    const one = limited.client.as(bearerOf('one'));
    const answers = await Promise.all(Array.from({ length: 30 }, () => one.get('v/')));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThanOrEqual(10);
    for (const answer of refused) expect([verdictOf(answer), answer.headers['retry-after']]).toEqual(['429 rate_limited', '1']);
    expect((await limited.client.as(bearerOf('two')).get('v/')).status).toBe(200);
    for (const target of ['/healthz', '/readyz']) expect((await limited.client.send('GET', target)).status).toBe(200);
    await eventually(
      () => one.get('v/'),
      ({ status }) => status === 200,
    );
    await limited.stop();
  });
});

describe('a stop', () => {
  it('cuts what is still running when its time is over: 503, and nothing of it is visible', async () => {
    const short = await startVolumes({ environment: { FENCEGATE_DRAIN_MS: '300' } });
    const connection = new RawConnection(short.port);
    connection.send(head('PUT /v1/files/v/never', 'Expect: 100-continue', 'Content-Length: 10'));
    await connection.until(() => connection.received.includes('100 Continue'));
    const answer = connection.answer();
    const stopped = short.client.close().then(() => short.stop());
    expect(rawVerdict(await answer)).toBe('503 draining');
    connection.close();
    await stopped;
  });
});

describe('what has no length', () => {
  it('a PUT with neither length nor chunks is 411, never an empty file; zero of either is one', async () => {
    expect(rawVerdict(await ask(gateway.raw(), head('PUT /v1/files/v/none', as('one'))))).toBe('411 length_required');
    expect((await ask(gateway.raw(), head('PUT /v1/files/v/zero', as('one'), 'Content-Length: 0'))).status).toBe(201);
    expect((await ask(gateway.raw(), `${head('PUT /v1/files/v/zero', as('one'), 'Transfer-Encoding: chunked')}0\r\n\r\n`)).status).toBe(200);
    expect((await gateway.client.as(bearerOf('one')).get('v/none')).status).toBe(404);
  });
});
