import request from 'supertest';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { principal, record } from '../support/http-fakes.ts';
import { startHttp, type TestServer } from '../support/http-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startHttp({ authenticated: true });
});
afterAll(() => server.close());
beforeEach(() => {
  server.deps.principal = principal('auditor', ['auditor']);
  server.deps.records = [record(2), record(1)];
  server.deps.auditQueries.length = 0;
});
const api = () => request(server.url);

const AS_JSON = {
  seq: 2,
  at: '2026-01-01T00:00:00.000Z',
  action: 'put',
  resource: 'demo/a.txt',
  volume: 'demo',
  path: 'a.txt',
  outcome: 'committed',
  code: null,
  status: 201,
  principal: 'anonymous',
  client_id: null,
  remote_address: '127.0.0.1',
  request_id: 'req_1',
  operation_id: 'op_1',
  lease_ref: 'lr_1',
  fencing_token: '4103',
  high_water_mark: null,
  size_bytes: 3,
  digest: null,
  etag_before: null,
  etag_after: '"1-2-3"',
  duration_ms: 4,
  fence_level: 'incarnation',
  count: 1,
  previous_hash: '00',
  hash: '01',
  detail: null,
};

test('a page of records, newest first, after counted refusals were made durable', async () => {
  const before = server.deps.refusals.flushes;
  const answer = await api().get('/v1/audit').expect(200);
  expect(answer.body).toEqual({ records: [AS_JSON, { ...AS_JSON, seq: 1 }], next_cursor: null });
  expect(server.deps.refusals.flushes).toBe(before + 1);
  expect(server.deps.auditQueries).toEqual([{ filter: {}, page: { order: 'desc', limit: 100, cursor: null } }]);
});

test('every filter reaches the journal, times in one form', async () => {
  await api()
    .get(
      '/v1/audit?volume=demo&path=a%2Fb&path_prefix=a&principal=p&client_id=c&lease_ref=l&token=4103&action=put&outcome=rejected&code=stale_token&request_id=r&operation_id=o&since=2026-01-01T01:00:00%2B01:00&until=2026-02-01T00:00:00Z&order=asc&limit=5&cursor=x',
    )
    .expect(200);
  expect(server.deps.auditQueries).toEqual([
    {
      filter: {
        volume: 'demo',
        path: 'a/b',
        pathPrefix: 'a',
        principal: 'p',
        clientId: 'c',
        leaseRef: 'l',
        token: 4103n,
        action: 'put',
        outcome: 'rejected',
        code: 'stale_token',
        requestId: 'r',
        operationId: 'o',
        since: '2026-01-01T00:00:00.000Z',
        until: '2026-02-01T00:00:00.000Z',
      },
      page: { order: 'asc', limit: 5, cursor: 'x' },
    },
  ]);
});

test.each([
  'limit=1001',
  'limit=0',
  'order=up',
  'action=nothing',
  'since=yesterday',
  'since=2026-02-30T00:00:00Z',
  'token=-1',
  'token=9223372036854775808',
  'volum=demo',
  'code=nothing',
  'path=../a',
])('?%s is 400', async (query) => {
  await api().get(`/v1/audit?${query}`).expect(400);
  expect(server.deps.auditQueries).toEqual([]);
});

test('NDJSON streams one record per line', async () => {
  const answer = await server.fetch('/v1/audit?order=asc', { headers: { accept: 'application/x-ndjson' } });
  expect(answer.headers.get('content-type')).toBe('application/x-ndjson');
  expect(
    (await answer.text())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown),
  ).toEqual([AS_JSON, { ...AS_JSON, seq: 1 }]);
  expect(server.deps.auditQueries).toEqual([{ filter: {}, order: 'asc' }]);
});

test('CSV has a head, and cells that look like formulas are escaped', async () => {
  server.deps.records = [record(1, { clientId: '=HYPERLINK("http://evil")', path: '-1', principal: '+1', requestId: '@x', volume: 'demo' })];
  const answer = await server.fetch('/v1/audit', { headers: { accept: 'text/csv' } });
  expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8');
  const [head, row] = (await answer.text()).split('\r\n');
  expect(head).toBe(Object.keys(AS_JSON).join(','));
  expect(row).toContain(`"'=HYPERLINK(""http://evil"")"`);
  expect(row).toContain(",'-1,");
  expect(row).toContain(",'+1,");
  expect(row).toContain(",'@x,");
});

test.each([
  ['*/*', 'application/json'],
  ['text/html, application/json;q=0.9, */*;q=0.1', 'application/json'],
  ['text/csv;q=0.5, application/x-ndjson', 'application/x-ndjson'],
  ['text/*', 'text/csv'],
  ['application/json, text/csv', 'application/json'],
  ['image/png', 'application/json'],
])('Accept: %s is answered as %s', async (accept, type) => {
  const answer = await server.fetch('/v1/audit', { headers: { accept } });
  expect(answer.headers.get('content-type')).toContain(type);
  await answer.text();
});

test('an auditor with a scope sees only what lies in it', async () => {
  server.deps.principal = principal('auditor', ['auditor'], ['demo/in']);
  server.deps.records = [
    record(4, { volume: null, path: null }),
    record(3, { path: 'in/x' }),
    record(2, { path: 'inside' }),
    record(1, { volume: 'other' }),
  ];
  const answer = await api().get('/v1/audit').expect(200);
  expect((answer.body as { records: { seq: number }[] }).records.map(({ seq }) => seq)).toEqual([3]);
});

test('the chain is verified from a given record', async () => {
  const answer = await api().get('/v1/audit/verify?from_seq=1').expect(200);
  expect(answer.body).toEqual({
    valid: true,
    records: 2,
    first_seq: 1,
    last_seq: 2,
    head_hash: '01',
    first_bad_seq: null,
    keyed_from_seq: 1,
  });
});

test('operations are found by id, key or request', async () => {
  const answer = await api().get('/v1/operations/op_1').expect(200);
  expect(answer.body).toEqual({
    operation_id: 'op_1',
    action: 'put',
    resource: 'demo/a.txt',
    outcome: 'committed',
    code: null,
    at: '2026-01-01T00:00:00.000Z',
    etag: '"1-2-3"',
    fencing_token: '4103',
  });
  await api().get('/v1/operations/op_2').expect(404);
  await api().get('/v1/operations?request_id=r').expect(404);
  await api().get('/v1/operations').expect(400);
  await api().get('/v1/operations?request_id=r&idempotency_key=k').expect(400);
});

test('administration answers in the words of the contract', async () => {
  server.deps.principal = principal('root', ['admin']);
  const broken = await api().post('/v1/admin/locks/break').send({ resource: 'demo/a.txt', reason: 'stuck' }).expect(200);
  expect(broken.body).toEqual({
    resource: 'demo/a.txt',
    state: 'broken',
    high_water_mark: '9',
    deadline: null,
    leases: [
      { lease_ref: 'lr_1', client_id: null, mode: 'exclusive', fencing_token: '8', operation_id: 'op_2', committed: [], committed_truncated: false },
    ],
  });
  await api().post('/v1/admin/locks/break').send({ resource: 'demo/a.txt', reason: 'stuck', grace_ms: 5_000 }).expect(202);
  await api().post('/v1/admin/locks/break').send({ resource: 'demo/a.txt' }).expect(400);
  expect((await api().get('/v1/admin/doctor').expect(200)).body).toMatchObject({ healthy: true, wait_for: [], sessions: [{ session_ref: 'sr_1' }] });
  expect((await api().get('/v1/admin/doctor').expect(200)).text).not.toContain('secret-session');
  expect((await api().post('/v1/admin/doctor/fixes').send({ finding_id: 'f', dry_run: true }).expect(200)).body).toEqual({
    dry_run: true,
    steps: ['raise the mark'],
  });
  await api().post('/v1/admin/doctor/fixes').send({ finding_id: 'gone' }).expect(404);
  await api().post('/v1/admin/doctor/fixes').send({ finding_id: 'f', force: true, reason: 'host is down' }).expect(200);
  for (const body of [
    { finding_id: 'f', force: true },
    { finding_id: 'f', force: true, reason: '' },
    { finding_id: 'f', force: 'yes' },
  ])
    await api().post('/v1/admin/doctor/fixes').send(body).expect(400);
  expect((await api().get('/v1/admin/fences/demo/a.txt').expect(200)).body).toEqual({
    resource: 'demo/a.txt',
    high_water_mark: '9',
    lease_ref: null,
    principal: null,
    ever_named: false,
    floor: null,
  });
  expect((await api().post('/v1/admin/fences/rebase').send({ reason: 'restored' }).expect(200)).body).toEqual({ base: '10', volumes: ['demo'] });
  expect((await api().post('/v1/admin/volumes/demo/adopt').send({ reason: 'moved' }).expect(200)).body).toMatchObject({
    name: 'demo',
    state: 'open',
  });
  const page = await api().get('/v1/admin/sessions?limit=7&cursor=3').expect(200);
  expect(page.text).not.toContain('secret-session');
  expect(page.body).toEqual({ sessions: [expect.objectContaining({ session_ref: 'sr_1' })], next_cursor: '1' });
  expect(server.deps.locks.calls.at(-1)).toEqual({ name: 'sessionPage', args: [{ limit: 7, cursor: '3' }] });
  await api().delete('/v1/admin/sessions/sr_1').expect(204);
  expect((await api().get('/v1/admin/volumes').expect(200)).body).toMatchObject({ volumes: [{ name: 'demo', path: '/srv/demo', read_only: false }] });
});

test('health, readiness, metrics and volumes', async () => {
  expect((await api().get('/healthz').expect(200)).body).toEqual({ status: 'ok' });
  expect((await api().get('/readyz').expect(200)).body).toEqual({
    ready: true,
    journal: { healthy: true, head_seq: 2, head_hash: '01', reason: null },
    coordinator: { kind: 'embedded', state: 'connected', session_ms: null, proof_age_ms: null, reason: null },
    volumes: [
      {
        name: 'demo',
        state: 'open',
        fence_level: 'incarnation',
        reason: null,
        total_bytes: null,
        free_bytes: null,
        total_inodes: null,
        free_inodes: null,
      },
    ],
  });
  const metrics = await api().get('/metrics').expect(200);
  expect([metrics.headers['content-type'], metrics.text]).toEqual(['text/plain; version=0.0.4; charset=utf-8', 'up 1\n']);
  expect((await api().get('/v1/volumes').expect(200)).body).toMatchObject({
    volumes: [{ name: 'demo', files: true }, { name: 'other' }, { name: 'jobs', files: false }],
  });
});
