import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Step } from '../../src/domain/steps.ts';
import { type Answer, jsonOf, type LeaseJson, type RecordJson, textOf, verdictOf } from '../support/gateway-client.ts';
import { ask, head } from '../support/raw-request.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** The audit log over HTTP: every decision once, found by every filter, in pages and as streams. */

const COLUMNS = [
  'seq',
  'at',
  'action',
  'resource',
  'volume',
  'path',
  'outcome',
  'code',
  'status',
  'principal',
  'client_id',
  'remote_address',
  'request_id',
  'operation_id',
  'lease_ref',
  'fencing_token',
  'high_water_mark',
  'size_bytes',
  'digest',
  'etag_before',
  'etag_after',
  'duration_ms',
  'fence_level',
  'count',
  'previous_hash',
  'hash',
  'detail',
];
interface Page {
  readonly records: readonly RecordJson[];
  readonly next_cursor: string | null;
}

let gateway: VolumesGateway;
let held: LeaseJson;
let put: Answer;
/** Where the next write stands still, and what then happens. */
let pause: { readonly at: Step; readonly until: (operationId: string) => Promise<void> } | null = null;
const steps = {
  reached: (step: Step, operationId: string) => {
    const due = pause;
    if (step !== due?.at) return undefined;
    pause = null;
    return due.until(operationId);
  },
};
beforeAll(async () => {
  gateway = await startVolumes({ volumes: { v: {}, w: {} }, steps });
  const client = gateway.client.with({ 'x-client-id': 'batch-7' });
  held = await client.lease('v/ledger/q3.csv');
  const token = { 'x-fencing-token': held.fencing_token };
  put = await client.put('v/ledger/q3.csv', 'one', { ...token, 'x-request-id': 'the-put' });
  await client.patch('v/ledger/q3.csv', 'append', 'two', token);
  await client.put('v/ledger/q3.csv', 'x', { 'x-fencing-token': '9999999999' });
  await client.release(held);
  await gateway.client.put('w/ledger/q3.csv', 'in another volume');
  await gateway.client.put('v/ledgers.csv', 'beside the directory');
  await gateway.client.put('v/=SUM(A1)', 'formula', { 'x-client-id': '@cmd "quoted", and, commas' });
  await gateway.client.delete('v/ledgers.csv');
  await gateway.client.post('/v1/leases', { resource: 'v/ledger/q3.csv', ttl_ms: 1 });
});
afterAll(() => gateway.stop());

const query = async (parameters: Record<string, string | number> = {}): Promise<Page> =>
  jsonOf<Page>(await gateway.client.send('GET', '/v1/audit', { query: parameters }));
const actions = async (parameters: Record<string, string | number>): Promise<string[]> =>
  (await query({ order: 'asc', ...parameters })).records.map(({ action, outcome }) => `${action} ${outcome}`);

describe('a record', () => {
  it('has every member, null where it does not apply', async () => {
    const { records } = await query({ limit: 1_000 });
    for (const record of records) expect(Object.keys(record)).toEqual(COLUMNS);
    expect((await query({ request_id: 'the-put' })).records).toEqual([
      {
        seq: expect.any(Number),
        at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        action: 'put',
        resource: 'v/ledger/q3.csv',
        volume: 'v',
        path: 'ledger/q3.csv',
        outcome: 'committed',
        code: null,
        status: 201,
        principal: 'anonymous',
        client_id: 'batch-7',
        remote_address: '127.0.0.1',
        request_id: 'the-put',
        operation_id: put.headers['x-operation-id'],
        lease_ref: held.lease_ref,
        fencing_token: held.fencing_token,
        high_water_mark: held.fencing_token,
        size_bytes: 3,
        digest: jsonOf<{ digest: { 'sha-256': string } }>(put).digest['sha-256'],
        etag_before: null,
        etag_after: put.headers['etag'],
        duration_ms: expect.any(Number),
        fence_level: 'incarnation',
        count: 1,
        previous_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
        hash: expect.stringMatching(/^[0-9a-f]{64}$/),
        detail: null,
      },
    ]);
  });

  it('of a refusal has the token that was presented and the mark it met', async () => {
    expect((await query({ code: 'token_not_issued' })).records).toMatchObject([
      {
        action: 'put',
        outcome: 'rejected',
        status: 403,
        fencing_token: '9999999999',
        high_water_mark: held.fencing_token,
        operation_id: null,
        client_id: 'batch-7',
      },
    ]);
  });

  it('is chained to the one before', async () => {
    const { records } = await query({ order: 'asc', limit: 1_000 });
    for (const [i, record] of records.entries())
      if (i > 0) expect([record['seq'], record['previous_hash']]).toEqual([Number(records[i - 1]?.seq) + 1, records[i - 1]?.['hash']]);
  });
});

describe('a filter', () => {
  const LEDGER = ['lease_grant committed', 'put committed', 'append committed', 'put rejected', 'lease_release committed', 'lease_refuse rejected'];
  it.each<[string, () => Record<string, string>, readonly string[]]>([
    ['by volume and path', () => ({ volume: 'v', path: 'ledger/q3.csv' }), LEDGER],
    ['by path in all volumes', () => ({ path: 'ledger/q3.csv' }), [...LEDGER.slice(0, 5), 'put committed', ...LEDGER.slice(5)]],
    ['by a prefix of paths', () => ({ volume: 'v', path_prefix: 'ledger/' }), LEDGER],
    ['by a prefix that is no directory', () => ({ volume: 'v', path_prefix: 'ledgers' }), ['put committed', 'delete committed']],
    ['by volume', () => ({ volume: 'w' }), ['put committed']],
    ['by principal', () => ({ principal: 'anonymous', volume: 'w' }), ['put committed']],
    ['by a principal that is none', () => ({ principal: 'nobody' }), []],
    ['by client', () => ({ client_id: 'batch-7' }), LEDGER.slice(0, 5)],
    ['by lease', () => ({ lease_ref: held.lease_ref }), ['lease_grant committed', 'put committed', 'append committed', 'lease_release committed']],
    ['by token', () => ({ token: held.fencing_token }), ['lease_grant committed', 'put committed', 'append committed', 'lease_release committed']],
    ['by action', () => ({ action: 'append' }), ['append committed']],
    ['by outcome', () => ({ outcome: 'rejected' }), ['put rejected', 'lease_refuse rejected']],
    ['by code', () => ({ code: 'ttl_out_of_range' }), ['lease_refuse rejected']],
    ['by request', () => ({ request_id: 'the-put' }), ['put committed']],
    ['by operation', () => ({ operation_id: put.headers['x-operation-id'] ?? '' }), ['put committed']],
    ['by several at once', () => ({ path: 'ledger/q3.csv', outcome: 'committed', action: 'put', client_id: 'batch-7' }), ['put committed']],
    ['by what nothing has', () => ({ path: 'absent' }), []],
  ])('%s', async (_what, parameters, expected) => {
    expect(await actions(parameters())).toEqual(expected);
  });

  it('by time: since is in, until is out', async () => {
    const { records } = await query({ order: 'asc', limit: 1_000 });
    const at = String(records[2]?.['at']);
    const since = (await query({ since: at, order: 'asc', limit: 1_000 })).records;
    const until = (await query({ until: at, order: 'asc', limit: 1_000 })).records;
    expect([...until, ...since].map(({ seq }) => seq)).toEqual(records.map(({ seq }) => seq));
    expect(since.some((record) => record['at'] === at)).toBe(true);
    expect(until.some((record) => record['at'] === at)).toBe(false);
    expect((await query({ since: '2030-01-01T00:00:00+02:00', until: '2030-01-01T00:00:00Z' })).records).toEqual([]);
  });

  it.each([
    'token=0',
    'token=01',
    'token=x',
    'action=explode',
    'outcome=good',
    'code=none',
    'since=yesterday',
    'until=2026-13-01T00:00:00Z',
    'since=2026-01-01',
    'limit=0',
    'limit=1001',
    'order=random',
    'cursor=!',
    'volume=',
    'path=..%2Fx',
    'unknown=1',
    'volume=v&volume=w',
  ])('%s is 400', async (text) => {
    expect(verdictOf(await gateway.client.send('GET', `/v1/audit?${text}`))).toMatch(/^400 (invalid_request|invalid_token|invalid_path)$/);
  });

  it('pending finds the write that is between its intent and its end, and nothing else', async () => {
    expect((await query({ outcome: 'pending' })).records).toEqual([]);
    const seen: unknown[] = [];
    pause = {
      at: '6.before_apply',
      until: async (operationId) => {
        seen.push(
          (await query({ outcome: 'pending' })).records.map(({ path, outcome, action }) => [path, outcome, action]),
          (await query({ path: 'under-way', outcome: 'committed' })).records.length,
        );
        seen.push(jsonOf(await gateway.client.send('GET', `/v1/operations/${operationId}`))['outcome']);
      },
    };
    const answer = await gateway.client.put('v/under-way', 'x');
    expect([answer.status, seen]).toEqual([201, [[['under-way', 'pending', 'put']], 0, 'pending']]);
    expect(await actions({ path: 'under-way' })).toEqual(['put committed']);
    expect(jsonOf(await gateway.client.send('GET', `/v1/operations/${answer.headers['x-operation-id']}`))).toMatchObject({ outcome: 'committed' });
  });
});

describe('pages', () => {
  it.each(['asc', 'desc'])('%s: together every record once, in order, also while more are written', async (order) => {
    const all = (await query({ order, limit: 1_000, path_prefix: 'l' })).records.map(({ seq }) => seq);
    const seen: number[] = [];
    let cursor: string | null = null;
    do {
      const { records, next_cursor: next }: Page = await query({ order, limit: 3, path_prefix: 'l', ...(cursor === null ? {} : { cursor }) });
      expect(records.length).toBeLessThanOrEqual(3);
      seen.push(...records.map(({ seq }) => seq));
      cursor = next;
      await gateway.client.put('v/unrelated', 'x');
    } while (cursor !== null);
    expect(seen).toEqual(all);
    expect([...seen].sort((a, b) => (order === 'asc' ? a - b : b - a))).toEqual(seen);
  });

  it('are newest first unless asked otherwise', async () => {
    const { records } = await query();
    expect(records.map(({ seq }) => seq)).toEqual(records.map(({ seq }) => seq).toSorted((a, b) => b - a));
  });
});

describe('a stream', () => {
  it('as NDJSON has everything that matches, one record a line', async () => {
    const answer = await gateway.client.send('GET', '/v1/audit', {
      query: { volume: 'v', order: 'asc' },
      headers: { accept: 'application/x-ndjson' },
    });
    expect(answer.headers).toMatchObject({
      'content-type': expect.stringMatching(/^application\/x-ndjson/),
      vary: expect.stringContaining('Accept'),
    });
    const lines = textOf(answer)
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as RecordJson);
    expect(lines).toEqual((await query({ volume: 'v', order: 'asc', limit: 1_000 })).records);
  });

  it('as CSV has a header, quotes what must be, and lets no cell begin a formula', async () => {
    const answer = await gateway.client.send('GET', '/v1/audit', { query: { path: '=SUM(A1)' }, headers: { accept: 'text/csv' } });
    expect(answer.headers).toMatchObject({
      'content-type': expect.stringMatching(/^text\/csv/),
      'content-disposition': expect.stringContaining('attachment'),
    });
    const [header, row, ...rest] = textOf(answer).split('\r\n');
    expect([header, rest]).toEqual([COLUMNS.join(','), ['']]);
    expect(row).toContain(`,'=SUM(A1),`);
    expect(row).toContain(`,"'@cmd ""quoted"", and, commas",`);
    expect(row?.split(',').filter((cell) => /^"?[=+@-]/.test(cell))).toEqual([]);
  });

  it('is chosen by Accept; anything else is JSON', async () => {
    const types = {
      'text/csv;q=0.5, application/x-ndjson': 'application/x-ndjson',
      'application/json, text/csv;q=0.1': 'application/json',
      '*/*': 'application/json',
      'text/html': 'application/json',
      'text/*': 'text/csv',
    };
    for (const [accept, type] of Object.entries(types))
      expect([accept, (await gateway.client.send('GET', '/v1/audit', { headers: { accept } })).headers['content-type']?.split(';')[0]]).toEqual([
        accept,
        type,
      ]);
  });

  it('that a client reads slowly holds nothing up, and its client may leave in the middle', async () => {
    await Promise.all(
      Array.from({ length: 100 }, (_, i) => gateway.client.put(`v/many/${'long-name-'.repeat(20)}${i}`, '', { 'if-match': '"never"' })),
    );
    const slow = gateway.raw();
    slow.send(head('GET /v1/audit', 'Accept: application/x-ndjson'));
    await slow.until(() => slow.received.length > 0);
    slow.socket.pause();
    for (let i = 0; i < 5; i += 1) expect((await gateway.client.put('v/meanwhile', String(i))).status).toBeLessThan(300);
    expect((await query({ path: 'meanwhile' })).records).toHaveLength(5);
    slow.close();
    expect((await gateway.client.send('GET', '/healthz')).status).toBe(200);
  });
});

describe('a query sees every decision whose answer was sent before it', () => {
  it('written or refused, a hundred times', async () => {
    for (let i = 0; i < 50; i += 1) {
      const written = await gateway.client.put('v/seen', String(i));
      expect((await query({ operation_id: written.headers['x-operation-id'] ?? '' })).records).toMatchObject([{ outcome: 'committed' }]);
      const refused = await gateway.client.put(`v/seen-${i}`, 'x', { 'if-match': '"no"' });
      expect((await query({ request_id: refused.headers['x-request-id'] ?? '' })).records).toMatchObject([
        { outcome: 'rejected', code: 'precondition_failed' },
      ]);
    }
  });

  it('equal refusals within a second are one record with a count, and none is lost', async () => {
    const rounds = 40;
    await Promise.all(Array.from({ length: rounds }, () => gateway.client.put('v/flood', 'x', { 'x-fencing-token': '77777777' })));
    const { records } = await query({ path: 'flood' });
    expect(records.reduce((sum, { count }) => sum + count, 0)).toBe(rounds);
    expect(records.length).toBeLessThan(rounds / 4);
    await gateway.client.put('v/flood', 'x', { 'x-fencing-token': '77777778' });
    await gateway.client.put('v/flood', 'x', { 'x-fencing-token': '77777777', 'x-client-id': 'another' });
    expect((await query({ path: 'flood' })).records.slice(0, 2)).toMatchObject([
      { client_id: 'another', count: 1 },
      { fencing_token: '77777778', count: 1 },
    ]);
  });

  it('broken requests are counted per address', async () => {
    for (let i = 0; i < 5; i += 1)
      await ask(gateway.raw(), 'PUT /v1/files/v/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx');
    const { records } = await query({ code: 'invalid_request', outcome: 'rejected' });
    expect(records.filter(({ path }) => path === null)).toMatchObject([
      { action: 'put', count: 5, principal: null, remote_address: '127.0.0.1', status: 400 },
    ]);
  });
});

describe('verify', () => {
  it('says that the chain is whole, from any place on', async () => {
    const whole = jsonOf<Record<string, number | boolean | string>>(await gateway.client.send('GET', '/v1/audit/verify'));
    const { records } = await query({ limit: 1 });
    expect(whole).toEqual({
      valid: true,
      records: records[0]?.seq,
      first_seq: 1,
      last_seq: records[0]?.seq,
      head_hash: records[0]?.['hash'],
      first_bad_seq: null,
      keyed_from_seq: null,
    });
    expect(jsonOf(await gateway.client.send('GET', '/v1/audit/verify', { query: { from_seq: 10 } }))).toMatchObject({
      valid: true,
      first_seq: 10,
      records: Number(records[0]?.seq) - 9,
    });
    expect(jsonOf(await gateway.client.send('GET', '/readyz'))).toMatchObject({
      journal: { healthy: true, head_seq: records[0]?.seq, head_hash: records[0]?.['hash'] },
    });
    expect(verdictOf(await gateway.client.send('GET', '/v1/audit/verify', { query: { from_seq: -1 } }))).toBe('400 invalid_request');
  });
});
