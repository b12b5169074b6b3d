import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GatewayClient, jsonOf, type LeaseJson, textOf, verdictOf } from '../support/gateway-client.ts';
import { bearerOf, principalsFile, startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** Who may do what, with the principals of an auth file. */

const PRINCIPALS = [
  { name: 'reader', roles: ['reader'] },
  { name: 'writer', roles: ['writer'] },
  { name: 'rival', roles: ['writer'] },
  { name: 'clerk', roles: ['reader', 'writer'], scopes: ['v/in', 'other'] },
  { name: 'auditor', roles: ['auditor'] },
  { name: 'branch', roles: ['auditor'], scopes: ['v/in'] },
  { name: 'admin', roles: ['admin'] },
];

let gateway: VolumesGateway;
const as = (name: string): GatewayClient => gateway.client.as(bearerOf(name));
const token = (held: LeaseJson) => ({ 'x-fencing-token': held.fencing_token });

beforeAll(async () => {
  gateway = await startVolumes({ volumes: { v: {}, other: {} }, auth: principalsFile(PRINCIPALS) });
  for (const name of ['v/in/a', 'v/a', 'v/inside', 'other/a']) expect((await as('writer').put(name, name)).status).toBe(201);
});
afterAll(() => gateway.stop());

describe('without valid credentials', () => {
  const attempts: readonly (readonly [string, string | undefined])[] = [
    ['nothing', undefined],
    ['a wrong token', `Bearer ${bearerOf('nobody')}`],
    ['an empty one', 'Bearer '],
    ['another scheme', `Basic ${bearerOf('writer')}`],
    ['a token with more behind it', `Bearer ${bearerOf('writer')}x`],
    ['the hash in place of the token', `Bearer ${'0'.repeat(64)}`],
    ['two tokens', `Bearer ${bearerOf('writer')}, Bearer ${bearerOf('admin')}`],
  ];
  it.each(attempts)('%s is 401, whatever else is wrong, and says how to authenticate', async (_what, authorization) => {
    const headers = { 'x-fencing-token': '01', ...(authorization === undefined ? {} : { authorization }) };
    for (const answer of await Promise.all([
      gateway.client.put('v/a', 'x', headers),
      gateway.client.get('v/a', headers),
      gateway.client.send('GET', '/v1/audit', { headers }),
      gateway.client.send('GET', '/metrics', { headers }),
    ])) {
      expect(verdictOf(answer)).toBe('401 unauthenticated');
      expect(answer.headers['www-authenticate']).toMatch(/^Bearer/);
    }
    expect(textOf(await as('writer').get('v/a'))).toBe('v/a');
  });

  it('health, pages and the API description answer all the same', async () => {
    for (const target of ['/healthz', '/readyz', '/', '/docs/problems/stale_token', '/openapi.json'])
      expect((await gateway.client.send('GET', target)).status).toBe(200);
  });

  it('the refusals are one record per address and minute, with a count', async () => {
    const records = await as('auditor').audit({ code: 'unauthenticated', limit: 1_000 });
    expect(records.length).toBeLessThan(20);
    for (const record of records) expect(record).toMatchObject({ principal: null, remote_address: '127.0.0.1', status: 401 });
    expect(records.reduce((sum, { count }) => sum + count, 0)).toBeGreaterThanOrEqual(7);
  });
});

describe('roles', () => {
  const READ = ['reader', 'writer', 'admin'];
  const WRITE = ['writer', 'admin'];
  const actions: readonly (readonly [string, (client: GatewayClient) => Promise<{ readonly status: number }>, readonly string[]])[] = [
    ['read a file', (c) => c.get('v/a'), READ],
    ['list', (c) => c.get('v/'), READ],
    ['write', (c) => c.put('v/roles', 'x'), WRITE],
    ['append', (c) => c.patch('v/roles', 'append', 'x'), WRITE],
    ['copy', (c) => c.post('/v1/copies', { from: 'v/a', to: 'v/copied', overwrite: true }), WRITE],
    ['make a directory', (c) => c.put('v/roles.d/', ''), WRITE],
    ['take a lease', (c) => c.post('/v1/leases', { resource: `v/lease-${randomUUID()}` }), WRITE],
    ['make a session', (c) => c.post('/v1/sessions', {}), WRITE],
    ['see lock states', (c) => c.send('GET', '/v1/locks/v/a'), ['reader', 'writer', 'auditor', 'admin']],
    ['list locks', (c) => c.send('GET', '/v1/locks'), ['reader', 'writer', 'auditor', 'admin']],
    ['query the audit log', (c) => c.send('GET', '/v1/audit'), ['auditor', 'admin']],
    ['verify it', (c) => c.send('GET', '/v1/audit/verify'), ['auditor', 'admin']],
    ['see fences', (c) => c.send('GET', '/v1/admin/fences/v/a'), ['admin']],
    ['ask the doctor', (c) => c.send('GET', '/v1/admin/doctor'), ['admin']],
    ['see volumes with their paths', (c) => c.send('GET', '/v1/admin/volumes'), ['admin']],
    ['see metrics', (c) => c.send('GET', '/metrics'), ['reader', 'writer', 'auditor', 'admin']],
    ['see the volumes', (c) => c.send('GET', '/v1/volumes'), ['reader', 'writer', 'auditor', 'admin']],
  ];
  it.each(actions)('%s', async (_what, act, allowed) => {
    const may: string[] = [];
    for (const name of ['reader', 'writer', 'auditor', 'admin']) {
      const { status } = await act(as(name));
      if (status !== 403) may.push(name);
      expect(status === 403 || status < 300).toBe(true);
    }
    expect(may).toEqual(allowed);
  });

  it('a refusal by role is audited with the principal', async () => {
    await as('reader').put('v/refused', 'x');
    expect(await as('auditor').audit({ principal: 'reader', code: 'forbidden', action: 'put', path: 'refused' })).toMatchObject([
      { outcome: 'rejected', status: 403, path: 'refused' },
    ]);
  });
});

describe('scopes', () => {
  it('open whole segments only, for every name of a request', async () => {
    const clerk = as('clerk');
    const verdicts = await Promise.all([
      clerk.get('v/in/a'),
      clerk.get('v/in/'),
      clerk.put('v/in/b', 'x'),
      clerk.get('other/a'),
      clerk.get('other/'),
      clerk.get('v/a'),
      clerk.get('v/inside'),
      clerk.get('v/'),
      clerk.put('v/inside', 'x'),
      clerk.delete('v/a'),
      clerk.post('/v1/copies', { from: 'v/a', to: 'v/in/stolen' }),
      clerk.post('/v1/moves', { from: 'v/in/a', to: 'v/given-away' }),
      clerk.post('/v1/leases', { resources: ['v/in/a', 'v/a'] }),
      clerk.send('GET', '/v1/locks/v/a'),
    ]);
    expect(verdicts.map(verdictOf)).toEqual(['200', '200', '201', '200', '200', ...Array.from({ length: 9 }, () => '403 forbidden')]);
    expect((await as('writer').get('v/in/stolen')).status).toBe(404);
  });

  it('hide records, locks and operations of names outside', async () => {
    const operation = (await as('writer').put('v/hidden', 'x')).headers['x-operation-id'] ?? '';
    await as('writer').lease('v/hidden');
    const records = await as('branch').audit({ limit: 1_000 });
    expect(records.length).toBeGreaterThan(0);
    expect(records.filter(({ path }) => !String(path).startsWith('in'))).toEqual([]);
    const { locks } = jsonOf<{ locks: { resource: string }[] }>(await as('clerk').send('GET', '/v1/locks'));
    expect(locks.map(({ resource }) => resource)).not.toContain('v/hidden');
    expect(verdictOf(await as('clerk').send('GET', `/v1/operations/${operation}`))).toBe('404 operation_not_found');
    expect((await as('writer').send('GET', `/v1/operations/${operation}`)).status).toBe(200);
    const exported = textOf(await as('branch').send('GET', '/v1/audit', { headers: { accept: 'text/csv' } }));
    expect(exported).not.toContain('hidden');
  });
});

describe('tokens with authentication', () => {
  it('belong to the principal of the lease; another one must show the lease id', async () => {
    const held = await as('writer').lease('v/owned');
    expect((await as('writer').put('v/owned', 'mine', token(held))).status).toBe(201);
    expect(verdictOf(await as('rival').put('v/owned', 'x', token(held)))).toBe('403 not_lease_owner');
    expect(verdictOf(await as('admin').put('v/owned', 'x', token(held)))).toBe('403 not_lease_owner');
    expect(verdictOf(await as('writer').put('v/owned', 'x', { ...token(held), 'x-lease-id': 'wrong' }))).toBe('403 not_lease_owner');
    expect((await as('rival').put('v/owned', 'lent', { ...token(held), 'x-lease-id': held.lease_id })).status).toBe(200);
    expect(textOf(await as('reader').get('v/owned'))).toBe('lent');
  });

  it('the mark is shown to its owner and to administrators; others learn that there is a newer one', async () => {
    const old = await as('writer').lease('v/mark');
    await as('writer').release(old);
    const now = await as('rival').lease('v/mark');
    const told = async (name: string) => {
      const answer = await as(name).put('v/mark', 'x', token(old));
      expect(verdictOf(answer)).toBe('412 stale_token');
      const { high_water_mark: mark, newer_token_exists: newer, presented_token: presented } = jsonOf(answer);
      expect(presented).toBe(old.fencing_token);
      return { mark, newer };
    };
    expect(await told('writer')).toEqual({ mark: undefined, newer: true });
    expect(await told('rival')).toEqual({ mark: now.fencing_token, newer: undefined });
    expect(await told('admin')).toEqual({ mark: now.fencing_token, newer: undefined });
  });

  it('X-Client-Id is a label: it opens nothing, and the record has the principal beside it', async () => {
    const held = await as('writer').lease('v/label', { client_id: 'batch' });
    expect(verdictOf(await as('rival').put('v/label', 'x', { ...token(held), 'x-client-id': 'batch' }))).toBe('403 not_lease_owner');
    expect(await as('auditor').audit({ path: 'label', client_id: 'batch', code: 'not_lease_owner' })).toMatchObject([
      { principal: 'rival', fencing_token: held.fencing_token, high_water_mark: held.fencing_token },
    ]);
  });

  it('a lease is looked at, renewed and released by its principal only', async () => {
    const held = await as('writer').lease('v/private');
    const lease = `/v1/leases/${held.lease_id}`;
    for (const answer of await Promise.all([
      as('rival').send('GET', lease),
      as('rival').send('POST', `${lease}/renew`),
      as('rival').send('DELETE', lease),
    ])) {
      expect(verdictOf(answer)).toMatch(/^(403 not_lease_owner|404 lease_not_found)$/);
    }
    expect(jsonOf(await as('writer').send('GET', lease))).toMatchObject({ state: 'held' });
  });
});

describe('secrets', () => {
  it('are in no answer for others, and in no record', async () => {
    const held = await as('writer').lease('v/secret', { client_id: 'c' });
    await as('writer').put('v/secret', 'x', { ...token(held), 'x-lease-id': held.lease_id });
    await as('rival').put('v/secret', 'x', { ...token(held), 'x-lease-id': `${held.lease_id}x` });
    await as('writer').release(held);
    const shown = await Promise.all([
      as('admin').send('GET', '/v1/audit', { query: { limit: 1_000 } }),
      as('admin').send('GET', '/v1/locks/v/secret'),
      as('admin').send('GET', '/v1/locks'),
      as('admin').send('GET', '/v1/admin/doctor'),
      as('admin').send('GET', '/v1/admin/sessions'),
      as('admin').send('GET', '/metrics'),
      as('admin').send('GET', '/v1/admin/fences/v/secret'),
    ]);
    for (const answer of shown) {
      expect(answer.status).toBe(200);
      for (const secret of [held.lease_id, held.session_id, bearerOf('writer')]) expect(textOf(answer)).not.toContain(secret);
    }
    expect(textOf(shown[0] ?? { status: 0, headers: {}, bytes: Buffer.alloc(0) })).toContain(held.lease_ref);
  });
});

describe('a refused principal', () => {
  const forbidden = (query: Record<string, string>) => as('auditor').audit({ code: 'forbidden', ...query });

  it('has a record of its own, under the action that it tried and with the resource that the body names', async () => {
    for (const name of ['writer', 'rival', 'clerk'])
      expect(verdictOf(await as(name).post('/v1/admin/locks/break', { resource: 'v/mine', reason: 'r' }))).toBe('403 forbidden');
    expect(verdictOf(await as('reader').post('/v1/admin/doctor/fixes', { finding_id: 'f' }))).toBe('403 forbidden');
    expect(verdictOf(await as('rival').send('DELETE', '/v1/admin/sessions/sr_1'))).toBe('403 forbidden');
    expect(verdictOf(await as('reader').post('/v1/leases', { resources: ['v/one', 'v/two'] }))).toBe('403 forbidden');
    const breaks = await forbidden({ action: 'lease_break', path: 'mine' });
    expect(breaks.map(({ principal, volume, count, status }) => [principal, volume, count, status])).toEqual([
      ['clerk', 'v', 1, 403],
      ['rival', 'v', 1, 403],
      ['writer', 'v', 1, 403],
    ]);
    expect(await forbidden({ action: 'doctor_fix' })).toMatchObject([{ principal: 'reader', count: 1 }]);
    for (const path of ['/v1/admin/fences/rebase', '/v1/admin/volumes/v/adopt'])
      expect(verdictOf(await as('reader').post(path, { reason: 'r' }))).toBe('403 forbidden');
    expect(await forbidden({ action: 'fence_rebase' })).toMatchObject([{ volume: null, path: null }]);
    expect(await forbidden({ action: 'volume_adopt' })).toMatchObject([{ volume: 'v', path: null }]);
    expect(await forbidden({ action: 'lease_break', principal: 'rival' })).toMatchObject([{ path: null }, { path: 'mine' }]);
    expect(await forbidden({ action: 'lease_refuse', path: 'one' })).toMatchObject([{ principal: 'reader', volume: 'v' }]);
  });

  it('learns nothing about the form of its question: 403 whatever the body is', async () => {
    const broken = { headers: { 'content-type': 'application/json' }, body: '{"resource":' };
    expect(verdictOf(await as('writer').send('POST', '/v1/admin/locks/break', broken))).toBe('403 forbidden');
    expect(verdictOf(await as('writer').post('/v1/admin/locks/break', {}))).toBe('403 forbidden');
    expect(verdictOf(await as('writer').post('/v1/admin/locks/break', { resource: 'v/../x' }))).toBe('403 forbidden');
  });

  it('that heartbeats or ends somebody else’s session is recorded, and equal ones within a second are counted', async () => {
    const { session_id: id } = jsonOf<{ session_id: string }>(await as('writer').post('/v1/sessions', {}));
    const stranger = as('rival').with({ 'x-client-id': 'stranger' });
    for (let i = 0; i < 3; i += 1) expect(verdictOf(await stranger.send('POST', `/v1/sessions/${id}/heartbeat`))).toBe('403 forbidden');
    expect(jsonOf(await stranger.post('/v1/sessions/heartbeats', { session_ids: [id] }))).toMatchObject({ sessions: [{ code: 'forbidden' }] });
    expect(verdictOf(await stranger.send('DELETE', `/v1/sessions/${id}`))).toBe('403 forbidden');
    const records = await forbidden({ client_id: 'stranger' });
    for (const record of records) expect(record).toMatchObject({ action: 'lease_refuse', principal: 'rival', status: 403, outcome: 'rejected' });
    expect(records.reduce((sum, { count }) => sum + count, 0)).toBe(5);
    expect((await as('writer').send('POST', `/v1/sessions/${id}/heartbeat`)).status).toBe(200);
  });
});
