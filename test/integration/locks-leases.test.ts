import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, jsonOf, type LeaseJson, verdictOf } from '../support/gateway-client.ts';
import { LockClient } from '../support/lock-client.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** Leases as clients see them over HTTP: taken, shared, taken again, converted, held back, ended. */

let gateway: VolumesGateway;
let locks: LockClient;
beforeAll(async () => {
  gateway = await startVolumes({
    volumes: { v: {}, locks: { path: null }, patient: { path: null, lease: { max_hold_ms: 60_000, lock_delay_ms: 500 } } },
  });
  locks = new LockClient(gateway.client);
});
afterAll(() => gateway.stop());

const put = (name: string, lease: LeaseJson) => gateway.client.put(name, 'x', { 'x-fencing-token': lease.fencing_token });
const number = ({ fencing_token: token }: LeaseJson): bigint => BigInt(token);

describe('a try', () => {
  it('is 201 with the lease and where it is, and 409 for everybody else, naming the holder', async () => {
    const answer = await locks.acquire('locks/try', { client_id: 'one', metadata: { job: 7 }, ttl_ms: 20_000 });
    const lease = jsonOf<LeaseJson>(answer);
    expect([answer.status, answer.headers['location']]).toEqual([201, `/v1/leases/${encodeURIComponent(lease.lease_id)}`]);
    expect(lease).toMatchObject({
      resource: 'locks/try',
      resources: ['locks/try'],
      mode: 'exclusive',
      state: 'held',
      client_id: 'one',
      priority: 5,
      hold_count: 1,
      ttl_ms: 20_000,
      queue_position: null,
      reason: null,
      signed_token: null,
      metadata: { job: 7 },
      acquired_znode_path: `/locks/locks/try/_c_${lease.lease_ref}`,
    });
    const refused = await locks.acquire('locks/try', { client_id: 'two' });
    expect(verdictOf(refused)).toBe('409 lock_not_acquired');
    expect(jsonOf(refused)).toMatchObject({ resource: 'locks/try', holder_client_id: 'one', holder_lease_ref: lease.lease_ref, queue_length: 0 });
    expect(await locks.lock('locks/try')).toMatchObject({
      mode: 'exclusive',
      high_water_mark: lease.fencing_token,
      queue_length: 0,
      waiters: [],
      znode_path: '/locks/locks/try',
      foreign_contenders: [],
      fence_level: null,
      holders: [{ lease_ref: lease.lease_ref, client_id: 'one', priority: 5, since: lease['granted_at'], znode: `_c_${lease.lease_ref}` }],
    });
    expect(await gateway.client.audit({ path: 'try' })).toMatchObject([
      { action: 'lease_refuse', outcome: 'rejected', code: 'lock_not_acquired', status: 409, client_id: 'two' },
      { action: 'lease_grant', outcome: 'committed', client_id: 'one', lease_ref: lease.lease_ref, fencing_token: lease.fencing_token },
    ]);
  });

  it('twenty at once: one is granted', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => locks.acquire('locks/race')));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array.from({ length: 19 }, () => 409)]);
  });
});

describe('readers and writers', () => {
  it('readers share, each with a token of its own that admits no write; a waiting writer blocks newer readers', async () => {
    const readers = [await gateway.client.lease('v/rw', { mode: 'shared' }), await gateway.client.lease('v/rw', { mode: 'shared' })] as const;
    expect(new Set(readers.map(number)).size).toBe(2);
    for (const reader of readers) expect(verdictOf(await put('v/rw', reader))).toBe('412 lease_is_shared');
    const writer = locks.acquire('v/rw', { wait_ms: 30_000 });
    await locks.queued('v/rw', 1);
    expect(verdictOf(await locks.acquire('v/rw', { mode: 'shared' }))).toBe('409 lock_not_acquired');
    const late = locks.acquire('v/rw', { mode: 'shared', wait_ms: 30_000 });
    const later = locks.acquire('v/rw', { mode: 'shared', wait_ms: 30_000 });
    await locks.queued('v/rw', 3);
    await locks.release(readers[0]);
    expect(await locks.lock('v/rw')).toMatchObject({ mode: 'shared', queue_length: 3 });
    await locks.release(readers[1]);
    const wrote = jsonOf<LeaseJson>(await writer);
    expect((await put('v/rw', wrote)).status).toBe(201);
    await locks.release(wrote);
    // All readers at the head come in together.
    expect((await Promise.all([late, later])).map((answer) => jsonOf<LeaseJson>(answer).state)).toEqual(['held', 'held']);
  });
});

describe('acquiring again in one session', () => {
  it('is 200 with the same lease and token; a hold counts once however often its request is sent, and comes off once', async () => {
    const { session_id } = await locks.session();
    const take = (more: object) => locks.acquire('locks/again', { session_id, ...more });
    const first = jsonOf<LeaseJson>(await take({ hold_id: 'outer' }));
    for (let retry = 0; retry < 3; retry += 1) {
      const answer = await take({ hold_id: 'inner' });
      expect(answer.status).toBe(200);
      expect(jsonOf(answer)).toMatchObject({ lease_id: first.lease_id, fencing_token: first.fencing_token, hold_id: 'inner', hold_count: 2 });
    }
    for (let retry = 0; retry < 3; retry += 1) expect((await locks.release(first, { hold_id: 'inner' })).status).toBe(204);
    expect(await locks.lease(first)).toMatchObject({ state: 'held', hold_count: 1 });
    expect((await locks.release(first, { hold_id: 'outer' })).status).toBe(204);
    expect(await locks.lease(first)).toMatchObject({ state: 'released', hold_count: 0, reason: 'released' });
    expect((await locks.release(first, { hold_id: 'outer' })).status).toBe(204);
  });

  it('without hold ids counts every request, and all=true lets go at once', async () => {
    const { session_id } = await locks.session();
    const first = jsonOf<LeaseJson>(await locks.acquire('locks/holds', { session_id }));
    for (const count of [2, 3]) expect(jsonOf(await locks.acquire('locks/holds', { session_id }))).toMatchObject({ hold_count: count });
    await locks.release(first);
    expect(await locks.lease(first)).toMatchObject({ state: 'held', hold_count: 2 });
    await locks.release(first, { all: 'true' });
    expect(await locks.lease(first)).toMatchObject({ state: 'released' });
  });

  it('in a weaker mode is a hold; over other resources it overlaps', async () => {
    const { session_id } = await locks.session();
    const lease = jsonOf<LeaseJson>(await locks.acquire('locks/weak', { session_id }));
    expect(jsonOf(await locks.acquire('locks/weak', { session_id, mode: 'shared' }))).toMatchObject({
      lease_id: lease.lease_id,
      mode: 'exclusive',
      hold_count: 2,
    });
    expect(verdictOf(await locks.acquire(['locks/weak', 'locks/weaker'], { session_id }))).toBe('409 overlapping_lease');
  });

  it('R21: three first acquires at once, before there is any session: one granted, two in line, and each release ends its own lease and no other', async () => {
    const waits = ['a', 'b', 'c'].map((client_id) => locks.acquire('locks/r21', { client_id, wait_ms: 60_000 }));
    const first = jsonOf<LeaseJson>(await Promise.race(waits));
    await locks.queued('locks/r21', 2);
    const seen = [first];
    for (let holder = first; seen.length < 3; seen.push(holder)) {
      // Twice: the second one meets somebody else's lease there, and must not touch it.
      await locks.release(holder);
      await locks.release(holder);
      const ended = new Set(seen.map(({ lease_id: id }) => id));
      holder = jsonOf<LeaseJson>(
        await Promise.race(
          waits.map(async (wait) => (ended.has(jsonOf<LeaseJson>(await wait).lease_id) ? new Promise<never>(() => undefined) : wait)),
        ),
      );
      expect(await locks.lock('locks/r21')).toMatchObject({ queue_length: 2 - seen.length, holders: [{ lease_ref: holder.lease_ref }] });
    }
    expect(new Set(seen.map(({ fencing_token: token }) => token)).size).toBe(3);
  });

  it('of one session three first acquires at once are one lease with three holds', async () => {
    const { session_id } = await locks.session();
    const inOne = await Promise.all(['a', 'b', 'c'].map((hold_id) => locks.acquire('locks/first', { session_id, hold_id, wait_ms: 5_000 })));
    expect(new Set(inOne.map((answer) => jsonOf<LeaseJson>(answer).fencing_token)).size).toBe(1);
    expect(await locks.lock('locks/first')).toMatchObject({ queue_length: 0, holders: [{}] });
  });
});

describe('converting', () => {
  it('R5: a downgrade is in place, keeps the number, admits no more writes and lets readers in; a queued writer waits for the reader', async () => {
    const lease = await gateway.client.lease('v/down');
    expect((await put('v/down', lease)).status).toBe(201);
    const writer = locks.acquire('v/down', { wait_ms: 30_000 });
    await locks.queued('v/down', 1);
    const down = await locks.convert(lease, 'shared');
    expect(down.status).toBe(200);
    expect(jsonOf(down)).toMatchObject({ mode: 'shared', state: 'held', fencing_token: lease.fencing_token });
    expect(verdictOf(await put('v/down', lease))).toBe('412 lease_is_shared');
    expect(await locks.lock('v/down')).toMatchObject({ mode: 'shared', queue_length: 1 });
    await locks.release(lease);
    expect(jsonOf(await writer)).toMatchObject({ state: 'held', mode: 'exclusive' });
  });

  it('an upgrade is 202 while others read, is polled for, gets a new token, and voids the old one; a second upgrader is 409 at once', async () => {
    const [one, two] = [await gateway.client.lease('v/up', { mode: 'shared' }), await gateway.client.lease('v/up', { mode: 'shared' })];
    const asked = await locks.convert(one, 'exclusive');
    expect(asked.status).toBe(202);
    expect(jsonOf(asked)).toMatchObject({ mode: 'shared', queue_position: 1 });
    expect(verdictOf(await locks.convert(two, 'exclusive'))).toBe('409 upgrade_conflict');
    const polled = locks.lease(one, 30_000);
    await locks.release(two);
    const up = await polled;
    expect(up).toMatchObject({ mode: 'exclusive', state: 'held' });
    expect(number(up)).toBeGreaterThan(number(two));
    expect(verdictOf(await put('v/up', one))).toBe('412 stale_token');
    expect((await put('v/up', up)).status).toBe(201);
    expect(verdictOf(await locks.convert(two, 'shared'))).toBe('409 lease_not_held');
    expect((await gateway.client.audit({ path: 'up', action: 'lease_convert' })).map(({ outcome }) => outcome)).toEqual(['committed']);
  });

  it('asked for by acquiring again it is 202 with the lease as it is, is polled for like any wait, and refused when only tried', async () => {
    const { session_id: session } = await locks.session();
    const one = await gateway.client.lease('v/again', { mode: 'shared', session_id: session });
    const two = await gateway.client.lease('v/again', { mode: 'shared' });
    const ask = (waitMs: number, holdId: string) => locks.acquire('v/again', { session_id: session, wait_ms: waitMs, hold_id: holdId });
    expect(verdictOf(await ask(0, 'try'))).toBe('409 lock_not_acquired');
    const asked = await ask(100, 'writes');
    expect(asked.status).toBe(202);
    expect(asked.headers['location']).toBe(`/v1/leases/${encodeURIComponent(one.lease_id)}`);
    expect(jsonOf(asked)).toMatchObject({ state: 'held', mode: 'shared', queue_position: 1, hold_count: 2, hold_id: 'writes' });
    const polled = locks.lease(one, 30_000);
    await locks.release(two);
    const up = await polled;
    expect(up).toMatchObject({ mode: 'exclusive', state: 'held', queue_position: null });
    expect((await put('v/again', up)).status).toBe(201);
    expect((await ask(100, 'writes')).status).toBe(200);
  });

  it('renewing takes an empty body whatever its content type; converting without a mode changes nothing', async () => {
    const lease = await gateway.client.lease('locks/empty', { mode: 'shared' });
    for (const headers of [{}, { 'content-type': 'application/json' }, { 'content-type': 'text/plain' }]) {
      expect((await gateway.client.send('POST', `/v1/leases/${lease.lease_id}/renew`, { headers })).status).toBe(200);
      expect(verdictOf(await gateway.client.send('POST', `/v1/leases/${lease.lease_id}/convert`, { headers }))).toBe('400 invalid_request');
    }
    expect(await locks.lease(lease)).toMatchObject({ mode: 'shared', fencing_token: lease.fencing_token, reason: null });
  });
});

describe('several resources in one lease', () => {
  it('are all or nothing, in one order whatever the request says, under one token that is the mark of each', async () => {
    const names = ['v/several/b', 'v/several/a', 'v/several/c'];
    const other = await gateway.client.lease('v/several/b');
    expect(verdictOf(await locks.acquire(names))).toBe('409 lock_not_acquired');
    for (const name of ['v/several/a', 'v/several/c']) expect(await locks.lock(name)).toMatchObject({ holders: [], queue_length: 0 });
    await locks.release(other);
    const lease = await gateway.client.lease(names);
    expect(lease).toMatchObject({ resource: null, resources: ['v/several/a', 'v/several/b', 'v/several/c'] });
    for (const name of names) {
      expect(await locks.lock(name)).toMatchObject({ high_water_mark: lease.fencing_token, holders: [{ lease_ref: lease.lease_ref }] });
      expect((await put(name, lease)).status).toBe(201);
    }
    await locks.release(lease);
    for (const name of names) expect(await locks.lock(name)).toMatchObject({ holders: [] });
  });

  it('taken crosswise by many at once all come through, without a deadlock', async () => {
    const work = Array.from({ length: 12 }, async (_, i) => {
      const [first, second] = i % 2 === 0 ? ['locks/x', 'locks/y'] : ['locks/y', 'locks/x'];
      const lease = jsonOf<LeaseJson>(await locks.acquire([first ?? '', second ?? ''], { wait_ms: 30_000 }));
      await locks.release(lease);
      return number(lease);
    });
    expect(new Set(await Promise.all(work)).size).toBe(12);
  });
});

describe('how a lease ends', () => {
  it('at another time to live after a renewal that asked for one; out of bounds is 400, and an empty body changes nothing', async () => {
    const lease = await gateway.client.lease('locks/retimed', { ttl_ms: 1_000 });
    const renew = async (body: object) => gateway.client.post(`/v1/leases/${lease.lease_id}/renew`, body);
    expect(jsonOf(await renew({ ttl_ms: 600_000 }))).toMatchObject({ ttl_ms: 600_000, fencing_token: lease.fencing_token });
    expect(jsonOf(await locks.renew(lease))).toMatchObject({ ttl_ms: 600_000 });
    expect(jsonOf(await renew({ ttl_ms: null }))).toMatchObject({ ttl_ms: 600_000 });
    expect(verdictOf(await renew({ ttl_ms: 10 }))).toBe('400 ttl_out_of_range');
    expect(verdictOf(await renew({ ttl: 10 }))).toBe('400 invalid_request');
    expect(jsonOf(await renew({ ttl_ms: 1_000 }))).toMatchObject({ ttl_ms: 1_000 });
    await eventually(
      () => locks.lease(lease),
      ({ state }) => state === 'expired',
    );
  });

  it('R30: at its time to live, for good: a renewal that comes too late is 409, also when nobody took the lock since', async () => {
    const lease = await gateway.client.lease('v/late', { ttl_ms: 1_000 });
    await eventually(
      () => locks.lease(lease),
      ({ state }) => state !== 'held',
    );
    const late = await locks.renew(lease);
    expect(verdictOf(late)).toBe('409 lease_not_held');
    expect(jsonOf(late)).toMatchObject({ state: 'expired', reason: 'expired' });
    expect(verdictOf(await put('v/late', lease))).toBe('412 lease_ended');
    expect((await locks.release(lease)).status).toBe(204);
    expect(await gateway.client.audit({ path: 'late', action: 'lease_expire' })).toMatchObject([
      { outcome: 'committed', lease_ref: lease.lease_ref },
    ]);
  });

  it("R14, R18: at the client's time to live, not the gateway's, and both numbers are shown", async () => {
    const lease = await gateway.client.lease('locks/ttl', { ttl_ms: 1_000, lock_delay_ms: 100 });
    const [holder] = (await locks.lock('locks/ttl')).holders;
    expect(holder).toMatchObject({ ttl_ms: 1_000, lock_delay_ms: 100 });
    expect(Number(holder?.['expires_in_ms'])).toBeLessThanOrEqual(1_000);
    const next = jsonOf<LeaseJson>(await locks.acquire('locks/ttl', { wait_ms: 10_000 }));
    expect(next.state).toBe('held');
    expect(Date.parse(String(next['granted_at'])) - Date.parse(String(lease['granted_at']))).toBeGreaterThanOrEqual(990);
  });

  it('after max_hold_ms however often it is renewed, fenced first', async () => {
    const lease = await gateway.client.lease('v/held', { max_hold_ms: 1_000, ttl_ms: 60_000 });
    await eventually(
      () => locks.renew(lease),
      ({ status }) => status === 409,
    );
    expect(await locks.lease(lease)).toMatchObject({ state: 'expired', reason: 'max_hold' });
    expect(verdictOf(await put('v/held', lease))).toBe('412 stale_token');
    expect(verdictOf(await locks.acquire('patient/held', { max_hold_ms: 60_001 }))).toBe('400 invalid_request');
  });

  it('with lock_delay_ms the next one waits after an unclean end, and not after a clean one', async () => {
    const clean = await gateway.client.lease('locks/delay', { lock_delay_ms: 60_000 });
    await locks.release(clean);
    const broken = await gateway.client.lease('locks/delay', { lock_delay_ms: 400 });
    await locks.break('locks/delay');
    expect(verdictOf(await locks.acquire('locks/delay'))).toBe('409 lock_not_acquired');
    const [ended] = await gateway.client.audit({ action: 'lease_break', path: 'delay' });
    const next = jsonOf<LeaseJson>(await locks.acquire('locks/delay', { wait_ms: 10_000 }));
    expect(next.state).toBe('held');
    expect(Date.parse(String(next['granted_at'])) - Date.parse(String(ended?.['at']))).toBeGreaterThanOrEqual(390);
    expect(number(next)).toBeGreaterThan(number(broken));
  });

  it('B13: released twice it frees nobody else', async () => {
    const first = await gateway.client.lease('locks/twice');
    expect((await locks.release(first)).status).toBe(204);
    const second = await gateway.client.lease('locks/twice');
    expect((await locks.release(first)).status).toBe(204);
    expect(await locks.lease(second)).toMatchObject({ state: 'held' });
    expect((await gateway.client.audit({ path: 'twice', action: 'lease_release' })).length).toBe(1);
  });
});

describe('lock information', () => {
  it('of a name never locked is empty; a list is paged and filtered by volume, state and age', async () => {
    expect(await locks.lock('locks/never/locked')).toEqual({
      resource: 'locks/never/locked',
      mode: null,
      high_water_mark: null,
      holders: [],
      waiters: [],
      queue_length: 0,
      wait_estimate_ms: 0,
      held_back_ms: 0,
      znode_path: '/locks/locks/never%2Flocked',
      foreign_contenders: [],
      fence_level: null,
    });
    for (const name of ['one', 'two', 'three']) await gateway.client.lease(`patient/${name}`);
    const waiting = jsonOf<LeaseJson>(await locks.acquire('patient/two', { wait_ms: 1, client_id: 'later', priority: 7 }));
    expect(waiting).toMatchObject({ state: 'waiting', queue_position: 1, fencing_token: null });
    const list = async (query: Record<string, string | number>) =>
      jsonOf<{ locks: { resource: string }[]; next_cursor: string | null }>(await gateway.client.send('GET', '/v1/locks', { query }));
    const names = async (query: Record<string, string | number>) =>
      (await list({ volume: 'patient', ...query })).locks.map(({ resource }) => resource);
    expect(await names({})).toEqual(['patient/one', 'patient/two', 'patient/three']);
    const { next_cursor } = await list({ volume: 'patient', limit: 2 });
    expect(await names({ limit: 2, cursor: next_cursor ?? '' })).toEqual(['patient/three']);
    expect(await names({ state: 'waiting' })).toEqual(['patient/two']);
    expect(await names({ older_than_ms: 3_600_000 })).toEqual([]);
    await eventually(
      () => names({ older_than_ms: 50 }),
      (found) => found.length === 3,
    );
    await eventually(
      () => names({ older_than_ms: 50, state: 'waiting' }),
      (found) => found.length === 1,
    );
    expect((await locks.lock('patient/two')).waiters).toMatchObject([
      { lease_ref: waiting.lease_ref, client_id: 'later', priority: 7, since: expect.any(String), expires_in_ms: expect.any(Number) },
    ]);
    expect(verdictOf(await gateway.client.send('GET', '/v1/locks', { query: { volume: 'nowhere' } }))).toBe('404 volume_not_found');
    expect(verdictOf(await gateway.client.send('GET', '/v1/locks', { query: { state: 'asleep' } }))).toBe('400 invalid_request');
  });
});
