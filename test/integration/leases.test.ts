import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, jsonOf, type LeaseJson, textOf, verdictOf } from '../support/gateway-client.ts';
import { ask, head } from '../support/raw-request.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** Leases as their HTTP contract has them: shapes, bounds, and what a restart keeps. The queue itself is in the locks suites. */

let gateway: VolumesGateway;
beforeAll(async () => {
  gateway = await startVolumes({
    volumes: { v: {}, tight: { lease: { ttl_ms_min: 5_000, ttl_ms_max: 10_000, max_hold_ms: 20_000 } }, locks: { path: null } },
  });
});
afterAll(() => gateway.stop());

const acquire = (body: unknown) => gateway.client.post('/v1/leases', body);

describe('the answer to POST /v1/leases', () => {
  it('has every member, and Location is where the lease is', async () => {
    const answer = await gateway.client.post('/v1/leases', {
      resource: 'v/shape',
      client_id: 'batch',
      metadata: { job: 7 },
      hold_id: 'h-1',
      ttl_ms: 60_000,
      priority: 9,
    });
    const body = jsonOf<LeaseJson>(answer);
    expect([answer.status, answer.headers['location']]).toEqual([201, `/v1/leases/${body.lease_id}`]);
    expect(body).toEqual({
      lease_id: expect.stringMatching(/^\S{20,}$/),
      lease_ref: expect.any(String),
      resource: 'v/shape',
      resources: ['v/shape'],
      mode: 'exclusive',
      state: 'held',
      fencing_token: expect.stringMatching(/^[1-9]\d*$/),
      signed_token: null,
      client_id: 'batch',
      session_id: expect.any(String),
      priority: 9,
      hold_count: 1,
      hold_id: 'h-1',
      ttl_ms: 60_000,
      expires_in_ms: expect.any(Number),
      hold_expires_in_ms: null,
      lease_expires_at: expect.stringMatching(/Z$/),
      granted_at: expect.stringMatching(/Z$/),
      queue_position: null,
      acquired_znode_path: expect.any(String),
      reason: null,
      cycle: null,
      metadata: { job: 7 },
    });
    const again = await gateway.client.send('GET', answer.headers['location'] ?? '');
    expect(jsonOf(again)).toMatchObject({ lease_id: body.lease_id, state: 'held', fencing_token: body.fencing_token });
    expect(body.lease_ref).not.toContain(body.lease_id);
  });

  it('while waiting is 202 with the place, no token, and a Location to poll', async () => {
    await gateway.client.lease('v/line');
    const answer = await acquire({ resource: 'v/line', wait_ms: 1 });
    expect([answer.status, jsonOf(answer)]).toMatchObject([202, { state: 'waiting', fencing_token: null, granted_at: null, queue_position: 1 }]);
    expect(answer.headers['location']).toBe(`/v1/leases/${jsonOf<LeaseJson>(answer).lease_id}`);
    await gateway.client.release(jsonOf<LeaseJson>(answer));
    expect(jsonOf(await gateway.client.send('GET', answer.headers['location'] ?? ''))).toMatchObject({ state: 'cancelled', queue_position: null });
  });
});

describe('a bad request is refused before anything', () => {
  it.each<[string, unknown]>([
    ['nothing', {}],
    ['both resource and resources', { resource: 'v/a', resources: ['v/a', 'v/b'] }],
    ['one in resources', { resources: ['v/a'] }],
    ['a resource twice', { resources: ['v/a', 'v/a'] }],
    ['101 resources', { resources: Array.from({ length: 101 }, (_, i) => `v/${i}`) }],
    ['an unknown member', { resource: 'v/a', colour: 'red' }],
    ['another mode', { resource: 'v/a', mode: 'write' }],
    ['a ttl that is text', { resource: 'v/a', ttl_ms: '5000' }],
    ['a ttl with a fraction', { resource: 'v/a', ttl_ms: 5_000.5 }],
    ['a negative wait', { resource: 'v/a', wait_ms: -1 }],
    ['a wait over a minute', { resource: 'v/a', wait_ms: 60_001 }],
    ['priority 10', { resource: 'v/a', priority: 10 }],
    ['priority -1', { resource: 'v/a', priority: -1 }],
    ['max_hold_ms 0', { resource: 'v/a', max_hold_ms: 0 }],
    ['an empty hold id', { resource: 'v/a', hold_id: '' }],
    ['a client id with a line break', { resource: 'v/a', client_id: 'a\nb' }],
    ['a client id that is too long', { resource: 'v/a', client_id: 'x'.repeat(257) }],
    ['metadata over 4 KiB', { resource: 'v/a', metadata: { x: 'x'.repeat(5_000) } }],
    ['metadata that is a list', { resource: 'v/a', metadata: [] }],
    ['a list', []],
    ['a text', 'v/a'],
    ['null', null],
  ])('%s', async (_what, body) => {
    expect(verdictOf(await acquire(body))).toMatch(/^400 invalid_(request|path)$/);
    expect(jsonOf(await gateway.client.send('GET', '/v1/locks/v/a'))).toMatchObject({ holders: [], waiters: [], high_water_mark: null });
  });

  it("R15: a time to live outside the volume's bounds is 400 with the bounds, never bent", async () => {
    for (const [resource, ttl, min, max] of [
      ['v/ttl', 999, 1_000, 3_600_000],
      ['v/ttl', 3_600_001, 1_000, 3_600_000],
      ['v/ttl', 0, 1_000, 3_600_000],
      ['tight/ttl', 4_999, 5_000, 10_000],
      ['tight/ttl', 10_001, 5_000, 10_000],
    ] as const) {
      const answer = await acquire({ resource, ttl_ms: ttl });
      expect([verdictOf(answer), jsonOf(answer)]).toMatchObject(['400 ttl_out_of_range', { min_ms: min, max_ms: max }]);
    }
    const held = jsonOf(await acquire({ resource: 'tight/ttl', ttl_ms: 5_000 }));
    expect(held).toMatchObject({ ttl_ms: 5_000 });
    // The longest hold is the volume's.
    expect(Number(held['hold_expires_in_ms'])).toBeGreaterThan(15_000);
    expect(Number(held['hold_expires_in_ms'])).toBeLessThanOrEqual(20_000);
  });

  it('a volume, lease or session that is not there is 404', async () => {
    expect(verdictOf(await acquire({ resource: 'nowhere/a' }))).toBe('404 volume_not_found');
    expect(verdictOf(await acquire({ resource: 'v/a', session_id: 'nobody' }))).toBe('404 session_not_found');
    for (const answer of [await gateway.client.send('GET', '/v1/leases/nobody'), await gateway.client.send('POST', '/v1/leases/nobody/renew')])
      expect(verdictOf(answer)).toBe('404 lease_not_found');
  });

  it('JSON that is none, or of another media type', async () => {
    expect(verdictOf(await gateway.client.send('POST', '/v1/leases', { headers: { 'content-type': 'application/json' }, body: '{' }))).toBe(
      '400 invalid_request',
    );
    expect(
      verdictOf(
        await gateway.client.send('POST', '/v1/leases', { headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'resource=v/a' }),
      ),
    ).toBe('415 unsupported_media_type');
    expect(
      verdictOf(
        await gateway.client.send('POST', '/v1/leases', {
          headers: { 'content-type': 'application/json' },
          body: '{"resource":"v/a","__proto__":{"x":1}}',
        }),
      ),
    ).toBe('400 invalid_request');
  });
});

describe('renew', () => {
  it('takes an empty body whatever its content type, also none at all', async () => {
    const { lease_id: id } = await gateway.client.lease('v/renewed');
    for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded', 'nonsense', null]) {
      const lines = type === null ? [] : [`Content-Type: ${type}`];
      expect((await ask(gateway.raw(), head(`POST /v1/leases/${id}/renew`, ...lines, 'Content-Length: 0'))).status).toBe(200);
      expect((await ask(gateway.raw(), head(`POST /v1/leases/${id}/renew`, ...lines))).status).toBe(200);
      expect((await ask(gateway.raw(), `${head(`POST /v1/leases/${id}/renew`, ...lines, 'Transfer-Encoding: chunked')}0\r\n\r\n`)).status).toBe(200);
    }
  });

  it('gives the whole time again, and polling does not', async () => {
    const held = await gateway.client.lease('v/time', { ttl_ms: 60_000 });
    const left = async (): Promise<number> => Number(jsonOf(await gateway.client.send('GET', `/v1/leases/${held.lease_id}`))['expires_in_ms']);
    const [first, second] = [await left(), await eventually(left, (ms) => ms < 59_950)];
    expect(second).toBeLessThan(first + 1);
    expect(jsonOf(await gateway.client.send('POST', `/v1/leases/${held.lease_id}/renew`))).toMatchObject({
      state: 'held',
      fencing_token: held.fencing_token,
    });
    expect(await left()).toBeGreaterThan(second);
  });
});

describe('an ended lease', () => {
  it('is 200 with its last state and the reason; releasing it again is 204', async () => {
    const held = await gateway.client.lease('v/ended');
    await gateway.client.release(held);
    expect(jsonOf(await gateway.client.send('GET', `/v1/leases/${held.lease_id}`))).toMatchObject({
      state: 'released',
      reason: 'released',
      fencing_token: held.fencing_token,
      hold_count: 0,
    });
    await gateway.client.release(held);
    const short = await gateway.client.lease('v/expired', { ttl_ms: 1_000 });
    const over = await eventually(
      async () => jsonOf<LeaseJson>(await gateway.client.send('GET', `/v1/leases/${short.lease_id}`)),
      ({ state }) => state !== 'held',
    );
    expect(over).toMatchObject({ state: 'expired', reason: 'expired' });
  });

  it('whether it has ended is judged when it is asked for: state, list and lock say the same at once', async () => {
    const short = await gateway.client.lease('v/judged', { ttl_ms: 1_000 });
    await eventually(
      async () => jsonOf<LeaseJson>(await gateway.client.send('GET', `/v1/leases/${short.lease_id}`)),
      ({ state }) => state === 'expired',
    );
    expect(jsonOf(await gateway.client.send('GET', '/v1/locks/v/judged'))).toMatchObject({ holders: [], mode: null });
    expect(textOf(await gateway.client.send('GET', '/v1/locks', { query: { volume: 'v' } }))).not.toContain('v/judged');
    expect((await acquire({ resource: 'v/judged' })).status).toBe(201);
  });
});

describe('a restart', () => {
  it('R33: keeps leases with their tokens, ends none wrongly, and never issues a token twice', async () => {
    const { client, directory } = gateway;
    const kept = await client.lease('v/kept', { ttl_ms: 600_000 });
    const reader = await client.lease('v/read', { ttl_ms: 600_000, mode: 'shared' });
    const over = await client.lease('v/over');
    await client.put('v/over', 'x', { 'x-fencing-token': over.fencing_token });
    await client.release(over);
    await client.lease('v/line2', { ttl_ms: 600_000 });
    const waiting = client.post('/v1/leases', { resource: 'v/line2', wait_ms: 30_000 });
    await eventually(
      async () => jsonOf(await client.send('GET', '/v1/locks/v/line2')),
      ({ queue_length: length }) => length === 1,
    );
    await client.put('v/implicit', 'x');
    const highest = BigInt((await client.put('v/highest', 'x')).headers['x-fencing-token'] ?? '0');
    await Promise.all([
      gateway.halt(),
      waiting.then(
        (answer) => expect(answer.status).toBeGreaterThanOrEqual(409),
        () => undefined,
      ),
    ]);

    gateway = await startVolumes({
      directory,
      volumes: { v: {}, tight: { lease: { ttl_ms_min: 5_000, ttl_ms_max: 10_000, max_hold_ms: 20_000 } }, locks: { path: null } },
    });
    expect(jsonOf(await gateway.client.send('GET', `/v1/leases/${kept.lease_id}`))).toMatchObject({
      state: 'held',
      fencing_token: kept.fencing_token,
      lease_ref: kept.lease_ref,
    });
    expect(verdictOf(await gateway.client.put('v/kept', 'after', { 'x-fencing-token': kept.fencing_token, 'x-lease-id': kept.lease_id }))).toBe(
      '201',
    );
    expect(verdictOf(await gateway.client.put('v/kept', 'x', { 'x-lock-wait-ms': '0' }))).toBe('423 resource_locked');
    expect(verdictOf(await gateway.client.put('v/read', 'x', { 'x-fencing-token': reader.fencing_token }))).toBe('412 lease_is_shared');
    expect(verdictOf(await gateway.client.put('v/over', 'late', { 'x-fencing-token': over.fencing_token }))).toBe('412 lease_ended');
    expect(verdictOf(await gateway.client.put('v/implicit', 'y', { 'x-lock-wait-ms': '0' }))).toBe('200');
    const fresh = await gateway.client.lease('v/fresh');
    expect(BigInt(fresh.fencing_token)).toBeGreaterThan(highest);
    expect((await gateway.client.audit({ action: 'start' })).length).toBe(2);
    expect(jsonOf(await gateway.client.send('GET', '/v1/audit/verify'))).toMatchObject({ valid: true });
  });
});
