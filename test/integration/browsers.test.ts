import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Headers, textOf, verdictOf } from '../support/gateway-client.ts';
import { ask, head, rawVerdict } from '../support/raw-request.ts';
import { bearerOf, principalsFile, startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** Pages in a browser on the same machine must not write, nor read through a name that was bound anew. */

let open: VolumesGateway;
let guarded: VolumesGateway;
beforeAll(async () => {
  open = await startVolumes({
    environment: {
      FENCEGATE_ALLOWED_ORIGINS: 'https://app.example, https://other.example:8443',
      FENCEGATE_ALLOWED_HOSTS: 'files.example,nas.local:8080',
    },
  });
  guarded = await startVolumes({ auth: principalsFile([{ name: 'writer', roles: ['writer', 'reader'] }]) });
  await open.client.put('v/kept', 'kept');
});
afterAll(() => Promise.all([open.stop(), guarded.stop()]));

describe('Origin and Sec-Fetch-Site', () => {
  const own = (): string => open.url;
  const cases: readonly (readonly [string, () => Headers, boolean])[] = [
    ['no Origin: not a browser', () => ({}), true],
    ['its own', () => ({ origin: own() }), true],
    ['its own, said by the browser to be same-origin', () => ({ origin: own(), 'sec-fetch-site': 'same-origin' }), true],
    ['typed by the user', () => ({ 'sec-fetch-site': 'none' }), true],
    ['an allowed one', () => ({ origin: 'https://app.example' }), true],
    ['an allowed one with its port', () => ({ origin: 'https://other.example:8443', 'sec-fetch-site': 'cross-site' }), true],
    ['a foreign one', () => ({ origin: 'https://evil.example' }), false],
    ['an opaque one', () => ({ origin: 'null' }), false],
    ['an empty one', () => ({ origin: '' }), false],
    ['the allowed name without TLS', () => ({ origin: 'http://app.example' }), false],
    ['the allowed name with another port', () => ({ origin: 'https://app.example:444' }), false],
    ['a name that begins like an allowed one', () => ({ origin: 'https://app.example.evil.example' }), false],
    ['another port of this host', () => ({ origin: 'http://127.0.0.1:1' }), false],
    ['this host by https', () => ({ origin: own().replace('http:', 'https:') }), false],
    ['cross-site without an Origin', () => ({ 'sec-fetch-site': 'cross-site' }), false],
    ['two that were joined', () => ({ origin: ['https://app.example', 'https://evil.example'] }), false],
  ];
  it.each(cases)('%s', async (_what, headers, may) => {
    const { client } = open;
    const writes = [
      await client.put('v/written', 'x', headers()),
      await client.patch('v/written', 'append', 'x', headers()),
      await client.post('/v1/leases', { resource: 'v/leased' }, headers()),
      await client.post('/v1/admin/locks/break', { resource: 'v/leased', reason: 'r' }, headers()),
      await client.send('DELETE', '/v1/leases/none', { headers: headers() }),
      await client.delete('v/written', headers()),
    ];
    for (const answer of writes) expect([verdictOf(answer) === '403 cross_origin', answer.status === 403]).toEqual([!may, !may]);
    expect((await client.get('v/kept', headers())).status).toBe(200);
  });

  it('no CORS header for anybody but the allowed origins', async () => {
    for (const origin of ['https://evil.example', 'null', open.url]) {
      for (const answer of [
        await open.client.get('v/kept', { origin }),
        await open.client.send('OPTIONS', '/v1/files/v/kept', { headers: { origin, 'access-control-request-method': 'PUT' } }),
      ]) {
        expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
      }
    }
    const answer = await open.client.get('v/kept', { origin: 'https://app.example' });
    expect(answer.headers).toMatchObject({ 'access-control-allow-origin': 'https://app.example', vary: expect.stringMatching(/origin/i) });
    expect(answer.headers).not.toHaveProperty('access-control-allow-credentials');
    const preflight = await open.client.send('OPTIONS', '/v1/files/v/kept', {
      headers: { origin: 'https://app.example', 'access-control-request-method': 'PUT', 'access-control-request-headers': 'x-fencing-token' },
    });
    expect([preflight.status, preflight.headers['access-control-allow-methods'], preflight.headers['access-control-allow-headers']]).toEqual([
      204,
      expect.stringContaining('PUT'),
      'x-fencing-token',
    ]);
  });
});

describe('Host, without authentication', () => {
  it.each([
    ['localhost', 200],
    ['localhost:1234', 200],
    ['LOCALHOST', 200],
    ['127.0.0.1', 200],
    ['127.9.9.9:80', 200],
    ['[::1]', 200],
    ['[::1]:8080', 200],
    ['x.localhost', 200],
    ['files.example', 200],
    ['FILES.EXAMPLE:99', 200],
    ['nas.local:8080', 200],
    ['evil.example', 421],
    ['nas.local', 421],
    ['nas.local:8081', 421],
    ['127.0.0.1.evil.example', 421],
    ['localhost.evil.example', 421],
    ['evil.example:80@localhost', 421],
    ['128.0.0.1', 421],
    ['0.0.0.0', 421],
    ['[::2]', 421],
    ['', 421],
    ['local host', 421],
  ])('%j is %i', async (host, status) => {
    for (const target of ['GET /v1/files/v/kept', 'GET /healthz', 'PUT /v1/files/v/by-host']) {
      const answer = await ask(open.raw(), `${target} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 0\r\n\r\n`);
      expect([target, answer.status < 300 ? 200 : answer.status]).toEqual([target, status]);
      if (status === 421) expect(rawVerdict(answer)).toBe('421 wrong_host');
    }
  });

  it('an absolute target does not get around it, and two Hosts or none are refused', async () => {
    expect(rawVerdict(await ask(open.raw(), 'GET http://localhost/healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n'))).toBe('421 wrong_host');
    expect(rawVerdict(await ask(open.raw(), 'GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'))).toBe('421 wrong_host');
    expect(rawVerdict(await ask(open.raw(), 'GET /healthz HTTP/1.1\r\n\r\n'))).toMatch(/^(400|421) /);
    expect(rawVerdict(await ask(open.raw(), 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n'))).toMatch(/^(400|421) /);
  });
});

describe('with authentication', () => {
  it('any Host is served, because a page has no token; a foreign Origin still may not write, even with one', async () => {
    const authorization = `Authorization: Bearer ${bearerOf('writer')}`;
    expect(
      (await ask(guarded.raw(), `PUT /v1/files/v/a HTTP/1.1\r\nHost: files.example\r\n${authorization}\r\nContent-Length: 0\r\n\r\n`)).status,
    ).toBe(201);
    expect(rawVerdict(await ask(guarded.raw(), head('PUT /v1/files/v/a', authorization, 'Origin: https://evil.example', 'Content-Length: 0')))).toBe(
      '403 cross_origin',
    );
    expect(textOf(await guarded.client.as(bearerOf('writer')).get('v/a', { origin: 'https://evil.example' }))).toBe('');
  });
});
