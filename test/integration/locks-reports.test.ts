import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, jsonOf, type LeaseJson, verdictOf } from '../support/gateway-client.ts';
import { LockClient } from '../support/lock-client.ts';
import { head } from '../support/raw-request.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** Public bug reports of other lock services, each as the smallest scenario over HTTP. */

let gateway: VolumesGateway;
let locks: LockClient;
beforeAll(async () => {
  gateway = await startVolumes({ volumes: { v: {}, locks: { path: null } } });
  locks = new LockClient(gateway.client);
});
afterAll(() => gateway.stop());

const put = (name: string, lease: LeaseJson, body = 'x') => gateway.client.put(name, body, { 'x-fencing-token': lease.fencing_token });
const time = (lease: LeaseJson, field: string): number => Date.parse(String(lease[field]));

describe('a holder that is not heard of', () => {
  it('R1: never shares the lock with the next one: it is refused, and its stream heard of the loss no later than the next grant', async () => {
    const session = await locks.session({ ttl_ms: 1_000 });
    const watch = await locks.watch(`/v1/sessions/${session.session_id}/watch`);
    const everything = await locks.watch('/v1/watch/v/r1');
    const first = await gateway.client.lease('v/r1', { session_id: session.session_id });
    expect((await put('v/r1', first, 'first')).status).toBe(201);
    const second = jsonOf<LeaseJson>(await locks.acquire('v/r1', { wait_ms: 30_000 }));
    expect(verdictOf(await put('v/r1', first, 'late'))).toBe('412 stale_token');
    expect((await put('v/r1', second, 'second')).status).toBe(200);
    expect(await watch.types(1)).toEqual(['granted']);
    const lost = await watch.next();
    watch.close();
    expect(lost).toMatchObject({
      type: 'expired',
      data: { lease_ref: first.lease_ref, fencing_token: first.fencing_token, reason: 'session_ended' },
    });
    expect(await everything.types(4)).toEqual(['granted', 'waiting', 'expired', 'granted']);
    everything.close();
    expect((await gateway.client.get('v/r1')).bytes.toString()).toBe('second');
  });

  it('R2: gets a new place behind those who wait when it comes back, never its old lock', async () => {
    const session = await locks.session({ ttl_ms: 1_000, client_id: 'back' });
    const old = await gateway.client.lease('v/r2', { session_id: session.session_id });
    const waiting = locks.acquire('v/r2', { wait_ms: 30_000, client_id: 'patient' });
    await locks.queued('v/r2', 1);
    const next = jsonOf<LeaseJson>(await waiting);
    expect(verdictOf(await locks.acquire('v/r2', { session_id: session.session_id }))).toBe('409 session_ended');
    const again = locks.acquire('v/r2', { wait_ms: 30_000, client_id: 'back' });
    expect(await locks.queued('v/r2', 1)).toMatchObject({ holders: [{ client_id: 'patient' }], waiters: [{ client_id: 'back' }] });
    await locks.release(next);
    const granted = jsonOf<LeaseJson>(await again);
    const tokens = [old, next, granted].map(({ fencing_token: token }) => BigInt(token));
    expect(tokens.every((token, i) => i === 0 || token > (tokens[i - 1] ?? 0n))).toBe(true);
  });

  it('R34: is judged by its lease alone: a client whose host is gone loses it at its time to live, and the next one comes from another', async () => {
    const host = gateway.raw();
    const body = JSON.stringify({ resource: 'v/r34', ttl_ms: 1_000, client_id: 'pod-1@host-a' });
    host.send(`${head('POST /v1/leases', 'Content-Type: application/json', `Content-Length: ${body.length}`)}${body}`);
    const held = JSON.parse((await host.answer()).body) as LeaseJson;
    host.close();
    expect(await locks.lease(held)).toMatchObject({ state: 'held' });
    const next = jsonOf<LeaseJson>(await locks.acquire('v/r34', { wait_ms: 30_000, client_id: 'pod-1@host-b' }));
    expect(next).toMatchObject({ state: 'held', client_id: 'pod-1@host-b' });
    expect(time(next, 'granted_at') - time(held, 'granted_at')).toBeGreaterThanOrEqual(990);
    expect(verdictOf(await put('v/r34', held))).toBe('412 stale_token');
  });
});

describe('a request that is cut off', () => {
  it('R3: a release that nobody hears the answer of is a release: the next acquire succeeds, and the old token is dead', async () => {
    const lease = await gateway.client.lease('v/r3', { ttl_ms: 60_000 });
    const cut = gateway.raw();
    await new Promise((sent) => cut.socket.write(head(`DELETE /v1/leases/${lease.lease_id}`), sent));
    cut.close();
    await eventually(
      () => locks.acquire('v/r3'),
      ({ status }) => status === 201,
    );
    expect(verdictOf(await put('v/r3', lease))).toBe('412 stale_token');
    expect(await locks.lease(lease)).toMatchObject({ state: 'released' });
  });

  it('R22: a renewal that fails is made good by the next one in time; when none comes the loss is told, and late renewals are counted', async () => {
    const failures = async () =>
      (await gateway.client.send('GET', '/metrics')).bytes
        .toString()
        .match(/^fencegate_lock_renewals_failed_total\{code="lease_not_held"\} (\d+)$/m)?.[1] ?? '0';
    const before = Number(await failures());
    const watch = await locks.watch('/v1/watch/v/r22');
    const lease = await gateway.client.lease('v/r22', { ttl_ms: 1_500 });
    for (let i = 0; i < 3; i += 1) {
      const cut = gateway.raw();
      cut.send(`POST /v1/leases/${lease.lease_id}/renew HTTP/1.1\r\nHost: local`);
      cut.close();
      expect((await locks.renew(lease)).status).toBe(200);
    }
    expect(await locks.lease(lease)).toMatchObject({ state: 'held' });
    expect(await watch.types(2)).toEqual(['granted', 'expired']);
    watch.close();
    expect(verdictOf(await locks.renew(lease))).toBe('409 lease_not_held');
    expect(Number(await failures())).toBe(before + 1);
    expect(await gateway.client.audit({ path: 'r22' })).toMatchObject([
      { action: 'lease_refuse', code: 'lease_not_held' },
      { action: 'lease_expire' },
      { action: 'lease_grant' },
    ]);
  });
});

describe('the line', () => {
  it('R6: a reader between two writers gets its turn, then the second writer', async () => {
    const first = await gateway.client.lease('locks/r6');
    const reader = locks.acquire('locks/r6', { mode: 'shared', wait_ms: 30_000 });
    await locks.queued('locks/r6', 1);
    const second = locks.acquire('locks/r6', { wait_ms: 30_000 });
    await locks.queued('locks/r6', 2);
    await locks.release(first);
    const read = jsonOf<LeaseJson>(await reader);
    expect(read).toMatchObject({ state: 'held', mode: 'shared' });
    expect(await locks.lock('locks/r6')).toMatchObject({ mode: 'shared', queue_length: 1 });
    await locks.release(read);
    expect(jsonOf(await second)).toMatchObject({ state: 'held', mode: 'exclusive' });
  });

  it('R24: a lock that was waited for longer than its time to live comes with all of it, not expired', async () => {
    const held = await gateway.client.lease('locks/r24', { ttl_ms: 60_000 });
    const waiting = jsonOf<LeaseJson>(await locks.acquire('locks/r24', { wait_ms: 1, ttl_ms: 1_000 }));
    const until = Date.now() + 1_300;
    await eventually(
      () => locks.lease(waiting, 100),
      () => Date.now() > until,
    );
    const polled = locks.lease(waiting, 900);
    await locks.release(held);
    const granted = await polled;
    expect(granted.state).toBe('held');
    expect(Number(granted['expires_in_ms'])).toBeGreaterThan(500);
  });
});
