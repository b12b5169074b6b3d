import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { jsonOf, type LeaseJson, verdictOf } from '../support/gateway-client.ts';
import { LockClient } from '../support/lock-client.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** Watches over HTTP: what was committed, in order, resumed by number; a stream tells, it does not hold. */

let gateway: VolumesGateway;
let locks: LockClient;
beforeAll(async () => {
  gateway = await startVolumes({ volumes: { v: {}, locks: { path: null }, others: { path: null } } });
  locks = new LockClient(gateway.client);
});
afterAll(() => gateway.stop());

describe('a watch of one resource', () => {
  it("hears of every transition with the holder's ref, client, mode and token", async () => {
    const watch = await locks.watch('/v1/watch/locks/all');
    const held = await gateway.client.lease('locks/all', { client_id: 'one' });
    const waiting = locks.acquire('locks/all', { wait_ms: 30_000, client_id: 'two' });
    await locks.queued('locks/all', 1);
    await locks.convert(held, 'shared');
    await locks.release(held);
    const second = jsonOf<LeaseJson>(await waiting);
    await locks.break('locks/all', { grace_ms: 60_000, reason: 'maintenance' });
    await locks.break('locks/all');
    await gateway.client.lease('locks/all', { ttl_ms: 1_000, client_id: 'three' });
    const events = [];
    for (let i = 0; i < 9; i += 1) events.push(await watch.next());
    watch.close();
    expect(events.map(({ type, data }) => `${type} ${data['client_id']} ${data['mode']}`)).toEqual([
      'granted one exclusive',
      'waiting two exclusive',
      'converted one shared',
      'released one shared',
      'granted two exclusive',
      'breaking two exclusive',
      'broken two exclusive',
      'granted three exclusive',
      'expired three exclusive',
    ]);
    expect(events[0]?.data).toEqual({
      seq: Number(events[0]?.id),
      at: expect.stringMatching(/Z$/),
      resource: 'locks/all',
      lease_ref: held.lease_ref,
      client_id: 'one',
      mode: 'exclusive',
      fencing_token: held.fencing_token,
      reason: null,
      cycle: null,
    });
    expect(events[5]?.data['reason']).toContain('maintenance');
    expect(events[6]?.data).toMatchObject({ lease_ref: second.lease_ref, fencing_token: second.fencing_token, reason: 'broken' });
    const seqs = events.map(({ id }) => Number(id));
    expect([...seqs].sort((a, b) => a - b)).toEqual(seqs);
  });

  it('hears nothing of tries that got nothing, nor of token-less writes', async () => {
    const watch = await locks.watch('/v1/watch/v/quiet');
    const held = await gateway.client.lease('v/quiet');
    await locks.acquire('v/quiet');
    await locks.release(held);
    await gateway.client.put('v/quiet', 'x');
    await locks.break('v/quiet');
    await gateway.client.lease('v/quiet');
    expect(await watch.types(3)).toEqual(['granted', 'released', 'granted']);
    watch.close();
  });

  it('resumes after the last event seen, without a gap and without a repetition', async () => {
    const watch = await locks.watch('/v1/watch/locks/resume');
    const first = await gateway.client.lease('locks/resume');
    const { id } = await watch.next();
    watch.close();
    await locks.release(first);
    const second = await gateway.client.lease('locks/resume');
    const resumed = await locks.watch('/v1/watch/locks/resume', { 'last-event-id': id });
    expect(await resumed.types(2)).toEqual(['released', 'granted']);
    await locks.release(second);
    expect((await resumed.next()).data).toMatchObject({ lease_ref: second.lease_ref, reason: 'released' });
    resumed.close();
  });

  it('that comes from too far back begins with a reset: the present state, and goes on from there', async () => {
    const held = await gateway.client.lease('locks/reset', { client_id: 'here' });
    await locks.acquire('locks/reset', { wait_ms: 1, client_id: 'there' });
    for (const last of ['1', '9007199254740991']) {
      const watch = await locks.watch('/v1/watch/locks/reset', { 'last-event-id': last });
      const reset = await watch.next();
      expect(reset).toMatchObject({
        type: 'reset',
        data: {
          seq: Number(reset.id),
          locks: [{ resource: 'locks/reset', holders: [{ client_id: 'here' }], waiters: [{ client_id: 'there' }], queue_length: 1 }],
        },
      });
      const after = jsonOf<LeaseJson>(await locks.acquire('locks/reset', { wait_ms: 1 }));
      expect(await watch.next()).toMatchObject({ type: 'waiting', data: { lease_ref: after.lease_ref } });
      await locks.release(after);
      watch.close();
    }
    await locks.release(held);
    for (const last of ['x', '-1', '1.5', '9007199254740993'])
      expect(verdictOf(await gateway.client.send('GET', '/v1/watch/locks/reset', { headers: { 'last-event-id': last } }))).toBe(
        '400 invalid_request',
      );
  });

  it('R19: that is cut off costs no lease, and an upload under it goes on', async () => {
    const session = await locks.session();
    const watches = await Promise.all(['/v1/watch/v/kept', `/v1/sessions/${session.session_id}/watch`].map((target) => locks.watch(target)));
    const lease = await gateway.client.lease('v/kept', { session_id: session.session_id });
    for (const watch of watches) {
      await watch.next();
      watch.close();
    }
    expect(await locks.lease(lease)).toMatchObject({ state: 'held' });
    expect((await gateway.client.put('v/kept', 'x', { 'x-fencing-token': lease.fencing_token })).status).toBe(201);
    expect(jsonOf(await locks.heartbeat(session))).toMatchObject({ lost: [] });
  });
});

describe('a watch of many', () => {
  it('by prefix, by volume, of everything, and of a session, each hears what concerns it', async () => {
    const session = await locks.session();
    const targets = ['/v1/watch?volume=locks&path_prefix=jobs/', '/v1/watch?volume=others', '/v1/watch', `/v1/sessions/${session.session_id}/watch`];
    const watches = await Promise.all(targets.map((target) => locks.watch(target)));
    const names = ['locks/jobs/a', 'locks/other', 'others/jobs/b'];
    for (const resource of names) await gateway.client.lease(resource, resource === 'locks/other' ? { session_id: session.session_id } : {});
    const counts = [1, 1, 3, 1];
    const heard = await Promise.all(
      watches.map(async (watch, i) => {
        const resources: unknown[] = [];
        for (let n = 0; n < (counts[i] ?? 0); n += 1) resources.push((await watch.next()).data['resource']);
        watch.close();
        return resources;
      }),
    );
    expect(heard).toEqual([['locks/jobs/a'], ['others/jobs/b'], names, ['locks/other']]);
    expect(verdictOf(await gateway.client.send('GET', '/v1/sessions/nobody/watch'))).toBe('404 session_not_found');
    expect(verdictOf(await gateway.client.send('GET', '/v1/watch', { query: { volume: 'nowhere' } }))).toBe('404 volume_not_found');
  });
});

describe('a watch over a restart', () => {
  it('ends with the gateway, and begins again with the present state', async () => {
    const lease = await gateway.client.lease('locks/restart', { ttl_ms: 60_000 });
    const watch = await locks.watch('/v1/watch/locks/restart', { 'last-event-id': '1' });
    const { id } = await watch.next();
    const { directory } = gateway;
    await gateway.halt();
    await expect(watch.next()).rejects.toThrow();
    gateway = await startVolumes({ volumes: { v: {}, locks: { path: null }, others: { path: null } }, directory });
    locks = new LockClient(gateway.client);
    const again = await locks.watch('/v1/watch/locks/restart', { 'last-event-id': id });
    const reset = await again.next();
    expect(reset).toMatchObject({ type: 'reset', data: { locks: [{ holders: [{ lease_ref: lease.lease_ref }] }] } });
    expect(Number(reset.id)).toBeGreaterThan(Number(id));
    again.close();
  });
});
