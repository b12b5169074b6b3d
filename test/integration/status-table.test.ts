import { execFileSync } from 'node:child_process';
import { linkSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ERROR_CODES, type ErrorCode } from '../../src/domain/errors.ts';
import type { Step } from '../../src/domain/steps.ts';
import { type Answer, eventually, type GatewayClient, jsonOf, type LeaseJson, type RecordJson, textOf } from '../support/gateway-client.ts';
import type { RawAnswer, RawConnection } from '../support/raw-http.ts';
import { ask, head } from '../support/raw-request.ts';
import { quietSnapshot, volumeSnapshot } from '../support/volume-snapshot.ts';
import { bearerOf, principalsFile, startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/**
 * The table of status codes, each code by a real request: the problem document, `Retry-After` where it is due, its one audit record,
 * and nothing changed on the volumes.
 */

/** What the request of a row works with. */
interface Bench {
  readonly client: GatewayClient;
  readonly raw: () => RawConnection;
  readonly url: string;
  /** The next write that reaches this step meets an error that nobody foresaw. */
  readonly failAt: (step: Step) => void;
}

/** Where the record of the refusal is looked for. `null`: reads and renewals are no decisions and have none. */
type Expected = { readonly action: string; readonly path?: string; readonly outcome?: string; readonly token?: string } | null;

interface Row {
  readonly status: number;
  /** Prepares, then makes the one request that is refused. Preparations end with `ready()`. */
  readonly make: (bench: Bench, ready: () => Promise<void>) => Promise<Answer>;
  readonly audit: Expected;
  readonly members?: Readonly<Record<string, unknown>>;
  readonly on?: 'guarded' | 'narrow';
}

/** Longer than any head that is read. */
const LONG = 'x'.repeat(20_000);

const fromRaw = ({ status, headers, body }: RawAnswer): Answer => ({ status, headers, bytes: Buffer.from(body, 'latin1') });
const raw = async ({ raw: open }: Bench, request: string): Promise<Answer> => fromRaw(await ask(open(), request));
const put = (path: string, ...headers: string[]): string => `${head(`PUT ${path}`, ...headers, 'Content-Length: 1')}x`;
const ended = async ({ client }: Bench, name: string): Promise<LeaseJson> => {
  const lease = await client.lease(name);
  await client.release(lease);
  return lease;
};
const session = async ({ client }: Bench): Promise<string> => jsonOf<{ session_id: string }>(await client.post('/v1/sessions', {})).session_id;

const TABLE: Readonly<Partial<Record<ErrorCode, Row>>> = {
  invalid_token: {
    status: 400,
    make: ({ client }) => client.put('v/kept', 'x', { 'x-fencing-token': '01' }),
    audit: { action: 'put', path: 'kept' },
  },
  invalid_path: { status: 400, make: (bench) => raw(bench, put('/v1/files/v/a%2Fb')), audit: { action: 'put' } },
  invalid_request: {
    status: 400,
    make: ({ client }) => client.put('v/kept', 'x', { 'content-range': 'bytes 0-0/1' }),
    audit: { action: 'put', path: 'kept' },
  },
  digest_mismatch: {
    status: 400,
    make: ({ client }) => client.put('v/kept', 'x', { 'content-digest': `sha-256=:${Buffer.alloc(32).toString('base64')}:` }),
    audit: { action: 'put', path: 'kept' },
  },
  incomplete_body: {
    status: 400,
    make: async (bench) => {
      const connection = bench.raw();
      connection.send(`${head('PUT /v1/files/v/kept', 'Content-Length: 100')}half`);
      connection.socket.end();
      return fromRaw(await connection.answer());
    },
    audit: { action: 'put', path: 'kept', outcome: 'aborted' },
  },
  range_length_mismatch: { status: 400, make: ({ client }) => client.patch('v/kept', 'bytes=0-9', 'xyz'), audit: { action: 'patch', path: 'kept' } },
  ttl_out_of_range: {
    status: 400,
    make: ({ client }) => client.post('/v1/leases', { resource: 'v/ttl', ttl_ms: 999 }),
    audit: { action: 'lease_refuse', path: 'ttl' },
    members: { min_ms: 1_000, max_ms: 3_600_000 },
  },
  unauthenticated: { status: 401, on: 'guarded', make: ({ client }) => client.put('v/kept', 'x'), audit: { action: 'put' } },
  forbidden: {
    status: 403,
    on: 'guarded',
    make: ({ client }) => client.as(bearerOf('reader')).put('v/kept', 'x'),
    audit: { action: 'put', path: 'kept' },
  },
  token_not_issued: {
    status: 403,
    make: ({ client }) => client.put('v/kept', 'x', { 'x-fencing-token': '9223372036854775807' }),
    audit: { action: 'put', path: 'kept', token: '9223372036854775807' },
    members: { presented_token: '9223372036854775807' },
  },
  not_lease_owner: {
    status: 403,
    make: async ({ client }, ready) => {
      const lease = await client.lease('v/owned');
      await ready();
      return client.put('v/owned', 'x', { 'x-fencing-token': lease.fencing_token, 'x-lease-id': 'of-somebody-else' });
    },
    audit: { action: 'put', path: 'owned' },
  },
  volume_read_only: { status: 403, make: ({ client }) => client.put('still/kept', 'x'), audit: { action: 'put', path: 'kept' } },
  cross_origin: { status: 403, make: ({ client }) => client.put('v/kept', 'x', { origin: 'https://evil.example' }), audit: { action: 'put' } },
  not_found: { status: 404, make: ({ client }) => client.delete('v/absent'), audit: { action: 'delete', path: 'absent' } },
  volume_not_found: { status: 404, make: ({ client }) => client.put('nowhere/a', 'x'), audit: { action: 'put', path: 'a' } },
  lease_not_found: { status: 404, make: ({ client }) => client.send('POST', '/v1/leases/unknown/renew'), audit: { action: 'lease_refuse' } },
  session_not_found: {
    status: 404,
    make: ({ client }) => client.post('/v1/leases', { resource: 'v/s', session_id: 'unknown' }),
    audit: { action: 'lease_refuse' },
  },
  operation_not_found: { status: 404, make: ({ client }) => client.send('GET', '/v1/operations/op_unknown'), audit: null },
  method_not_allowed: { status: 405, make: ({ client }) => client.send('PUT', '/v1/volumes'), audit: null },
  upload_timeout: {
    status: 408,
    on: 'narrow',
    make: async (bench) => {
      const connection = bench.raw();
      connection.send(`${head('PUT /v1/files/v/kept', 'Content-Length: 100')}half`);
      return fromRaw(await connection.answer());
    },
    audit: { action: 'put', path: 'kept', outcome: 'aborted' },
  },
  is_a_directory: { status: 409, make: ({ client }) => client.put('v/full', 'x'), audit: { action: 'put', path: 'full' } },
  not_a_directory: { status: 409, make: ({ client }) => client.put('v/kept/below', 'x'), audit: { action: 'put', path: 'kept/below' } },
  directory_not_empty: { status: 409, make: ({ client }) => client.delete('v/full/'), audit: { action: 'delete', path: 'full', outcome: 'aborted' } },
  already_exists: {
    status: 409,
    make: ({ client }) => client.post('/v1/moves', { from: 'v/kept', to: 'v/full/file' }),
    audit: { action: 'move', path: 'full/file' },
  },
  special_file: { status: 409, make: ({ client }) => client.put('v/pipe', 'x'), audit: { action: 'put', path: 'pipe' } },
  symbolic_link: { status: 409, make: ({ client }) => client.put('v/link', 'x'), audit: { action: 'put', path: 'link' } },
  multiple_links: { status: 409, make: ({ client }) => client.patch('v/twice', 'append', 'x'), audit: { action: 'append', path: 'twice' } },
  cross_volume: {
    status: 409,
    make: ({ client }) => client.post('/v1/moves', { from: 'v/kept', to: 'signed/kept' }),
    audit: { action: 'move', path: 'kept' },
  },
  same_resource: {
    status: 409,
    make: ({ client }) => client.post('/v1/copies', { from: 'v/kept', to: 'v/kept' }),
    audit: { action: 'copy', path: 'kept' },
  },
  offset_mismatch: {
    status: 409,
    make: ({ client }) => client.patch('v/kept', 'append', 'x', { 'upload-offset': '3' }),
    audit: { action: 'append', path: 'kept' },
    members: { expected_offset: 4 },
  },
  lock_not_acquired: {
    status: 409,
    make: async ({ client }, ready) => {
      await client.lease('v/busy', { client_id: 'holder' });
      await ready();
      return client.post('/v1/leases', { resource: 'v/busy' });
    },
    audit: { action: 'lease_refuse', path: 'busy' },
    members: { holder_client_id: 'holder' },
  },
  deadlock: {
    status: 409,
    make: async (bench, ready) => {
      const [one, two] = [await session(bench), await session(bench)];
      await bench.client.lease('v/left', { session_id: one, priority: 9 });
      await bench.client.lease('v/right', { session_id: two, priority: 0 });
      await ready();
      const first = bench.client.post('/v1/leases', { resource: 'v/right', session_id: one, wait_ms: 20_000, priority: 9 });
      const second = await bench.client.post('/v1/leases', { resource: 'v/left', session_id: two, wait_ms: 20_000, priority: 0 });
      await bench.client.send('DELETE', `/v1/sessions/${two}`);
      expect((await first).status).toBe(201);
      return second;
    },
    audit: { action: 'deadlock', outcome: 'committed' },
  },
  lease_not_held: {
    status: 409,
    make: async (bench, ready) => {
      const { lease_id: id } = await ended(bench, 'v/gone');
      await ready();
      return bench.client.send('POST', `/v1/leases/${id}/renew`);
    },
    audit: { action: 'lease_refuse', path: 'gone' },
  },
  session_ended: {
    status: 409,
    make: async (bench, ready) => {
      const id = await session(bench);
      await bench.client.send('DELETE', `/v1/sessions/${id}`);
      await ready();
      return bench.client.post('/v1/leases', { resource: 'v/after', session_id: id });
    },
    audit: { action: 'lease_refuse' },
  },
  upgrade_conflict: {
    status: 409,
    make: async ({ client }, ready) => {
      const [a, b] = [await client.lease('v/readers', { mode: 'shared' }), await client.lease('v/readers', { mode: 'shared' })];
      await client.post(`/v1/leases/${a.lease_id}/convert`, { mode: 'exclusive' });
      await ready();
      return client.post(`/v1/leases/${b.lease_id}/convert`, { mode: 'exclusive' });
    },
    audit: { action: 'lease_refuse', path: 'readers' },
  },
  overlapping_lease: {
    status: 409,
    make: async (bench, ready) => {
      const id = await session(bench);
      await bench.client.lease('v/one', { session_id: id });
      await ready();
      return bench.client.post('/v1/leases', { resources: ['v/one', 'v/other'], session_id: id });
    },
    audit: { action: 'lease_refuse' },
  },
  idempotency_in_progress: {
    status: 409,
    make: async (bench, ready) => {
      await ready();
      const slow = bench.raw();
      slow.send(head('PUT /v1/files/v/slow', 'Idempotency-Key: "again"', 'Expect: 100-continue', 'Content-Length: 1'));
      await slow.until(() => slow.received.includes('100 Continue'));
      const answer = await bench.client.put('v/slow', 'x', { 'idempotency-key': '"again"' });
      slow.close();
      await eventually(
        () => bench.client.audit({ path: 'slow', outcome: 'aborted' }),
        (records) => records.length === 1,
      );
      return answer;
    },
    audit: { action: 'put', path: 'slow' },
  },
  length_required: { status: 411, make: (bench) => raw(bench, head('PUT /v1/files/v/kept')), audit: { action: 'put', path: 'kept' } },
  stale_token: {
    status: 412,
    make: async (bench, ready) => {
      const stale = await ended(bench, 'v/kept');
      await bench.client.release(await bench.client.lease('v/kept'));
      await ready();
      return bench.client.put('v/kept', 'x', { 'x-fencing-token': stale.fencing_token });
    },
    audit: { action: 'put', path: 'kept' },
    members: { presented_token: expect.stringMatching(/^\d+$/), high_water_mark: expect.stringMatching(/^\d+$/) },
  },
  lease_ended: {
    status: 412,
    make: async (bench, ready) => {
      const lease = await ended(bench, 'v/kept');
      await ready();
      return bench.client.put('v/kept', 'x', { 'x-fencing-token': lease.fencing_token });
    },
    audit: { action: 'put', path: 'kept' },
    members: { reason: expect.any(String), ended_at: expect.stringMatching(/Z$/) },
  },
  lease_is_shared: {
    status: 412,
    make: async ({ client }, ready) => {
      const lease = await client.lease('v/read-by', { mode: 'shared' });
      await ready();
      return client.put('v/read-by', 'x', { 'x-fencing-token': lease.fencing_token });
    },
    audit: { action: 'put', path: 'read-by' },
  },
  precondition_failed: {
    status: 412,
    make: ({ client }) => client.put('v/kept', 'x', { 'if-none-match': '*' }),
    audit: { action: 'put', path: 'kept' },
  },
  body_too_large: { status: 413, make: ({ client }) => client.put('small/a', 'x'.repeat(65)), audit: { action: 'put', path: 'a' } },
  uri_too_long: { status: 414, make: (bench) => raw(bench, put(`/v1/files/v/${LONG}`)), audit: { action: 'put' } },
  unsupported_media_type: {
    status: 415,
    make: ({ client }) => client.put('v/kept', 'x', { 'content-encoding': 'gzip' }),
    audit: { action: 'put', path: 'kept' },
  },
  range_not_satisfiable: { status: 416, make: ({ client }) => client.patch('v/kept', 'bytes=9-', 'x'), audit: { action: 'patch', path: 'kept' } },
  expectation_failed: { status: 417, make: (bench) => raw(bench, put('/v1/files/v/kept', 'Expect: a-miracle')), audit: { action: 'put' } },
  wrong_host: {
    status: 421,
    make: (bench) => raw(bench, 'PUT /v1/files/v/kept HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 1\r\n\r\nx'),
    audit: { action: 'put' },
  },
  idempotency_key_reused: {
    status: 422,
    make: async ({ client }, ready) => {
      await client.put('v/once', 'x', { 'idempotency-key': 'k1' });
      await ready();
      return client.put('v/once', 'longer', { 'idempotency-key': 'k1' });
    },
    audit: { action: 'put', path: 'once' },
  },
  resource_locked: {
    status: 423,
    make: async ({ client }, ready) => {
      await client.lease('v/held', { client_id: 'holder' });
      await ready();
      return client.put('v/held', 'x', { 'x-lock-wait-ms': '1' });
    },
    audit: { action: 'put', path: 'held' },
    members: { holder_client_id: 'holder', queue_length: expect.any(Number) },
  },
  token_required: { status: 428, make: ({ client }) => client.put('strict/a', 'x'), audit: { action: 'put', path: 'a' } },
  rate_limited: {
    status: 429,
    on: 'guarded',
    make: ({ client }) =>
      eventually(
        () => client.as(bearerOf('writer')).put('nowhere/a', 'x'),
        ({ status }) => status === 429,
      ),
    audit: { action: 'put' },
  },
  queue_full: {
    status: 429,
    make: async ({ client }, ready) => {
      await client.lease('short/a');
      const waiter = jsonOf<LeaseJson>(await client.post('/v1/leases', { resource: 'short/a', wait_ms: 1 }));
      await ready();
      const answer = await client.post('/v1/leases', { resource: 'short/a', wait_ms: 1 });
      await client.release(waiter);
      return answer;
    },
    audit: { action: 'lease_refuse', path: 'a' },
  },
  too_many_uploads: {
    status: 429,
    on: 'narrow',
    make: async (bench, ready) => {
      await ready();
      const slow = bench.raw();
      slow.send(head('PUT /v1/files/v/slow', 'Expect: 100-continue', 'Content-Length: 1'));
      await slow.until(() => slow.received.includes('100 Continue'));
      const answer = await bench.client.put('v/kept', 'x');
      slow.close();
      await eventually(
        () => bench.client.audit({ path: 'slow', outcome: 'aborted' }),
        (records) => records.length === 1,
      );
      return answer;
    },
    audit: { action: 'put', path: 'kept' },
    members: { uploads_max: 1 },
  },
  headers_too_large: { status: 431, make: (bench) => raw(bench, put('/v1/files/v/kept', `X-Long: ${LONG}${LONG}`)), audit: { action: 'put' } },
  internal: {
    status: 500,
    make: ({ client, failAt }) => {
      failAt('3.admit');
      return client.put('v/kept', 'x');
    },
    audit: { action: 'put', path: 'kept' },
  },
  volume_unavailable: { status: 503, make: ({ client }) => client.put('missing/a', 'x'), audit: { action: 'put', path: 'a' } },
  insufficient_storage: { status: 507, make: ({ client }) => client.put('quota/a', 'x'.repeat(65)), audit: { action: 'put', path: 'a' } },
};

/** What brings these about is bigger than one request: each has a file that does. */
const ELSEWHERE: Readonly<Partial<Record<ErrorCode, string>>> = {
  journal_unavailable: 'busy-journal.test.ts',
  overloaded: 'overload.test.ts',
  draining: 'draining.test.ts',
  outcome_unknown: '../faults/hung-volume.test.ts',
  name_alias: 'file-systems.test.ts',
  too_many_leases: 'full-house.test.ts',
  too_many_sessions: 'full-house.test.ts',
  coordinator_suspended: '../faults/zookeeper-link.test.ts',
  coordinator_unavailable: '../unit/locks/zookeeper/faults.test.ts',
};

const VOLUMES = {
  v: {},
  strict: { require_token: true },
  still: { read_only: true },
  small: { limits: { body_bytes: 64 } },
  quota: { limits: { staged_bytes: 64 } },
  short: { limits: { queue_length: 1 } },
  signed: {},
  missing: { path: '{dir}/not-there' },
};
const PRINCIPALS = principalsFile([
  { name: 'reader', roles: ['reader'] },
  { name: 'writer', roles: ['writer'] },
  { name: 'auditor', roles: ['auditor'] },
]);

let gateways: Readonly<Record<'open' | 'guarded' | 'narrow', VolumesGateway>>;
let failing: Step | null = null;

beforeAll(async () => {
  const steps = { reached: (step: Step) => (step === failing ? fail() : undefined) };
  const [open, guarded, narrow] = await Promise.all([
    startVolumes({ volumes: VOLUMES, steps, environment: { FENCEGATE_LOG_LEVEL: 'silent' } }),
    startVolumes({ auth: PRINCIPALS, environment: { FENCEGATE_RATE_LIMIT_PER_SECOND: '20' } }),
    startVolumes({ environment: { FENCEGATE_UPLOADS_MAX: '1', FENCEGATE_UPLOAD_IDLE_MS: '1000' } }),
  ]);
  gateways = { open, guarded, narrow };
  for (const { path } of [open, guarded, narrow]) {
    writeFileSync(path('v/kept'), 'kept');
    mkdirSync(path('v/full'));
    writeFileSync(path('v/full/file'), 'file');
  }
  execFileSync('mkfifo', [open.path('v/pipe')]);
  symlinkSync('kept', open.path('v/link'));
  writeFileSync(open.path('v/twice'), 'twice');
  linkSync(open.path('v/twice'), open.path('v/twin'));
  writeFileSync(open.path('still/kept'), 'kept');
});
afterAll(async () => {
  await Promise.all(Object.values(gateways).map((gateway) => gateway.stop()));
});

function fail(): never {
  failing = null;
  throw new Error('a fault of the gateway itself, with /secret/path in its message');
}

const volumesOf = (gateway: VolumesGateway): string[] =>
  gateway === gateways.open ? ['v', 'strict', 'small', 'quota', 'short', 'signed', 'still'] : ['v'];
const quiet = async (gateway: VolumesGateway) => {
  for (const name of volumesOf(gateway)) if (name !== 'still') await quietSnapshot(gateway.path(name));
  return seen(gateway);
};
const seen = (gateway: VolumesGateway) =>
  Object.fromEntries(
    volumesOf(gateway)
      .filter((name) => name !== 'still')
      .map((name) => [name, volumeSnapshot(gateway.path(name))]),
  );

const rows = (Object.entries(TABLE) as [ErrorCode, Row][]).map(([code, row]) => ({ code, ...row }));

describe('the table of status codes', () => {
  it.each(rows)('$status $code', async ({ code, status, make, audit, members = {}, on }) => {
    const gateway = gateways[on ?? 'open'];
    const auditor = on === 'guarded' ? gateway.client.as(bearerOf('auditor')) : gateway.client;
    let before = await quiet(gateway);
    let lastSeq = (await auditor.audit({ limit: 1 }))[0]?.seq ?? 0;
    const bench: Bench = {
      client: gateway.client,
      raw: gateway.raw,
      url: gateway.url,
      failAt: (step) => {
        failing = step;
      },
    };
    const answer = await make(bench, async () => {
      before = await quiet(gateway);
      lastSeq = (await auditor.audit({ limit: 1 }))[0]?.seq ?? 0;
    });

    assertProblem(answer, code, status);
    expect(jsonOf(answer)).toMatchObject(members);
    expect(seen(gateway)).toEqual(before);
    const records = (await auditor.audit({ limit: 50 })).filter(({ seq }) => seq > lastSeq);
    assertRecord(
      records.filter((record) => record.code === code || record.action === 'deadlock'),
      code,
      status,
      audit,
    );
  });

  it('every code is in the table or in a file of its own', () => {
    const named = [...Object.keys(TABLE), ...Object.keys(ELSEWHERE)];
    expect(named.sort()).toEqual([...ERROR_CODES].sort());
    for (const [code, file] of Object.entries(ELSEWHERE)) expect(readFileSync(new URL(file, import.meta.url), 'utf8')).toContain(code);
  });
});

/** The form of every refusal, whatever refused it. */
function assertProblem(answer: Answer, code: ErrorCode, status: number): void {
  expect([answer.status, answer.headers['content-type']]).toEqual([status, 'application/problem+json']);
  const body = jsonOf(answer);
  expect(body).toMatchObject({
    type: `/docs/problems/${code}`,
    title: expect.stringMatching(/^[A-Z]/),
    status,
    detail: expect.stringMatching(/.+\.$/s),
    code,
    request_id: answer.headers['x-request-id'],
  });
  expect(answer.headers['x-request-id']).toMatch(/^\S+$/);
  const late = answer.headers['retry-after'];
  if ([423, 429, 503].includes(status)) expect(Number(late)).toBeGreaterThanOrEqual(1);
  else expect(late).toBeUndefined();
  if (status === 405) expect(answer.headers['allow']).toMatch(/^GET, HEAD/);
  if (status === 401) expect(answer.headers['www-authenticate']).toMatch(/^Bearer/);
  expect(textOf(answer)).not.toMatch(/secret|node_modules|\/tmp\//);
}

function assertRecord(records: readonly RecordJson[], code: ErrorCode, status: number, audit: Expected): void {
  if (audit === null) {
    expect(records).toEqual([]);
    return;
  }
  const { action, path, outcome = 'rejected', token } = audit;
  expect(records).toMatchObject([
    {
      action,
      outcome,
      ...(path === undefined ? {} : { path }),
      ...(action === 'deadlock' ? {} : { code, status }),
      ...(token === undefined ? {} : { fencing_token: token }),
    },
  ]);
}
