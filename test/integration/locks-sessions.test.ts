import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, jsonOf, type LeaseJson, verdictOf } from '../support/gateway-client.ts';
import { LockClient } from '../support/lock-client.ts';
import { bearerOf, principalsFile, startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** Sessions over HTTP: one sign of life for everything that a client holds. */

let gateway: VolumesGateway;
let locks: LockClient;
beforeAll(async () => {
  gateway = await startVolumes({ volumes: { v: {}, locks: { path: null } } });
  locks = new LockClient(gateway.client);
});
afterAll(() => gateway.stop());

describe('a session', () => {
  it('is made with its bounds, and says how long it lives', async () => {
    const answer = await gateway.client.post('/v1/sessions', { ttl_ms: 20_000, client_id: 'batch-7' });
    expect(answer.status).toBe(201);
    expect(jsonOf(answer)).toEqual({
      session_id: expect.any(String),
      session_ref: expect.any(String),
      ttl_ms: 20_000,
      expires_in_ms: 20_000,
      lease_count: 0,
    });
    for (const ttl_ms of [0, 999, 3_600_001]) {
      const refused = await gateway.client.post('/v1/sessions', { ttl_ms });
      expect(verdictOf(refused)).toBe('400 ttl_out_of_range');
      expect(jsonOf(refused)).toMatchObject({ min_ms: 1_000, max_ms: 3_600_000 });
    }
  });

  it('one heartbeat renews every lease, also those with a shorter time to live than its own', async () => {
    const session = await locks.session({ ttl_ms: 60_000 });
    const leases = await Promise.all(
      ['a', 'b', 'c'].map((name) => gateway.client.lease(`locks/beat/${name}`, { session_id: session.session_id, ttl_ms: 1_000 })),
    );
    const until = Date.now() + 1_500;
    await eventually(
      () => locks.heartbeat(session),
      () => Date.now() > until,
    );
    for (const lease of leases) expect(await locks.lease(lease)).toMatchObject({ state: 'held' });
  });

  it('when it is not heard of everything it holds expires, and its waits end; what was lost is told by no heartbeat any more but 409', async () => {
    const session = await locks.session({ ttl_ms: 1_000 });
    const held = await gateway.client.lease('v/dead', { session_id: session.session_id, ttl_ms: 60_000 });
    await gateway.client.lease('locks/dead');
    const waiting = jsonOf<LeaseJson>(await locks.acquire('locks/dead', { session_id: session.session_id, wait_ms: 1, ttl_ms: 60_000 }));
    const next = await locks.acquire('v/dead', { wait_ms: 30_000 });
    expect(jsonOf(next)).toMatchObject({ state: 'held' });
    expect(await locks.lease(held)).toMatchObject({ state: 'expired', reason: 'session_ended' });
    expect(await locks.lease(waiting)).toMatchObject({ state: 'expired' });
    expect(verdictOf(await locks.heartbeat(session))).toBe('409 session_ended');
    expect(verdictOf(await locks.acquire('locks/other', { session_id: session.session_id }))).toBe('409 session_ended');
    expect(verdictOf(await gateway.client.put('v/dead', 'x', { 'x-fencing-token': held.fencing_token }))).toBe('412 stale_token');
  });

  it("R10: a heartbeat tells which leases were lost without the client's doing, again and again", async () => {
    const session = await locks.session({ ttl_ms: 60_000 });
    const lost = await gateway.client.lease('locks/told', { session_id: session.session_id });
    const own = await gateway.client.lease('locks/own', { session_id: session.session_id });
    await locks.break('locks/told');
    await locks.release(own);
    for (let i = 0; i < 2; i += 1) expect(jsonOf(await locks.heartbeat(session))).toEqual({ expires_in_ms: 60_000, lost: [lost.lease_id] });
  });

  it('ended by its client releases all, at once and cleanly', async () => {
    const session = await locks.session({ ttl_ms: 60_000 });
    for (const name of ['a', 'b']) await gateway.client.lease(`locks/end/${name}`, { session_id: session.session_id, lock_delay_ms: 60_000 });
    const waiting = locks.acquire('locks/end/a', { wait_ms: 30_000 });
    await locks.queued('locks/end/a', 1);
    expect((await gateway.client.send('DELETE', `/v1/sessions/${session.session_id}`)).status).toBe(204);
    expect(jsonOf(await waiting)).toMatchObject({ state: 'held' });
    expect((await locks.acquire('locks/end/b')).status).toBe(201);
    expect((await gateway.client.audit({ path_prefix: 'end/', action: 'lease_release' })).map(({ path }) => path).sort()).toEqual(['end/a', 'end/b']);
    // May be repeated, like the release of a lease; a session that was never there is another matter.
    expect((await gateway.client.send('DELETE', `/v1/sessions/${session.session_id}`)).status).toBe(204);
    expect(verdictOf(await locks.heartbeat(session))).toBe('409 session_ended');
    expect(verdictOf(await gateway.client.send('DELETE', '/v1/sessions/s.never'))).toBe('404 session_not_found');
  });

  it('R35: a contender with a shorter time to live waits for that of the holder, which is what the gateway stores; the loser is told by its stream', async () => {
    const session = await locks.session({ ttl_ms: 60_000 });
    const watch = await locks.watch(`/v1/sessions/${session.session_id}/watch`);
    const holder = await gateway.client.lease('locks/ttl', { session_id: session.session_id, ttl_ms: 3_000 });
    expect(await locks.lock('locks/ttl')).toMatchObject({ holders: [{ ttl_ms: 3_000 }] });
    let contender = jsonOf<LeaseJson>(await locks.acquire('locks/ttl', { ttl_ms: 1_000, wait_ms: 500 }));
    while (contender.state === 'waiting') contender = await locks.lease(contender, 500);
    expect(contender).toMatchObject({ state: 'held', ttl_ms: 1_000 });
    expect(Date.parse(String(contender['granted_at'])) - Date.parse(String(holder['granted_at']))).toBeGreaterThanOrEqual(2_990);
    expect([await watch.next(), await watch.next()]).toMatchObject([
      { type: 'granted', data: { lease_ref: holder.lease_ref } },
      { type: 'expired', data: { lease_ref: holder.lease_ref, reason: 'expired', fencing_token: holder.fencing_token } },
    ]);
    watch.close();
  });

  it('an implied one is made for a lease without one, lives by renewals and polls, and ends with it', async () => {
    const lease = await gateway.client.lease('locks/implied', { ttl_ms: 1_000 });
    expect(lease.session_id).toBeTruthy();
    const until = Date.now() + 1_400;
    await eventually(
      () => locks.renew(lease),
      () => Date.now() > until,
    );
    expect(await locks.lease(lease)).toMatchObject({ state: 'held' });
    await locks.release(lease);
    expect(verdictOf(await gateway.client.send('POST', `/v1/sessions/${lease.session_id}/heartbeat`))).toBe('404 session_not_found');
  });
});

describe('heartbeats in a batch', () => {
  it('are answered one by one, in order; a dead one costs the others nothing', async () => {
    const made = await Promise.all([1, 2, 3].map(() => locks.session({ ttl_ms: 30_000 })));
    const [one, ended, three] = made.map(({ session_id }) => session_id);
    await gateway.client.send('DELETE', `/v1/sessions/${ended}`);
    const answer = await gateway.client.post('/v1/sessions/heartbeats', { session_ids: [one, ended, 'nobody', three] });
    expect(jsonOf(answer)).toEqual({
      sessions: [
        { session_id: one, expires_in_ms: 30_000, lost: [], code: null },
        { session_id: ended, expires_in_ms: null, lost: [], code: 'session_ended' },
        { session_id: 'nobody', expires_in_ms: null, lost: [], code: 'session_not_found' },
        { session_id: three, expires_in_ms: 30_000, lost: [], code: null },
      ],
    });
    for (const session_ids of [[], Array.from({ length: 1_001 }, () => one), 'x', [7]])
      expect(verdictOf(await gateway.client.post('/v1/sessions/heartbeats', { session_ids }))).toBe('400 invalid_request');
    expect((await gateway.client.post('/v1/sessions/heartbeats', { session_ids: Array.from({ length: 1_000 }, () => one) })).status).toBe(200);
  });

  it('of a thousand that nobody has are two records of the audit log, which count them all', async () => {
    const { client } = gateway;
    const ids = Array.from({ length: 1_000 }, (_, i) => `s.nobody-${i}`);
    expect((await client.with({ 'x-client-id': 'lost' }).post('/v1/sessions/heartbeats', { session_ids: ids })).status).toBe(200);
    const records = await client.audit({ client_id: 'lost' });
    expect(records.map(({ action, code, path }) => [action, code, path])).toEqual(
      Array.from({ length: 2 }, () => ['lease_refuse', 'session_not_found', null]),
    );
    expect(records.reduce((sum, { count }) => sum + Number(count), 0)).toBe(1_000);
  });
});

describe('with authentication', () => {
  it("a session and its leases are their principal's: 403 for everybody else, whatever client id they claim", async () => {
    const guarded = await startVolumes({
      volumes: { v: {} },
      auth: principalsFile([
        { name: 'mine', roles: ['writer'] },
        { name: 'theirs', roles: ['writer'] },
        { name: 'reader', roles: ['reader'] },
      ]),
    });
    try {
      const [mine, theirs, reader] = ['mine', 'theirs', 'reader'].map((name) =>
        guarded.client.as(bearerOf(name)).with({ 'x-client-id': 'same-label' }),
      );
      if (mine === undefined || theirs === undefined || reader === undefined) throw new Error('three clients');
      const session = jsonOf(await mine.post('/v1/sessions', {}));
      const id = String(session['session_id']);
      const lease = await mine.lease('v/a', { session_id: id });
      const stranger = new LockClient(theirs);
      const refused = [
        theirs.post('/v1/leases', { resource: 'v/b', session_id: id }),
        theirs.send('POST', `/v1/sessions/${id}/heartbeat`),
        theirs.send('DELETE', `/v1/sessions/${id}`),
        theirs.send('GET', `/v1/sessions/${id}/watch`),
        theirs.send('GET', `/v1/leases/${lease.lease_id}`),
        stranger.renew(lease),
        stranger.convert(lease, 'shared'),
        stranger.release(lease),
      ];
      expect((await Promise.all(refused)).map(verdictOf)).toEqual([
        ...Array.from({ length: 4 }, () => '403 forbidden'),
        ...Array.from({ length: 4 }, () => '403 not_lease_owner'),
      ]);
      expect(jsonOf(await theirs.post('/v1/sessions/heartbeats', { session_ids: [id] }))).toMatchObject({ sessions: [{ code: 'forbidden' }] });
      expect(verdictOf(await reader.post('/v1/leases', { resource: 'v/b' }))).toBe('403 forbidden');
      expect(jsonOf(await reader.send('GET', '/v1/locks/v/a'))).toMatchObject({ holders: [{ lease_ref: lease.lease_ref }] });
      expect(jsonOf(await mine.send('GET', `/v1/leases/${lease.lease_id}`))).toMatchObject({ state: 'held' });
      const again = jsonOf<LeaseJson>(await mine.post('/v1/leases', { resource: 'v/a', session_id: id }));
      expect(again.fencing_token).toBe(lease.fencing_token);
    } finally {
      await guarded.stop();
    }
  });
});
