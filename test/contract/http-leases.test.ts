import request from 'supertest';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { refuse } from '../../src/domain/errors.ts';
import { fencingToken } from '../../src/domain/fencing-token.ts';
import { leaseView } from '../support/fake-locks.ts';
import { anybody, principal } from '../support/http-fakes.ts';
import { startHttp, type TestServer } from '../support/http-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startHttp();
});
afterAll(() => server.close());
beforeEach(() => {
  Object.assign(server.deps.locks, { refusal: null, view: leaseView(), created: true });
  server.deps.locks.calls.length = 0;
  server.deps.refusals.durable.length = 0;
  server.deps.refusals.durable.length = 0;
});
const api = () => request(server.url);
const lastCall = () => server.deps.locks.calls.at(-1);

const HELD = {
  lease_id: 'secret-lease',
  lease_ref: 'lr_1',
  resource: 'demo/a.txt',
  resources: ['demo/a.txt'],
  mode: 'exclusive',
  state: 'held',
  fencing_token: '4103',
  signed_token: null,
  client_id: null,
  session_id: 'secret-session',
  priority: 5,
  hold_count: 1,
  hold_id: null,
  ttl_ms: 30_000,
  expires_in_ms: 30_000,
  hold_expires_in_ms: null,
  lease_expires_at: '2026-01-01T00:00:30.000Z',
  granted_at: '2026-01-01T00:00:00.000Z',
  queue_position: null,
  acquired_znode_path: null,
  reason: null,
  cycle: null,
  metadata: null,
};

const CYCLE = [
  { waiterLeaseRef: 'lr_1', waiterClientId: 'one', resource: 'demo/a' },
  { waiterLeaseRef: 'lr_2', waiterClientId: null, resource: 'other/b' },
];
const CYCLE_JSON = [
  { lease_ref: 'lr_1', client_id: 'one', waits_for: 'demo/a' },
  { lease_ref: 'lr_2', client_id: null, waits_for: 'other/b' },
];

test('a lease that gave way to a deadlock shows the cycle', async () => {
  server.deps.locks.view = leaseView({ state: 'cancelled', fencingToken: null, reason: 'deadlock', cycle: CYCLE });
  expect((await api().get('/v1/leases/secret-lease').expect(200)).body).toMatchObject({ reason: 'deadlock', cycle: CYCLE_JSON });
});

test('the cycle of an event leaves out the names that lie outside the scope of who watches', async () => {
  const at = '2026-01-01T00:00:00.000Z';
  const event = { type: 'deadlock' as const, seq: 9, at, resource: 'demo/a', leaseRef: 'lr_1', clientId: 'one', mode: 'shared' as const };
  server.deps.feed = [{ ...event, fencingToken: null, reason: 'deadlock', cycle: CYCLE }];
  server.deps.principal = principal('reader', ['reader'], ['demo']);
  const answer = await server.fetch('/v1/watch/demo/a', { headers: { authorization: 'Bearer x' } });
  const text = await answer.text();
  server.deps.principal = anybody;
  expect(text).toContain('"waits_for":"demo/a"');
  expect(text).toContain('{"lease_ref":"lr_2","client_id":null,"waits_for":null}');
});

test('a lease is taken with the defaults of the contract', async () => {
  const answer = await api().post('/v1/leases').send({ resource: 'demo/a.txt' }).expect(201);
  expect(answer.body).toEqual(HELD);
  expect(answer.headers['location']).toBe('/v1/leases/secret-lease');
  expect(lastCall()?.args[1]).toMatchObject({
    mode: 'exclusive',
    ttlMs: null,
    waitMs: 0,
    maxWaitMs: null,
    maxHoldMs: null,
    priority: 5,
    clientId: null,
    sessionId: null,
    holdId: null,
    lockDelayMs: null,
    metadata: null,
  });
});

test('every member of the request reaches the lock service', async () => {
  await api()
    .post('/v1/leases')
    .send({
      resources: ['demo/a', 'demo/b'],
      mode: 'shared',
      ttl_ms: 5_000,
      wait_ms: 10,
      max_wait_ms: 20,
      max_hold_ms: 3_000,
      priority: 9,
      client_id: 'batch',
      session_id: 's',
      hold_id: 'h',
      lock_delay_ms: 40,
      metadata: { job: 7 },
    })
    .expect(201);
  expect(lastCall()?.args[1]).toMatchObject({
    mode: 'shared',
    ttlMs: 5_000,
    waitMs: 10,
    maxWaitMs: 20,
    maxHoldMs: 3_000,
    priority: 9,
    clientId: 'batch',
    sessionId: 's',
    holdId: 'h',
    lockDelayMs: 40,
    metadata: { job: 7 },
  });
  expect(lastCall()?.args[1]).toMatchObject({ resources: [{ name: 'demo/a' }, { name: 'demo/b' }] });
});

test('re-entrant is 200, waiting is 202 with its place', async () => {
  server.deps.locks.created = false;
  await api().post('/v1/leases').send({ resource: 'demo/a.txt' }).expect(200);
  server.deps.locks.view = leaseView({ state: 'waiting', fencingToken: null, queuePosition: 3 });
  const answer = await api().post('/v1/leases').send({ resource: 'demo/a.txt', wait_ms: 1 }).expect(202);
  expect(answer.body).toMatchObject({ state: 'waiting', fencing_token: null, queue_position: 3 });
});

test('a token above 2^53 keeps its digits, and a lease over several has no single resource', async () => {
  const [first] = leaseView().resources;
  server.deps.locks.view = leaseView({
    fencingToken: fencingToken(9_223_372_036_854_775_807n),
    resources: first === undefined ? [] : [first, { ...first, name: 'demo/b' }],
  });
  const answer = await api().get('/v1/leases/secret-lease').expect(200);
  expect(answer.body).toMatchObject({ fencing_token: '9223372036854775807', resource: null, resources: ['demo/a.txt', 'demo/b'] });
});

test.each([
  ['nothing', {}, 'invalid_request'],
  ['both forms', { resource: 'demo/a', resources: ['demo/a', 'demo/b'] }, 'invalid_request'],
  ['one of several', { resources: ['demo/a'] }, 'invalid_request'],
  ['a resource twice', { resources: ['demo/a', 'demo/a'] }, 'invalid_request'],
  ['an unknown member', { resource: 'demo/a', tttl_ms: 5 }, 'invalid_request'],
  ['a number as text', { resource: 'demo/a', ttl_ms: '5000' }, 'invalid_request'],
  ['a fraction', { resource: 'demo/a', ttl_ms: 1.5 }, 'invalid_request'],
  ['a wait over the limit', { resource: 'demo/a', wait_ms: 60_001 }, 'invalid_request'],
  ['a priority over 9', { resource: 'demo/a', priority: 10 }, 'invalid_request'],
  ['another mode', { resource: 'demo/a', mode: 'write' }, 'invalid_request'],
  ['too much metadata', { resource: 'demo/a', metadata: { x: 'x'.repeat(5_000) } }, 'invalid_request'],
  ['a control character in the label', { resource: 'demo/a', client_id: 'a\nb' }, 'invalid_request'],
  ['a trailing slash', { resource: 'demo/a/' }, 'invalid_path'],
  ['no path', { resource: 'demo/' }, 'invalid_path'],
  ['dots', { resource: 'demo/../a' }, 'invalid_path'],
  ['a reserved name', { resource: 'demo/.fencegate/x' }, 'invalid_path'],
  ['a NUL', { resource: 'demo/a\u0000' }, 'invalid_path'],
])('a lease request with %s is 400', async (_what, body, code) => {
  const answer = await api().post('/v1/leases').send(body).expect(400);
  expect(answer.body).toMatchObject({ code });
  expect(server.deps.locks.calls).toEqual([]);
});

test('a lease on a lock-only volume is taken; on no volume it is 404, audited', async () => {
  await api().post('/v1/leases').send({ resource: 'jobs/nightly' }).expect(201);
  const answer = await api().post('/v1/leases').send({ resource: 'nowhere/a' }).expect(404);
  expect(answer.body).toMatchObject({ code: 'volume_not_found' });
  expect(server.deps.refusals.durable).toMatchObject([{ action: 'lease_refuse', code: 'volume_not_found' }]);
});

test('what is not JSON is told so', async () => {
  await api()
    .post('/v1/leases')
    .type('json')
    .send('{"resource":')
    .expect(400)
    .expect(({ body }) => {
      expect(body).toMatchObject({ code: 'invalid_request' });
    });
  await api()
    .post('/v1/leases')
    .type('form')
    .send('resource=demo%2Fa')
    .expect(415)
    .expect(({ body }) => {
      expect(body).toMatchObject({ code: 'unsupported_media_type' });
    });
  await api().post('/v1/leases').type('json').send('{"resource":"demo/a","__proto__":{"x":1}}').expect(400);
  await api()
    .post('/v1/leases')
    .type('json')
    .send(JSON.stringify({ resource: 'x'.repeat(1_100_000) }))
    .expect(413);
});

test.each(['application/json', 'application/x-www-form-urlencoded', 'text/plain', 'nonsense/x'])(
  'renew takes an empty body called %s',
  async (type) => {
    await api().post('/v1/leases/secret-lease/renew').set('content-type', type).set('content-length', '0').expect(200);
    expect(lastCall()).toMatchObject({ name: 'renew' });
  },
);

test('convert is 200 when done and 202 while it waits for the other readers', async () => {
  await api().post('/v1/leases/x/convert').send({ mode: 'exclusive' }).expect(200);
  server.deps.locks.view = leaseView({ mode: 'shared' });
  await api().post('/v1/leases/x/convert').send({ mode: 'exclusive' }).expect(202);
  await api().post('/v1/leases/x/convert').send({ mode: 'shared' }).expect(200);
});

test.each([undefined, {}, { mode: null }, { mode: 'write' }])('convert with %j is 400: which mode is never guessed', async (body) => {
  const answer = await api().post('/v1/leases/x/convert').send(body).expect(400);
  expect(answer.body).toMatchObject({ code: 'invalid_request' });
  expect(server.deps.locks.calls).toEqual([]);
});

test.each([
  ['GET', '/v1/admin/sessions?limits=1'],
  ['GET', '/v1/admin/sessions?limit=0'],
  ['GET', '/v1/admin/volumes?limit=1'],
  ['GET', '/v1/admin/doctor?limit=1'],
  ['GET', '/v1/locks/demo/a?wait_ms=1'],
  ['GET', '/v1/watch/demo/a?from=1'],
  ['POST', '/v1/leases/x/renew?ttl_ms=5000'],
  ['POST', '/v1/sessions/s/heartbeat?ttl_ms=5000'],
  ['DELETE', '/v1/sessions/s?force=true'],
] as const)('%s %s is 400: a parameter that is not known is not passed over', async (method, target) => {
  const answer = await server.fetch(target, { method });
  expect([answer.status, await answer.json()]).toMatchObject([400, { code: 'invalid_request' }]);
  expect(server.deps.locks.calls).toEqual([]);
});

test('a heartbeat takes an empty body or an empty object, and refuses what it does not know', async () => {
  await api().post('/v1/sessions/s/heartbeat').expect(200);
  await api().post('/v1/sessions/s/heartbeat').send({}).expect(200);
  for (const body of [{ ttl_ms: 5_000 }, [], 'null']) {
    server.deps.locks.calls.length = 0;
    const answer = await api().post('/v1/sessions/s/heartbeat').type('json').send(JSON.stringify(body)).expect(400);
    expect(answer.body).toMatchObject({ code: 'invalid_request' });
    expect(server.deps.locks.calls).toEqual([]);
  }
});

test('the long poll hands on how long to wait', async () => {
  await api().get('/v1/leases/abc?wait_ms=250').expect(200);
  expect(lastCall()?.args.slice(1, 3)).toEqual(['abc', 250]);
  await api().get('/v1/leases/abc?wait_ms=60001').expect(400);
  await api().get('/v1/leases/abc?wait_ms=abc').expect(400);
});

test('release takes a hold, or all', async () => {
  await api().delete('/v1/leases/abc?hold_id=h1').expect(204);
  expect(lastCall()?.args.slice(1)).toEqual(['abc', { holdId: 'h1', all: false }]);
  await api().delete('/v1/leases/abc?all=true').expect(204);
  expect(lastCall()?.args.slice(1)).toEqual(['abc', { holdId: null, all: true }]);
});

test.each([
  ['lock_not_acquired', 409],
  ['deadlock', 409],
  ['queue_full', 429],
  ['ttl_out_of_range', 400],
  ['coordinator_suspended', 503],
  ['session_ended', 409],
] as const)('%s of the lock service leaves as %i and is not audited twice', async (code, status) => {
  server.deps.locks.refusal = refuse(code, 'No.', { min_ms: 1_000 });
  const answer = await api().post('/v1/leases').send({ resource: 'demo/a' }).expect(status);
  expect(answer.body).toMatchObject({ code, min_ms: 1_000 });
  expect(server.deps.refusals.durable).toEqual([]);
});

test('sessions are made, renewed one by one or many at once, and ended', async () => {
  const made = await api().post('/v1/sessions').expect(201);
  expect(made.body).toEqual({ session_id: 'secret-session', session_ref: 'sr_1', ttl_ms: 30_000, expires_in_ms: 30_000, lease_count: 0 });
  await api().post('/v1/sessions').send({ ttl_ms: 5_000, client_id: 'batch' }).expect(201);
  expect(lastCall()?.args[1]).toEqual({ ttlMs: 5_000, clientId: 'batch' });
  expect((await api().post('/v1/sessions/s/heartbeat').expect(200)).body).toEqual({ expires_in_ms: 30_000, lost: [] });
  const many = await api()
    .post('/v1/sessions/heartbeats')
    .send({ session_ids: ['s', 'gone'] })
    .expect(200);
  expect(many.body).toEqual({
    sessions: [
      { session_id: 's', expires_in_ms: 30_000, lost: [], code: null },
      { session_id: 'gone', expires_in_ms: null, lost: [], code: 'session_not_found' },
    ],
  });
  await api()
    .post('/v1/sessions/heartbeats')
    .send({ session_ids: Array.from({ length: 1_001 }, () => 's') })
    .expect(400);
  await api().delete('/v1/sessions/s').expect(204);
});

test('the lock of a name never locked has empty lists', async () => {
  const answer = await api().get('/v1/locks/demo/a%20b').expect(200);
  expect(answer.body).toEqual({
    resource: 'demo/a b',
    mode: null,
    high_water_mark: null,
    holders: [],
    waiters: [],
    queue_length: 0,
    wait_estimate_ms: null,
    held_back_ms: 0,
    znode_path: '/locks/demo/x',
    foreign_contenders: [],
    fence_level: 'incarnation',
  });
  await api().get('/v1/locks/demo/a/').expect(400);
  await api().get('/v1/locks/demo/.fencegate').expect(404);
});

test('locks are listed with their filters, and an unknown filter is refused', async () => {
  await api().get('/v1/locks?volume=demo&state=held&older_than_ms=5&limit=7&cursor=c').expect(200);
  expect(server.deps.locks.calls.find(({ name }) => name === 'locks')?.args[0]).toEqual({
    volume: 'demo',
    state: 'held',
    olderThanMs: 5,
    limit: 7,
    cursor: 'c',
  });
  await api().get('/v1/locks?stat=held').expect(400);
  await api().get('/v1/locks?volume=nowhere').expect(404);
});

test('a watch sends events with their seq as id, and a reset with the present state', async () => {
  const at = '2026-01-01T00:00:00.000Z';
  const nothing = { resource: null, leaseRef: null, clientId: null, mode: null, fencingToken: null, cycle: null };
  server.deps.feed = [
    { type: 'reset', seq: 6, at, locks: [] },
    {
      type: 'granted',
      seq: 7,
      at,
      resource: 'demo/a',
      leaseRef: 'lr_1',
      clientId: null,
      mode: 'exclusive',
      fencingToken: fencingToken(4103n),
      reason: null,
      cycle: null,
    },
    { type: 'suspended', seq: 8, at, ...nothing, reason: 'no contact' },
    { type: 'deadlock', seq: 9, at, ...nothing, resource: 'demo/a', reason: 'deadlock', cycle: CYCLE },
  ];
  const answer = await server.fetch('/v1/watch/demo/a', { headers: { 'last-event-id': '3' } });
  expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  expect(await answer.text()).toBe(
    [
      ': watching\n\n',
      `id: 6\nevent: reset\ndata: {"seq":6,"at":"${at}","locks":[]}\n\n`,
      `id: 7\nevent: granted\ndata: {"seq":7,"at":"${at}","resource":"demo/a","lease_ref":"lr_1","client_id":null,"mode":"exclusive","fencing_token":"4103","reason":null,"cycle":null}\n\n`,
      `id: 8\nevent: suspended\ndata: {"seq":8,"at":"${at}","resource":null,"lease_ref":null,"client_id":null,"mode":null,"fencing_token":null,"reason":"no contact","cycle":null}\n\n`,
      `id: 9\nevent: deadlock\ndata: {"seq":9,"at":"${at}","resource":"demo/a","lease_ref":null,"client_id":null,"mode":null,"fencing_token":null,"reason":"deadlock","cycle":${JSON.stringify(CYCLE_JSON)}}\n\n`,
    ].join(''),
  );
});

test('a watch of a session that is gone is 404; a bad Last-Event-ID is 400', async () => {
  await api().get('/v1/sessions/gone/watch').expect(404);
  await api().get('/v1/watch').set('last-event-id', 'x').expect(400);
  await api().get('/v1/watch?volume=nowhere').expect(404);
});
