import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, eventually, type Json, jsonOf, type LeaseJson, verdictOf } from '../support/gateway-client.ts';
import { LockClient } from '../support/lock-client.ts';
import { head, rawVerdict } from '../support/raw-request.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** Standing in line over HTTP: the order, the place that survives a reconnect, leaving, and cycles. */

let gateway: VolumesGateway;
let locks: LockClient;
beforeAll(async () => {
  gateway = await startVolumes({ volumes: { v: {}, locks: { path: null }, short: { path: null, limits: { queue_length: 2 } } } });
  locks = new LockClient(gateway.client);
});
afterAll(() => gateway.stop());

const wait = (name: string, more: Json = {}) => locks.acquire(name, { wait_ms: 30_000, ttl_ms: 60_000, ...more });
/** In line without a connection that waits. */
const stand = async (name: string, more: Json = {}) => jsonOf<LeaseJson>(await locks.acquire(name, { wait_ms: 1, ttl_ms: 60_000, ...more }));
const leaseOf = async (answer: Promise<Answer>) => jsonOf<LeaseJson>(await answer);
const number = ({ fencing_token: token }: LeaseJson): bigint => BigInt(token);

describe('the line', () => {
  it('is first in, first out among equals; each hand-over wakes the next one only, with a higher token', async () => {
    const first = await gateway.client.lease('locks/fifo', { ttl_ms: 60_000 });
    const arrived: string[] = [];
    const waiting: Promise<LeaseJson>[] = [];
    for (const client_id of ['one', 'two', 'three', 'four']) {
      waiting.push(
        leaseOf(wait('locks/fifo', { client_id })).then((lease) => {
          arrived.push(client_id);
          return lease;
        }),
      );
      await locks.queued('locks/fifo', waiting.length);
    }
    expect((await locks.lock('locks/fifo')).waiters.map(({ client_id: id }) => id)).toEqual(['one', 'two', 'three', 'four']);
    let last = first;
    for (const [i, next] of waiting.entries()) {
      await locks.release(last);
      const lease = await next;
      expect(number(lease)).toBeGreaterThan(number(last));
      expect(arrived).toHaveLength(i + 1);
      last = lease;
    }
    expect(arrived).toEqual(['one', 'two', 'three', 'four']);
  });

  it('takes a more important one earlier, by at most 16 places a step', async () => {
    await gateway.client.lease('locks/priority', { ttl_ms: 60_000 });
    const all: LeaseJson[] = [];
    for (let i = 0; i < 20; i += 1) all.push(await stand('locks/priority'));
    const important = await stand('locks/priority', { priority: 6 });
    // The holder was the first to arrive: twenty waiters are second to twenty-first, and a tie goes to whoever came first.
    expect(important['queue_position']).toBe(6);
    expect((await stand('locks/priority', { priority: 9 }))['queue_position']).toBe(1);
    expect((await stand('locks/priority', { priority: 0 }))['queue_position']).toBe(23);
    for (const lease of all) await locks.release(lease);
  });

  it('is 429 when it is full, and a try, which does not stand in it, 409 as ever', async () => {
    await gateway.client.lease('short/line', { ttl_ms: 60_000, client_id: 'holder' });
    await stand('short/line');
    await stand('short/line');
    expect(verdictOf(await locks.acquire('short/line', { wait_ms: 1 }))).toBe('429 queue_full');
    const refused = await locks.acquire('short/line');
    expect(verdictOf(refused)).toBe('409 lock_not_acquired');
    expect(jsonOf(refused)).toMatchObject({ holder_client_id: 'holder', queue_length: 2 });
    expect(await locks.lock('short/line')).toMatchObject({ queue_length: 2 });
  });

  it('is the same for writes without a token', async () => {
    const held = await gateway.client.lease('v/line');
    const write = gateway.client.put('v/line', 'x', { 'x-lock-wait-ms': '30000' });
    await locks.queued('v/line', 1);
    const after = wait('v/line');
    await locks.queued('v/line', 2);
    await locks.release(held);
    const written = await write;
    expect(written.status).toBe(201);
    expect(number(await leaseOf(after))).toBeGreaterThan(BigInt(written.headers['x-fencing-token'] ?? 0));
  });
});

describe('a wait', () => {
  it("is 202 with the place when this request's time is over, and keeps it over polls, reconnects included", async () => {
    const held = await gateway.client.lease('locks/place', { ttl_ms: 60_000 });
    const answer = await locks.acquire('locks/place', { wait_ms: 20, client_id: 'first' });
    const waiting = jsonOf<LeaseJson>(answer);
    expect([answer.status, answer.headers['location']]).toEqual([202, `/v1/leases/${encodeURIComponent(waiting.lease_id)}`]);
    expect(waiting).toMatchObject({ state: 'waiting', queue_position: 1, fencing_token: null, lease_expires_at: null });
    await stand('locks/place', { client_id: 'second' });
    // Two polls that are cut off in the middle, then one that stays.
    for (let i = 0; i < 2; i += 1) {
      const cut = gateway.raw();
      cut.send(head(`GET /v1/leases/${waiting.lease_id}?wait_ms=60000`));
      await new Promise((resolve) => setTimeout(resolve, 30));
      cut.close();
    }
    expect((await locks.lock('locks/place')).waiters.map(({ client_id: id }) => id)).toEqual(['first', 'second']);
    expect(await locks.lease(waiting, 10)).toMatchObject({ state: 'waiting', queue_position: 1 });
    const polled = locks.lease(waiting, 30_000);
    await locks.release(held);
    expect(await polled).toMatchObject({ state: 'held', fencing_token: expect.stringMatching(/^[0-9]+$/) });
  });

  it('ends with the whole wait: max_wait_ms', async () => {
    await gateway.client.lease('locks/maxwait', { ttl_ms: 60_000 });
    expect(verdictOf(await wait('locks/maxwait', { max_wait_ms: 50 }))).toBe('409 lock_not_acquired');
    const waiting = await stand('locks/maxwait', { max_wait_ms: 100 });
    expect(await locks.lease(waiting, 30_000)).toMatchObject({ state: 'cancelled', reason: 'max_wait' });
    expect(await locks.lock('locks/maxwait')).toMatchObject({ queue_length: 0 });
    expect((await gateway.client.audit({ path: 'maxwait', action: 'lease_cancel' })).map(({ code }) => code)).toContain('lock_not_acquired');
  });

  it("R11: ends at the waiter's own time to live when nobody polls or renews; it is never granted, and its place is gone", async () => {
    const held = await gateway.client.lease('locks/silent', { ttl_ms: 60_000 });
    const silent = await stand('locks/silent', { ttl_ms: 1_000 });
    const lively = await stand('locks/silent', { ttl_ms: 1_000 });
    let silentOver = false;
    const alive = eventually(
      () => locks.renew(lively),
      () => silentOver,
    );
    await locks.queued('locks/silent', 1);
    silentOver = true;
    await alive;
    await locks.release(held);
    expect(await locks.lease(lively, 30_000)).toMatchObject({ state: 'held' });
    expect(await locks.lease(silent)).toMatchObject({ state: 'expired', fencing_token: null });
  });

  it('is left at once by a client that disconnects before the first answer; and by DELETE', async () => {
    const held = await gateway.client.lease('locks/leave', { ttl_ms: 60_000 });
    const gone = gateway.raw();
    const body = JSON.stringify({ resource: 'locks/leave', wait_ms: 60_000, client_id: 'gone' });
    gone.send(`${head('POST /v1/leases', 'Content-Type: application/json', `Content-Length: ${body.length}`)}${body}`);
    await locks.queued('locks/leave', 1);
    const cancelling = wait('locks/leave', { client_id: 'next' });
    await locks.queued('locks/leave', 2);
    gone.close();
    await locks.queued('locks/leave', 1);
    const third = await stand('locks/leave');
    expect((await locks.release(third)).status).toBe(204);
    expect(await locks.lease(third)).toMatchObject({ state: 'cancelled', reason: 'cancelled' });
    await locks.release(held);
    expect(jsonOf(await cancelling)).toMatchObject({ state: 'held' });
    expect((await gateway.client.audit({ path: 'leave', action: 'lease_cancel' })).map(({ client_id: id }) => id)).toContain('gone');
  });

  it('is left by a peer that vanished without a word at its time to live, however long it asked to wait; what was granted to it meanwhile ends likewise', async () => {
    const holder = await gateway.client.lease('locks/vanished', { ttl_ms: 60_000 });
    const body = JSON.stringify({ resource: 'locks/vanished', ttl_ms: 3_000, wait_ms: 60_000 });
    // No FIN ever comes from these: they send, and are silent.
    const [first, poll] = [gateway.raw(), gateway.raw()];
    first.send(`${head('POST /v1/leases', 'Content-Type: application/json', `Content-Length: ${body.length}`)}${body}`);
    const polled = await stand('locks/vanished', { ttl_ms: 3_000 });
    poll.send(head(`GET /v1/leases/${polled.lease_id}?wait_ms=60000`));
    await locks.queued('locks/vanished', 2);
    await locks.queued('locks/vanished', 0);
    expect(rawVerdict(await first.answer())).toBe('409 lock_not_acquired');
    expect(JSON.parse((await poll.answer()).body)).toMatchObject({ state: 'expired' });

    // Granted into the void: free again at its time to live, not at the end of anybody's wait.
    const ghost = gateway.raw();
    ghost.send(`${head('POST /v1/leases', 'Content-Type: application/json', `Content-Length: ${body.length}`)}${body}`);
    await locks.queued('locks/vanished', 1);
    const next = wait('locks/vanished');
    await locks.queued('locks/vanished', 2);
    await locks.release(holder);
    const granted = JSON.parse((await ghost.answer()).body) as LeaseJson;
    const after = await leaseOf(next);
    expect(after.state).toBe('held');
    expect(await locks.lease(granted)).toMatchObject({ state: 'expired', reason: 'expired' });
  }, 60_000);

  it('of one session is left request by request: one that disconnects leaves the other in line', async () => {
    const held = await gateway.client.lease('locks/together', { ttl_ms: 60_000 });
    const { session_id } = await locks.session({ ttl_ms: 60_000 });
    const gone = gateway.raw();
    const body = JSON.stringify({ resource: 'locks/together', session_id, hold_id: 'one', wait_ms: 60_000, ttl_ms: 60_000 });
    gone.send(`${head('POST /v1/leases', 'Content-Type: application/json', `Content-Length: ${body.length}`)}${body}`);
    await locks.queued('locks/together', 1);
    const other = await stand('locks/together', { session_id, hold_id: 'two' });
    expect(other).toMatchObject({ state: 'waiting', hold_count: 2 });
    gone.close();
    await eventually(
      () => locks.lease(other),
      ({ hold_count: holds }) => holds === 1,
    );
    expect((await locks.lock('locks/together')).queue_length).toBe(1);
    // A release by another hold than its own, such as a late one, leaves it alone as well.
    expect((await locks.release(other, { hold_id: 'one' })).status).toBe(204);
    await locks.release(held);
    expect(await locks.lease(other, 30_000)).toMatchObject({ state: 'held', hold_count: 1 });
    await locks.release(other, { hold_id: 'two' });
  });

  it('that fails leaves nothing behind, and the next one works', async () => {
    const raw = gateway.raw();
    raw.send(`${head('POST /v1/leases', 'Content-Type: application/json', 'Content-Length: 40')}{"resource":"locks/half"`);
    raw.socket.end();
    expect(rawVerdict(await raw.answer())).toBe('400 incomplete_body');
    expect((await locks.acquire('locks/half')).status).toBe(201);
  });
});

describe('priority inheritance', () => {
  it('an important one that waits for an unimportant holder lends it its priority where that waits', async () => {
    const poor = await locks.session({ client_id: 'poor', ttl_ms: 60_000 });
    await gateway.client.lease('locks/inherit/wanted', { session_id: poor.session_id, ttl_ms: 60_000 });
    await gateway.client.lease('locks/inherit/busy', { ttl_ms: 60_000 });
    for (let i = 0; i < 3; i += 1) await stand('locks/inherit/busy', { client_id: 'middle' });
    await stand('locks/inherit/busy', { session_id: poor.session_id, priority: 1, client_id: 'poor' });
    const order = async () => (await locks.lock('locks/inherit/busy')).waiters.map(({ client_id: id }) => id);
    expect(await order()).toEqual(['middle', 'middle', 'middle', 'poor']);
    const important = await stand('locks/inherit/wanted', { priority: 9 });
    expect(await order()).toEqual(['poor', 'middle', 'middle', 'middle']);
    await locks.release(important);
    expect(await order()).toEqual(['middle', 'middle', 'middle', 'poor']);
  });
});

describe('a deadlock', () => {
  it('is answered to the youngest of equals with the cycle, audited, told to watchers, and the others go on', async () => {
    const [one, two] = [await locks.session({ client_id: 'one' }), await locks.session({ client_id: 'two' })];
    const a = await gateway.client.lease('locks/cycle/a', { session_id: one.session_id, client_id: 'one' });
    const b = await gateway.client.lease('locks/cycle/b', { session_id: two.session_id, client_id: 'two' });
    const watch = await locks.watch('/v1/watch/locks/cycle/a');
    const first = wait('locks/cycle/b', { session_id: one.session_id, client_id: 'one' });
    await locks.queued('locks/cycle/b', 1);
    const victim = await wait('locks/cycle/a', { session_id: two.session_id, client_id: 'two' });
    expect(verdictOf(victim)).toBe('409 deadlock');
    const cycle = jsonOf<{ cycle: { client_id: string; waits_for: string }[] }>(victim).cycle;
    expect(cycle.map(({ client_id, waits_for }) => `${client_id} -> ${waits_for}`).sort()).toEqual(['one -> locks/cycle/b', 'two -> locks/cycle/a']);
    expect(await watch.types(2)).toEqual(['waiting', 'deadlock']);
    watch.close();
    expect(await gateway.client.audit({ action: 'deadlock' })).toMatchObject([{ path: 'cycle/a', client_id: 'two', code: 'deadlock' }]);
    expect(await locks.lease(b)).toMatchObject({ state: 'held' });
    await locks.release(b);
    expect(jsonOf(await first)).toMatchObject({ state: 'held' });
    await locks.release(a);
  });

  it('costs the least important wait, however old it is', async () => {
    const sessions = await Promise.all(['low', 'mid', 'high'].map((client_id) => locks.session({ client_id })));
    const ids = sessions.map(({ session_id }) => session_id);
    const names = ['locks/ring/0', 'locks/ring/1', 'locks/ring/2'];
    const held = await Promise.all(names.map((name, i) => gateway.client.lease(name, { session_id: ids[i] })));
    const waits: Promise<Answer>[] = [];
    for (const [i, priority] of [1, 5, 9].entries()) {
      waits.push(wait(names[(i + 1) % 3] ?? '', { session_id: ids[i], priority }));
      if (i < 2) await locks.queued(names[(i + 1) % 3] ?? '', 1);
    }
    expect(verdictOf(await (waits[0] as Promise<Answer>))).toBe('409 deadlock');
    await locks.release(held[0] as LeaseJson);
    expect(jsonOf(await (waits[2] as Promise<Answer>))).toMatchObject({ state: 'held', priority: 9 });
    await locks.release(held[2] as LeaseJson);
    expect(jsonOf(await (waits[1] as Promise<Answer>))).toMatchObject({ state: 'held' });
  });

  it('by an upgrade costs the upgrade, not the lease', async () => {
    const [one, two] = [await locks.session(), await locks.session()];
    const reader = await gateway.client.lease('locks/deadup/r', { mode: 'shared', session_id: one.session_id });
    await gateway.client.lease('locks/deadup/r', { mode: 'shared', session_id: two.session_id });
    await gateway.client.lease('locks/deadup/w', { session_id: one.session_id });
    const other = wait('locks/deadup/w', { session_id: two.session_id, priority: 9 });
    await locks.queued('locks/deadup/w', 1);
    expect((await locks.convert(reader, 'exclusive')).status).toBe(202);
    expect(
      await eventually(
        () => locks.lease(reader, 1_000),
        ({ queue_position: place }) => place === null,
      ),
    ).toMatchObject({ state: 'held', mode: 'shared', reason: 'deadlock' });
    await gateway.client.send('DELETE', `/v1/sessions/${one.session_id}`);
    expect(jsonOf(await other)).toMatchObject({ state: 'held' });
  });
});
