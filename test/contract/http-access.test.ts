import { afterEach, describe, expect, test } from 'vitest';
import { GatewayError, refuse } from '../../src/domain/errors.ts';
import type { Role } from '../../src/domain/principal.ts';
import { principal } from '../support/http-fakes.ts';
import { startHttp, type TestServer } from '../support/http-server.ts';

let server: TestServer;
afterEach(() => server.close());
const codeOf = async (answer: Response): Promise<string> => {
  const text = await answer.text();
  return answer.status < 400 ? 'ok' : (JSON.parse(text) as { code: string }).code;
};
const json = (method: string, body: unknown): RequestInit => ({
  method,
  body: JSON.stringify(body),
  headers: { 'content-type': 'application/json' },
});

/** Method, path, body, and the roles that may (admin always may). */
const ROUTES: readonly (readonly [string, string, RequestInit, readonly Role[] | 'open' | 'any'])[] = [
  ['PUT', '/v1/files/demo/a.txt', { method: 'PUT', body: 'x' }, ['writer']],
  ['PUT', '/v1/files/demo/d/', { method: 'PUT' }, ['writer']],
  ['DELETE', '/v1/files/demo/a.txt', { method: 'DELETE' }, ['writer']],
  ['DELETE', '/v1/files/demo/d/', { method: 'DELETE' }, ['writer']],
  [
    'PATCH',
    '/v1/files/demo/a.txt',
    { method: 'PATCH', body: 'x', headers: { 'x-update-range': 'append', 'content-type': 'application/octet-stream' } },
    ['writer'],
  ],
  ['POST', '/v1/moves', json('POST', { from: 'demo/a', to: 'demo/b' }), ['writer']],
  ['POST', '/v1/copies', json('POST', { from: 'demo/a', to: 'demo/b' }), ['writer']],
  ['GET', '/v1/files/demo/a.txt', {}, ['reader', 'writer']],
  ['HEAD', '/v1/files/demo/a.txt', { method: 'HEAD' }, ['reader', 'writer']],
  ['GET', '/v1/files/demo/', {}, ['reader', 'writer']],
  ['GET', '/v1/volumes', {}, 'any'],
  ['GET', '/v1/operations/op_1', {}, ['writer', 'auditor']],
  ['POST', '/v1/leases', json('POST', { resource: 'demo/a.txt' }), ['writer']],
  ['GET', '/v1/leases/secret', {}, ['writer']],
  ['POST', '/v1/leases/secret/renew', { method: 'POST' }, ['writer']],
  ['DELETE', '/v1/leases/secret', { method: 'DELETE' }, ['writer']],
  ['POST', '/v1/sessions', json('POST', {}), ['writer']],
  ['GET', '/v1/locks/demo/a.txt', {}, ['reader', 'writer', 'auditor']],
  ['GET', '/v1/locks', {}, ['reader', 'writer', 'auditor']],
  ['GET', '/v1/watch/demo/a.txt', {}, ['reader', 'writer', 'auditor']],
  ['GET', '/v1/audit', {}, ['auditor']],
  ['GET', '/v1/audit/verify', {}, ['auditor']],
  ['POST', '/v1/admin/locks/break', json('POST', { resource: 'demo/a.txt', reason: 'stuck' }), []],
  ['GET', '/v1/admin/doctor', {}, []],
  ['POST', '/v1/admin/doctor/fixes', json('POST', { finding_id: 'f1', dry_run: true }), []],
  ['GET', '/v1/admin/fences/demo/a.txt', {}, []],
  ['POST', '/v1/admin/fences/rebase', json('POST', { reason: 'restored' }), []],
  ['POST', '/v1/admin/volumes/demo/adopt', json('POST', { reason: 'moved' }), []],
  ['GET', '/v1/admin/volumes', {}, []],
  ['GET', '/v1/admin/sessions', {}, []],
  ['DELETE', '/v1/admin/sessions/sr_1', { method: 'DELETE' }, []],
  ['GET', '/metrics', {}, 'any'],
  ['GET', '/healthz', {}, 'open'],
  ['GET', '/readyz', {}, 'open'],
  ['GET', '/', {}, 'open'],
  ['GET', '/docs/problems/stale_token', {}, 'open'],
  ['GET', '/openapi.json', {}, 'open'],
];

describe('who may do what', () => {
  test('every route, every role', async () => {
    server = await startHttp({ authenticated: true });
    server.deps.volumes.files.set('demo/a.txt', { bytes: Buffer.from('x'), mtimeNs: 1n });
    const wrong: string[] = [];
    for (const [method, path, init, allowed] of ROUTES) {
      for (const role of ['reader', 'writer', 'auditor', 'admin'] as const) {
        server.deps.principal = principal('p', [role]);
        const answer = await server.fetch(path, init);
        const may = allowed === 'open' || allowed === 'any' || role === 'admin' || allowed.includes(role);
        if ((answer.status === 403) === may || (may && answer.status >= 400)) wrong.push(`${role} ${method} ${path}: ${answer.status}`);
        await answer.body?.cancel();
      }
    }
    expect(wrong).toEqual([]);
  });

  test('without credentials only what is open answers; 401 says how to authenticate', async () => {
    server = await startHttp({ authenticated: true });
    server.deps.principal = refuse('unauthenticated', 'Who are you?');
    const wrong: string[] = [];
    for (const [method, path, init, allowed] of ROUTES) {
      const answer = await server.fetch(path, init);
      if ((answer.status === 401) === (allowed === 'open')) wrong.push(`${method} ${path}: ${answer.status}`);
      if (answer.status === 401 && answer.headers.get('www-authenticate') !== 'Bearer realm="fencegate"')
        wrong.push(`${method} ${path}: no challenge`);
      await answer.body?.cancel();
    }
    expect(wrong).toEqual([]);
    expect(server.deps.writer.calls).toEqual([]);
    expect(server.deps.refusals.early.every(({ code, principal: name }) => code === 'unauthenticated' && name === null)).toBe(true);
    expect(server.deps.refusals.early.length).toBeGreaterThan(5);
  });

  test('a scope opens whole segments only', async () => {
    server = await startHttp({ authenticated: true });
    server.deps.principal = principal('p', ['writer'], ['demo/in', 'other/']);
    const put = (path: string) => server.fetch(`/v1/files/${path}`, { method: 'PUT', body: 'x' }).then(({ status }) => status);
    expect([await put('demo/in/a'), await put('demo/in'), await put('other/x/y'), await put('demo/inside'), await put('demo/a')]).toEqual([
      201, 201, 201, 403, 403,
    ]);
    expect(await codeOf(await server.fetch('/v1/files/demo/'))).toBe('forbidden');
    expect(await codeOf(await server.fetch('/v1/leases', json('POST', { resources: ['demo/in/a', 'demo/b'] })))).toBe('forbidden');
    expect(await codeOf(await server.fetch('/v1/moves', json('POST', { from: 'demo/b', to: 'demo/in/b' })))).toBe('forbidden');
    expect(await (await server.fetch('/v1/locks')).json()).toMatchObject({ locks: [{ resource: 'other/b' }] });
    expect(await codeOf(await server.fetch('/v1/operations/op_1'))).toBe('operation_not_found');
  });

  test('a write refused by role or scope is audited before its answer, with principal and resource', async () => {
    server = await startHttp({ authenticated: true });
    server.deps.principal = principal('p', ['writer'], ['demo/in']);
    await server.fetch('/v1/files/demo/a.txt', { method: 'PUT', body: 'x', headers: { 'x-fencing-token': '7', 'x-client-id': 'batch' } });
    expect(server.deps.refusals.durable).toMatchObject([
      {
        action: 'put',
        volume: 'demo',
        path: 'a.txt',
        outcome: 'rejected',
        code: 'forbidden',
        status: 403,
        principal: 'p',
        clientId: 'batch',
        fencingToken: 7n,
        count: 1,
      },
    ]);
  });

  test('when the refusal cannot be made durable the answer is journal_unavailable', async () => {
    server = await startHttp({ authenticated: true });
    server.deps.principal = principal('p', ['writer'], ['demo/in']);
    server.deps.refusals.failure = new GatewayError('journal_unavailable', { detail: 'The journal cannot be written.' });
    expect(await codeOf(await server.fetch('/v1/files/demo/a.txt', { method: 'PUT', body: 'x' }))).toBe('journal_unavailable');
  });

  test('what the writer refuses is not audited a second time', async () => {
    server = await startHttp();
    server.deps.writer.refusal = refuse('stale_token', 'Stale.');
    await server.fetch('/v1/files/demo/a.txt', { method: 'PUT', body: 'x' });
    expect([server.deps.refusals.durable, server.deps.refusals.early]).toEqual([[], []]);
  });
});

describe('browsers', () => {
  test.each([
    ['localhost', 200],
    ['localhost:8080', 200],
    ['127.0.0.1:1', 200],
    ['127.1.2.3', 200],
    ['[::1]:8080', 200],
    ['app.localhost', 200],
    ['files.example', 200],
    ['FILES.example:9', 200],
    ['evil.example', 421],
    ['127.0.0.1.evil.example', 421],
    ['localhost.evil.example', 421],
    ['files.example@evil.example', 421],
  ])('without authentication Host: %s is %i', async (host, status) => {
    server = await startHttp({ allowedHosts: ['Files.example'] });
    const client = server.raw();
    client.send(`GET /healthz HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    expect((await client.answer()).status).toBe(status);
  });

  test('with authentication any Host is served', async () => {
    server = await startHttp({ authenticated: true });
    const client = server.raw();
    client.send('GET /healthz HTTP/1.1\r\nHost: files.example\r\n\r\n');
    expect((await client.answer()).status).toBe(200);
  });

  test.each([
    ['PUT', { origin: 'https://evil.example' }, 403],
    ['PUT', { origin: 'null' }, 403],
    ['PUT', { origin: 'https://app.example' }, 201],
    ['PUT', { origin: 'https://app.example', 'sec-fetch-site': 'cross-site' }, 201],
    ['PUT', { 'sec-fetch-site': 'cross-site' }, 403],
    ['PUT', { 'sec-fetch-site': 'same-origin' }, 201],
    ['GET', { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }, 404],
    ['DELETE', { origin: 'https://evil.example' }, 403],
    ['POST', { origin: 'https://evil.example' }, 403],
  ] as const)('%s with %j is %i', async (method, headers, status) => {
    server = await startHttp({ allowedOrigins: ['https://app.example'] });
    const client = server.raw();
    const lines = Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('');
    client.send(`${method} /v1/files/demo/${method === 'POST' ? 'd/' : 'a'} HTTP/1.1\r\nHost: localhost\r\n${lines}Content-Length: 0\r\n\r\n`);
    const answer = await client.answer();
    expect(answer.status).toBe(status);
    if (status === 403) expect(JSON.parse(answer.body)).toMatchObject({ code: 'cross_origin' });
    expect(answer.headers['access-control-allow-origin']).toBe(
      'origin' in headers && headers.origin === 'https://app.example' ? 'https://app.example' : undefined,
    );
  });

  test("the gateway's own origin may write", async () => {
    server = await startHttp();
    const client = server.raw();
    client.send('PUT /v1/files/demo/a HTTP/1.1\r\nHost: localhost:8080\r\nOrigin: http://localhost:8080\r\nContent-Length: 0\r\n\r\n');
    expect((await client.answer()).status).toBe(201);
  });

  test('a preflight of an allowed origin is answered without credentials; another gets no CORS header', async () => {
    server = await startHttp({ authenticated: true, allowedOrigins: ['https://app.example'] });
    server.deps.principal = refuse('unauthenticated', 'Who are you?');
    const preflight = (origin: string) =>
      server.fetch('/v1/files/demo/a.txt', {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': 'PUT', 'access-control-request-headers': 'x-fencing-token' },
      });
    const allowed = await preflight('https://app.example');
    expect([allowed.status, allowed.headers.get('access-control-allow-headers'), allowed.headers.get('access-control-allow-methods')]).toEqual([
      204,
      'x-fencing-token',
      'DELETE, GET, HEAD, OPTIONS, PATCH, PUT',
    ]);
    const other = await preflight('https://evil.example');
    expect([other.status, other.headers.get('access-control-allow-origin'), other.headers.get('access-control-allow-methods')]).toEqual([
      204,
      null,
      null,
    ]);
  });
});

describe('methods', () => {
  test.each([
    ['POST', '/v1/files/demo/a.txt', 'DELETE, GET, HEAD, OPTIONS, PATCH, PUT'],
    ['PATCH', '/v1/files/demo/d/', 'DELETE, GET, HEAD, OPTIONS, POST, PUT'],
    ['DELETE', '/v1/leases', 'OPTIONS, POST'],
    ['PUT', '/v1/leases/x', 'DELETE, GET, HEAD, OPTIONS'],
    ['GET', '/v1/admin/fences/rebase', 'OPTIONS, POST'],
    ['POST', '/healthz', 'GET, HEAD, OPTIONS'],
    ['DELETE', '/v1/locks/demo/a', 'GET, HEAD, OPTIONS'],
    ['PROPFIND', '/v1/files/demo/a.txt', 'DELETE, GET, HEAD, OPTIONS, PATCH, PUT'],
  ])('%s %s is 405 with Allow: %s', async (method, path, allow) => {
    server = await startHttp();
    const answer = await server.fetch(path, { method });
    expect([answer.status, answer.headers.get('allow'), await codeOf(answer)]).toEqual([405, allow, 'method_not_allowed']);
  });

  test('OPTIONS tells the methods, and of the server as a whole too', async () => {
    server = await startHttp();
    const answer = await server.fetch('/v1/leases', { method: 'OPTIONS' });
    expect([answer.status, answer.headers.get('allow')]).toEqual([204, 'OPTIONS, POST']);
    const client = server.raw();
    client.send('OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n');
    expect((await client.answer()).status).toBe(204);
  });

  test.each(['/nothing', '/v1/nothing', '/v1/files', '/v1/leases/x/y/z'])('%s is 404', async (path) => {
    server = await startHttp();
    expect(await codeOf(await server.fetch(path))).toBe('not_found');
  });

  test('HEAD works where GET does', async () => {
    server = await startHttp();
    for (const path of ['/', '/healthz', '/readyz', '/metrics', '/v1/volumes', '/v1/locks', '/v1/audit', '/v1/watch', '/v1/files/demo/']) {
      const answer = await server.fetch(path, { method: 'HEAD' });
      expect([path, answer.status, await answer.text()]).toEqual([path, 200, '']);
    }
  });
});

describe('limits', () => {
  test('requests over the rate are 429, per principal, and health is exempt', async () => {
    server = await startHttp({ authenticated: true, rateLimitPerSecond: 2 });
    server.deps.principal = principal('one', ['writer']);
    const statuses = [];
    for (let i = 0; i < 4; i += 1) statuses.push((await server.fetch('/v1/volumes')).status);
    expect(statuses).toEqual([200, 200, 429, 429]);
    const refused = await server.fetch('/v1/volumes');
    expect([refused.headers.get('retry-after'), await codeOf(refused)]).toEqual(['1', 'rate_limited']);
    server.deps.principal = principal('two', ['writer']);
    expect((await server.fetch('/v1/volumes')).status).toBe(200);
    expect((await server.fetch('/healthz')).status).toBe(200);
  });

  test('a principal may have so many uploads at once; the place is given back', async () => {
    server = await startHttp({ uploadsPerPrincipalMax: 1 });
    const chunk = new Promise<void>((resolve) => {
      server.deps.writer.onChunk = () => resolve();
    });
    const client = server.raw();
    client.send('PUT /v1/files/demo/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n\r\nabc');
    await chunk;
    expect(await codeOf(await server.fetch('/v1/files/demo/b', { method: 'PUT', body: 'x' }))).toBe('too_many_uploads');
    client.send('def');
    expect((await client.answer()).status).toBe(201);
    expect((await server.fetch('/v1/files/demo/b', { method: 'PUT', body: 'x' })).status).toBe(201);
  });

  test('while draining new work is 503 with Connection: close; reads, renewals and releases go on', async () => {
    server = await startHttp();
    server.deps.draining = true;
    for (const [path, init] of [
      ['/v1/files/demo/a', { method: 'PUT', body: 'x' }],
      ['/v1/leases', json('POST', { resource: 'demo/a' })],
      ['/v1/moves', json('POST', { from: 'demo/a', to: 'demo/b' })],
    ] as const) {
      const answer = await server.fetch(path, init);
      expect([answer.status, answer.headers.get('connection'), await codeOf(answer)]).toEqual([503, 'close', 'draining']);
    }
    expect((await server.fetch('/v1/leases/x/renew', { method: 'POST' })).status).toBe(200);
    expect((await server.fetch('/v1/leases/x', { method: 'DELETE' })).status).toBe(204);
    expect((await server.fetch('/v1/locks')).status).toBe(200);
    expect((await server.fetch('/healthz')).status).toBe(200);
    expect((await server.fetch('/readyz')).status).toBe(503);
  });
});

describe('identity of requests', () => {
  test.each([
    ['abc-123', true],
    ['a'.repeat(128), true],
    ['a'.repeat(129), false],
    ['has space', false],
    ['quo"te', false],
  ])('X-Request-Id %s is kept: %s', async (id, kept) => {
    server = await startHttp();
    const answer = await server.fetch('/healthz', { headers: { 'x-request-id': id } });
    expect(answer.headers.get('x-request-id') === id).toBe(kept);
    expect(answer.headers.get('x-request-id')).toMatch(/./);
  });

  test('the log has the pattern of the route, never a lease, session or token', async () => {
    server = await startHttp();
    await server.fetch('/v1/leases/TOPSECRET/renew', { method: 'POST' });
    await server.fetch('/v1/leases/TOPSECRET', { method: 'DELETE', headers: { authorization: 'Bearer TOPSECRET', 'x-lease-id': 'TOPSECRET' } });
    await server.fetch('/v1/sessions/TOPSECRET/heartbeat', { method: 'POST' });
    await server.fetch('/v1/leases/TOPSECRET/nothing', { method: 'POST' });
    server.deps.locks.refusal = new Error('broken') as GatewayError;
    await server.fetch('/v1/leases/TOPSECRET/renew', { method: 'POST' });
    await expect.poll(() => server.deps.logLines.length).toBeGreaterThanOrEqual(6);
    const log = server.deps.logLines.join('');
    expect(log).toContain('/v1/leases/:lease_id/renew');
    expect(log).not.toContain('TOPSECRET');
  });
});
