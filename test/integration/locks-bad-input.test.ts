import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Json, jsonOf, verdictOf } from '../support/gateway-client.ts';
import { LockClient } from '../support/lock-client.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** What the lock service refuses, with which code, and what it says; nothing is taken, nothing stays in line. */

let gateway: VolumesGateway;
let locks: LockClient;
beforeAll(async () => {
  gateway = await startVolumes({
    volumes: { v: {}, locks: { path: null }, strict: { path: null, lease: { ttl_ms_min: 5_000, ttl_ms_max: 10_000, max_hold_ms: 20_000 } } },
  });
  locks = new LockClient(gateway.client);
});
afterAll(() => gateway.stop());

describe('numbers outside their bounds are 400 and name them', () => {
  it.each([
    [{ ttl_ms: -1 }, 'ttl_out_of_range', { min_ms: 1_000, max_ms: 3_600_000 }],
    [{ ttl_ms: 0 }, 'ttl_out_of_range', { min_ms: 1_000, max_ms: 3_600_000 }],
    [{ ttl_ms: 999 }, 'ttl_out_of_range', { min_ms: 1_000, max_ms: 3_600_000 }],
    [{ ttl_ms: 3_600_001 }, 'ttl_out_of_range', { min_ms: 1_000, max_ms: 3_600_000 }],
    [{ ttl_ms: 4_999, resource: 'strict/a' }, 'ttl_out_of_range', { min_ms: 5_000, max_ms: 10_000 }],
    [{ ttl_ms: 10_001, resource: 'strict/a' }, 'ttl_out_of_range', { min_ms: 5_000, max_ms: 10_000 }],
    [{ max_hold_ms: 20_001, resource: 'strict/a' }, 'invalid_request', { field: 'max_hold_ms', min_ms: 1_000, max_ms: 20_000 }],
    [{ max_hold_ms: 999, resource: 'strict/a' }, 'invalid_request', { field: 'max_hold_ms', min_ms: 1_000 }],
  ] as readonly [Json, string, Json][])('R15: %j', async (more, code, bounds) => {
    const answer = await gateway.client.post('/v1/leases', { resource: 'locks/bounds', ...more });
    expect(verdictOf(answer)).toBe(`400 ${code}`);
    expect(jsonOf(answer)).toMatchObject(bounds);
  });

  const ANY = Number.MAX_SAFE_INTEGER;
  const told = (field: string, min: number, max: number): Json => ({
    code: 'invalid_request',
    detail: `${field} lies between ${min} and ${max}.`,
    field,
    ...(field.endsWith('_ms') ? { min_ms: min, max_ms: max } : { min, max }),
  });

  it.each([
    ['wait_ms', 0, 60_000, [-1, 60_001]],
    ['max_wait_ms', 1, ANY, [-1, 0]],
    ['priority', 0, 9, [-1, 10]],
    ['lock_delay_ms', 0, 3_600_000, [-1, 3_600_001]],
    ['max_hold_ms', 1_000, ANY, [999, 1, 0, -5]],
  ] as const)('%s, in words and as members', async (field, min, max, values) => {
    for (const value of values) {
      const answer = await locks.acquire('locks/bounds', { [field]: value });
      expect([answer.status, jsonOf(answer)]).toMatchObject([400, told(field, min, max)]);
    }
  });

  it('also of a poll and of a grace', async () => {
    const lease = await gateway.client.lease('locks/poll');
    const poll = (wait: string) => gateway.client.send('GET', `/v1/leases/${lease.lease_id}`, { query: { wait_ms: wait } });
    for (const wait of ['-1', '60001']) expect(jsonOf(await poll(wait))).toMatchObject(told('wait_ms', 0, 60_000));
    expect(verdictOf(await poll('x'))).toBe('400 invalid_request');
    for (const grace of [-1, 3_600_001])
      expect(jsonOf(await locks.break('locks/poll', { grace_ms: grace }))).toMatchObject(told('grace_ms', 0, 3_600_000));
  });

  it.each([
    ['/v1/locks', 1_000],
    ['/v1/audit', 1_000],
    ['/v1/admin/sessions', 10_000],
    ['/v1/files/v/', 10_000],
  ])('also of how many come with one page of %s: never fewer than were asked for, as if there were no more', async (path, max) => {
    const page = (limit: number) => gateway.client.send('GET', path, { query: { limit: String(limit) } });
    for (const limit of [0, max + 1]) expect([(await page(limit)).status, jsonOf(await page(limit))]).toMatchObject([400, told('limit', 1, max)]);
    expect((await page(max)).status).toBe(200);
  });

  it.each([
    ['wait_ms', [0.5, '1']],
    ['max_wait_ms', [1.5, 'soon']],
    ['priority', [1.5]],
    ['ttl_ms', ['x', true]],
  ] as const)('%s that is no whole number is 400 and named', async (field, values) => {
    for (const value of values) {
      const answer = await locks.acquire('locks/bounds', { [field]: value });
      expect([verdictOf(answer), jsonOf(answer)['detail']]).toEqual(['400 invalid_request', expect.stringContaining(field)]);
    }
  });
});

describe('a request that makes no sense is refused', () => {
  const CASES: readonly (readonly [Json, string])[] = [
    [{}, '400 invalid_request'],
    [{ resource: 'locks/a', resources: ['locks/a', 'locks/b'] }, '400 invalid_request'],
    [{ resources: ['locks/a'] }, '400 invalid_request'],
    [{ resources: ['locks/a', 'locks/a'] }, '400 invalid_request'],
    [{ resources: Array.from({ length: 101 }, (_, i) => `locks/${i}`) }, '400 invalid_request'],
    [{ resource: 'locks' }, '400 invalid_path'],
    [{ resource: 'locks/' }, '400 invalid_path'],
    [{ resource: 'locks/a/' }, '400 invalid_path'],
    [{ resource: 'locks/../a' }, '400 invalid_path'],
    [{ resource: 'locks//a' }, '400 invalid_path'],
    [{ resource: '' }, '400 invalid_path'],
    [{ resource: 'v' }, '400 invalid_path'],
    [{ resource: `locks/${'x'.repeat(256)}` }, '400 invalid_path'],
    [{ resource: `locks/${'x/'.repeat(2_049)}x` }, '400 invalid_path'],
    [{ resource: `locks/${'x/'.repeat(2_500)}x` }, '400 invalid_path'],
    [{ resources: ['locks/a', `locks/${'x/'.repeat(2_500)}x`] }, '400 invalid_path'],
    [{ resource: 'locks/a\u0000b' }, '400 invalid_path'],
    [{ resource: 'v/.fencegate/owner' }, '400 invalid_path'],
    [{ resource: 'nowhere/a' }, '404 volume_not_found'],
    [{ resource: 'locks/a', mode: 'upgrade' }, '400 invalid_request'],
    [{ resource: 'locks/a', unknown: 1 }, '400 invalid_request'],
    [{ resource: 7 }, '400 invalid_request'],
    [{ resource: 'locks/a', client_id: 'x'.repeat(257) }, '400 invalid_request'],
    [{ resource: 'locks/a', hold_id: '' }, '400 invalid_request'],
    [{ resource: 'locks/a', hold_id: 'x'.repeat(257) }, '400 invalid_request'],
    [{ resource: 'locks/a', metadata: { text: 'x'.repeat(5_000) } }, '400 invalid_request'],
    [{ resource: 'locks/a', metadata: 'text' }, '400 invalid_request'],
    [{ resource: 'locks/a', client_id: 'two\nlines' }, '400 invalid_request'],
    [{ resource: 'locks/a', session_id: 'nobody' }, '404 session_not_found'],
  ];
  it.each(CASES.map(([body, verdict]) => [JSON.stringify(body).slice(0, 80), body, verdict] as const))('%s', async (_title, body, verdict) => {
    expect(verdictOf(await gateway.client.post('/v1/leases', body))).toBe(verdict);
    expect(await locks.lock('locks/a')).toMatchObject({ holders: [], queue_length: 0 });
  });

  it.each([2_049, 2_500])('a name of %d segments is an invalid path wherever a name stands', async (segments) => {
    const long = `${'x/'.repeat(segments)}x`;
    const { client } = gateway;
    const moved = { from: `v/${long}`, to: 'v/b' };
    const answers = await Promise.all([
      client.send('GET', `/v1/locks/locks/${long}`),
      client.send('GET', `/v1/watch/locks/${long}`),
      client.send('GET', `/v1/files/v/${long}`),
      client.put(`v/${long}`, 'x'),
      client.post('/v1/moves', moved),
      client.post('/v1/copies', moved),
      client.post('/v1/admin/locks/break', { resource: `locks/${long}`, reason: 'x' }),
    ]);
    expect(answers.map(verdictOf)).toEqual(answers.map(() => '400 invalid_path'));
  });

  it('no JSON, another type, no body', async () => {
    const send = (body: string, type = 'application/json') => gateway.client.send('POST', '/v1/leases', { headers: { 'content-type': type }, body });
    expect((await Promise.all([send('{'), send(''), send('[]'), send('null'), send('{"resource":"locks/a"}', 'text/plain')])).map(verdictOf)).toEqual(
      ['400 invalid_request', '400 invalid_request', '400 invalid_request', '400 invalid_request', '415 unsupported_media_type'],
    );
  });

  it('a lease that never was is 404 for every verb, an ended one 409, and a release of it 204', async () => {
    // The second has the form of one, and the beginning of those of an earlier start of the process.
    for (const id of ['invented', 'l0.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA']) {
      const invented = { lease_id: id };
      for (const verb of [
        locks.renew(invented),
        locks.convert(invented, 'shared'),
        locks.release(invented),
        gateway.client.send('GET', `/v1/leases/${id}`),
      ])
        expect(verdictOf(await verb)).toBe('404 lease_not_found');
    }
    const ended = await gateway.client.lease('locks/ended');
    await locks.release(ended);
    expect((await Promise.all([locks.renew(ended), locks.convert(ended, 'shared'), locks.release(ended)])).map(verdictOf)).toEqual([
      '409 lease_not_held',
      '409 lease_not_held',
      '204',
    ]);
    expect(verdictOf(await gateway.client.send('PUT', `/v1/leases/${ended.lease_id}`))).toBe('405 method_not_allowed');
  });

  it('every refusal about a resource has a record, and no record has a secret', async () => {
    const held = await gateway.client.lease('locks/audited', { client_id: 'holder' });
    await locks.acquire('locks/audited', { client_id: 'late' });
    await locks.acquire('locks/audited', { ttl_ms: 1, client_id: 'late' });
    await locks.release(held);
    await locks.renew(held);
    const records = await gateway.client.audit({ path: 'audited' });
    expect(records.map(({ action, outcome, code }) => `${action} ${outcome} ${code}`)).toEqual([
      'lease_refuse rejected lease_not_held',
      'lease_release committed null',
      'lease_refuse rejected ttl_out_of_range',
      'lease_refuse rejected lock_not_acquired',
      'lease_grant committed null',
    ]);
    const text = JSON.stringify(await gateway.client.audit({ limit: 1_000 }));
    for (const secret of [held.lease_id, held.session_id]) expect(text).not.toContain(secret);
  });

  it('the token of a shared lease on a write is 412, of every verb', async () => {
    const reader = await gateway.client.lease('v/shared', { mode: 'shared' });
    const headers = { 'x-fencing-token': reader.fencing_token };
    const writes = [
      gateway.client.put('v/shared', 'x', headers),
      gateway.client.patch('v/shared', 'append', 'x', headers),
      gateway.client.delete('v/shared', headers),
    ];
    expect((await Promise.all(writes)).map(verdictOf)).toEqual(['412 lease_is_shared', '412 lease_is_shared', '412 lease_is_shared']);
  });
});
