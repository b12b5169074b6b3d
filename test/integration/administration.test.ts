import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, jsonOf, type LeaseJson, textOf, verdictOf } from '../support/gateway-client.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** Administration, health and pages. */

let gateway: VolumesGateway;
beforeAll(async () => {
  gateway = await startVolumes({
    volumes: { v: {}, still: { read_only: true }, locks: { path: null }, missing: { path: '/nonexistent/fencegate-test' } },
  });
});
afterAll(() => gateway.stop());

const ask = (target: string) => gateway.client.send('GET', target);

describe('breaking a lock', () => {
  it('R20: needs no id; the mark is raised to a token that nobody gets, then the lease ends; the answer lists what it had written', async () => {
    const { client } = gateway;
    await client.put('v/stuck', 'before');
    const held = await client.lease('v/stuck', { client_id: 'crashed' });
    const written = await client.put('v/stuck', 'by the holder', { 'x-fencing-token': held.fencing_token });
    const answer = await client.post('/v1/admin/locks/break', { resource: 'v/stuck', reason: 'the host is gone' });
    expect(answer.status).toBe(200);
    const report = jsonOf<{ high_water_mark: string }>(answer);
    expect(report).toMatchObject({
      resource: 'v/stuck',
      state: 'broken',
      deadline: null,
      leases: [
        {
          lease_ref: held.lease_ref,
          client_id: 'crashed',
          mode: 'exclusive',
          fencing_token: held.fencing_token,
          committed: [{ operation_id: written.headers['x-operation-id'], action: 'put', etag_after: written.headers['etag'] }],
        },
      ],
    });
    expect(BigInt(report.high_water_mark)).toBeGreaterThan(BigInt(held.fencing_token));
    expect(verdictOf(await client.put('v/stuck', 'late', { 'x-fencing-token': held.fencing_token }))).toBe('412 stale_token');
    expect(verdictOf(await client.put('v/stuck', 'late', { 'x-fencing-token': report.high_water_mark }))).toMatch(/^(403|412) /);
    expect(jsonOf(await ask(`/v1/leases/${held.lease_id}`))).toMatchObject({ state: 'broken' });
    expect(verdictOf(await client.send('POST', `/v1/leases/${held.lease_id}/renew`))).toBe('409 lease_not_held');
    expect(await client.audit({ action: 'lease_break', path: 'stuck' })).toMatchObject([{ outcome: 'committed', lease_ref: held.lease_ref }]);
    expect((await client.put('v/stuck', 'after')).status).toBe(200);
  });

  it('with a grace period is 202: the holder may still write, nobody new is granted, then the same', async () => {
    const { client } = gateway;
    const held = await client.lease('v/grace');
    const answer = await client.post('/v1/admin/locks/break', { resource: 'v/grace', reason: 'maintenance', grace_ms: 1_000 });
    expect([answer.status, jsonOf(answer)]).toMatchObject([202, { state: 'breaking', high_water_mark: null, deadline: expect.stringMatching(/Z$/) }]);
    expect((await client.put('v/grace', 'still mine', { 'x-fencing-token': held.fencing_token })).status).toBe(201);
    expect(verdictOf(await client.post('/v1/leases', { resource: 'v/grace' }))).toBe('409 lock_not_acquired');
    await eventually(
      async () => jsonOf<LeaseJson>(await ask(`/v1/leases/${held.lease_id}`)),
      ({ state }) => state === 'broken',
    );
    expect(verdictOf(await client.put('v/grace', 'late', { 'x-fencing-token': held.fencing_token }))).toBe('412 stale_token');
  });

  it.each<[string, unknown, string]>([
    ['nobody holds it', { resource: 'v/free', reason: 'r' }, '404 not_found'],
    ['no reason', { resource: 'v/free' }, '400 invalid_request'],
    ['an empty reason', { resource: 'v/free', reason: '' }, '400 invalid_request'],
    ['a grace below zero', { resource: 'v/free', reason: 'r', grace_ms: -1 }, '400 invalid_request'],
    ['no such volume', { resource: 'nowhere/a', reason: 'r' }, '404 volume_not_found'],
    ['a path with dots', { resource: 'v/../a', reason: 'r' }, '400 invalid_path'],
  ])('%s', async (_what, body, verdict) => {
    expect(verdictOf(await gateway.client.post('/v1/admin/locks/break', body))).toBe(verdict);
  });
});

describe('fences', () => {
  it('show the mark of a resource, also of one that was deleted; and null for one never leased', async () => {
    const { client } = gateway;
    const held = await client.lease('v/fence');
    await client.put('v/fence', 'x', { 'x-fencing-token': held.fencing_token });
    await client.delete('v/fence', { 'x-fencing-token': held.fencing_token });
    await client.release(held);
    expect(jsonOf(await ask('/v1/admin/fences/v/fence'))).toMatchObject({
      resource: 'v/fence',
      high_water_mark: held.fencing_token,
      lease_ref: held.lease_ref,
      ever_named: true,
    });
    expect(jsonOf(await ask('/v1/admin/fences/v/nothing'))).toEqual({
      resource: 'v/nothing',
      high_water_mark: null,
      lease_ref: null,
      principal: null,
      ever_named: false,
      floor: null,
    });
    expect(verdictOf(await ask('/v1/admin/fences/nowhere/a'))).toBe('404 volume_not_found');
  });

  it('a rebase goes above every token, ends every lease, and is audited', async () => {
    const rebased = await startVolumes({ volumes: { v: {}, w: {} } });
    const { client } = rebased;
    const held = await client.lease('v/rebased');
    await client.put('v/rebased', 'x', { 'x-fencing-token': held.fencing_token });
    expect(verdictOf(await client.post('/v1/admin/fences/rebase', {}))).toBe('400 invalid_request');
    const answer = await client.post('/v1/admin/fences/rebase', { reason: 'restored from a backup' });
    const { base, volumes } = jsonOf<{ base: string; volumes: string[] }>(answer);
    expect([answer.status, volumes, BigInt(base) > BigInt(held.fencing_token)]).toEqual([200, ['v', 'w'], true]);
    expect(verdictOf(await client.put('v/rebased', 'late', { 'x-fencing-token': held.fencing_token }))).toMatch(/^412 (stale_token|lease_ended)$/);
    expect(jsonOf(await client.send('GET', `/v1/leases/${held.lease_id}`))).toMatchObject({ state: 'lost' });
    const fresh = await client.lease('v/rebased');
    expect(BigInt(fresh.fencing_token)).toBeGreaterThan(BigInt(base));
    expect((await client.put('v/rebased', 'y', { 'x-fencing-token': fresh.fencing_token })).status).toBe(200);
    expect(await client.audit({ action: 'fence_rebase', outcome: 'committed' })).toMatchObject([
      { high_water_mark: base, detail: { reason: 'restored from a backup' } },
    ]);
    expect(jsonOf(await client.send('GET', '/v1/admin/fences/w/nothing'))).toMatchObject({ floor: base });
    await rebased.stop();
  });

  it('a rebase that cannot reach every volume is 503, and nothing was rebased', async () => {
    const { client } = gateway;
    const held = await client.lease('v/not-rebased');
    expect(verdictOf(await client.post('/v1/admin/fences/rebase', { reason: 'try' }))).toBe('503 volume_unavailable');
    expect((await client.put('v/not-rebased', 'x', { 'x-fencing-token': held.fencing_token })).status).toBe(201);
    expect(jsonOf(await ask('/v1/admin/fences/v/nothing'))).toMatchObject({ floor: null });
  });
});

describe('health', () => {
  it('says what can be written, with the level of the fence; a missing volume does not stop the others', async () => {
    expect(jsonOf(await ask('/healthz'))).toEqual({ status: 'ok' });
    const answer = await ask('/readyz');
    expect([answer.status, jsonOf(answer)]).toMatchObject([
      200,
      {
        ready: true,
        journal: { healthy: true, head_seq: expect.any(Number), head_hash: expect.stringMatching(/^[0-9a-f]{64}$/), reason: null },
        coordinator: { kind: 'embedded', state: 'connected', session_ms: null, proof_age_ms: null, reason: null },
        volumes: [
          { name: 'v', state: 'open', fence_level: 'incarnation', reason: null },
          { name: 'still', state: 'read_only' },
          { name: 'locks', state: 'lock_only' },
          { name: 'missing', state: 'unavailable', reason: expect.any(String) },
        ],
      },
    ]);
    expect(verdictOf(await gateway.client.put('missing/a', 'x'))).toBe('503 volume_unavailable');
    expect(verdictOf(await gateway.client.get('missing/a'))).toBe('503 volume_unavailable');
    expect((await gateway.client.put('v/others-go-on', 'x')).status).toBe(201);
  });

  it('is 503 when nothing can be written or locked', async () => {
    const other = await startVolumes({ volumes: { only: { path: '/nonexistent/fencegate-test' } } });
    const answer = await other.client.send('GET', '/readyz');
    expect([answer.status, jsonOf(answer), Number(answer.headers['retry-after'])]).toMatchObject([503, { ready: false }, expect.any(Number)]);
    expect((await other.client.send('GET', '/healthz')).status).toBe(200);
    await other.stop();
  });

  it('volumes, doctor and sessions are shown to the administrator', async () => {
    const { volumes } = jsonOf<{ volumes: Record<string, unknown>[] }>(await ask('/v1/admin/volumes'));
    expect(volumes.find(({ name }) => name === 'v')).toEqual({
      name: 'v',
      state: 'open',
      fence_level: 'incarnation',
      reason: null,
      path: gateway.path('v'),
      incarnation: expect.stringMatching(/^[0-9a-f]{32}$/),
      read_only: false,
      mount: {
        file_system: expect.any(String),
        network: false,
        source: expect.any(String),
        options: expect.arrayContaining([expect.stringMatching(/^r[ow]$/)]),
        warnings: [],
        note: null,
      },
    });
    expect(jsonOf(await ask('/v1/admin/doctor'))).toMatchObject({
      at: expect.any(String),
      findings: expect.any(Array),
      sessions: expect.any(Array),
      locks: expect.any(Array),
      wait_for: [],
      coordinator: { kind: 'embedded' },
      volumes: expect.any(Array),
    });
    expect(verdictOf(await gateway.client.post('/v1/admin/doctor/fixes', { finding_id: 'none', dry_run: true }))).toBe('404 not_found');
    expect(verdictOf(await gateway.client.post('/v1/admin/volumes/nowhere/adopt', { reason: 'r' }))).toBe('404 volume_not_found');
    expect(await gateway.client.audit({ action: 'volume_adopt', code: 'volume_not_found' })).toMatchObject([
      { volume: 'nowhere', outcome: 'rejected' },
    ]);
    // It is its own already: an adoption would end every lease for nothing.
    const lease = jsonOf(await gateway.client.post('/v1/leases', { resource: 'v/own', ttl_ms: 60_000 }));
    expect((await gateway.client.post('/v1/admin/volumes/v/adopt', { reason: 'r' })).status).toBe(200);
    expect(jsonOf(await ask(`/v1/leases/${String(lease['lease_id'])}`))).toMatchObject({ state: 'held' });
    expect(verdictOf(await gateway.client.send('DELETE', '/v1/admin/sessions/none'))).toBe('404 session_not_found');
  });

  it('metrics are Prometheus text', async () => {
    const answer = await ask('/metrics');
    expect([answer.status, answer.headers['content-type']]).toEqual([200, expect.stringMatching(/^text\/plain; version=0\.0\.4/)]);
    expect(textOf(answer)).toMatch(/^# HELP \w+/m);
  });
});

describe('pages', () => {
  it('every type of a problem has one; the start page and the reference are served from here', async () => {
    for (const target of ['/', '/docs/', '/docs/problems/stale_token', '/openapi.json']) {
      const answer = await ask(target);
      expect(answer.status).toBe(200);
      expect(textOf(answer)).not.toMatch(/(?:src|href)="https?:/);
    }
    expect(verdictOf(await ask('/docs/problems/nothing'))).toBe('404 not_found');
    expect(verdictOf(await ask('/nothing'))).toBe('404 not_found');
  });
});
