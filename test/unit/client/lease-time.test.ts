import { describe, expect, it } from 'vitest';
import { CLIENT_LIMITS } from '../../../src/client/client-limits.ts';
import { FencegateClient, type LeaseHandle } from '../../../src/client/index.ts';
import { heartbeat, held, clientLab as lab, MARGIN_MS, TTL_MS } from '../../support/client-lab.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { FakeFetch, type FakeRequest, leaseAnswer, problem, sessionAnswer } from '../../support/fake-fetch.ts';

/** No heartbeat gets through until the lease is lost. */
async function lostByClock({ clock, wire }: ReturnType<typeof lab>, lease: LeaseHandle): Promise<void> {
  while (!lease.signal.aborted) {
    await clock.advanceAsync(50);
    while (!(await wire.quiet())) await (await wire.next('POST /v1/sessions/session/heartbeat')).cut();
  }
}

describe('the time of a lease', () => {
  it('counts from before the request was sent, less a margin', async () => {
    const own = lab();
    const { clock, wire, client } = own;
    const lease = client.lease('v/a', { ttlMs: TTL_MS });
    await (await wire.next('POST /v1/sessions')).answer(201, sessionAnswer());
    const asked = await wire.next('POST /v1/leases');
    clock.advance(200);
    await asked.answer(201, leaseAnswer());
    expect((await lease).remainingMs).toBe(TTL_MS - MARGIN_MS - 200);
  });

  it('is renewed by one heartbeat for all leases, every third of the shortest, from before it was sent', async () => {
    const own = lab();
    const { clock, wire } = own;
    const sentMs = clock.monotonicMs() + TTL_MS / 3;
    const lease = await held(own);
    const long = own.client.lease('v/b', { ttlMs: 60_000 });
    await (await wire.next('POST /v1/leases')).answer(
      201,
      leaseAnswer({ lease_id: 'long', resources: ['v/b'], ttl_ms: 60_000, expires_in_ms: 60_000 }),
    );
    await clock.advanceAsync(3_300);
    expect(await wire.quiet()).toBe(true);
    await clock.advanceAsync(100);
    const beat = await wire.next('POST /v1/sessions/session/heartbeat');
    await clock.advanceAsync(500);
    await beat.answer(200, heartbeat);
    expect(lease.remainingMs).toBe(sentMs + TTL_MS - MARGIN_MS - clock.monotonicMs());
    expect((await long).remainingMs).toBe(sentMs + 60_000 - 3_000 - clock.monotonicMs());
    expect(wire.seen.filter((request) => request.includes('heartbeat'))).toHaveLength(1);
  });

  it('is renewed in thirds of what the gateway can vouch for, where that is less, and counts as over at half of it at the earliest', async () => {
    const own = lab();
    const { clock, wire, client } = own;
    const asked = client.lease('v/a', { ttlMs: 30_000, marginMs: 8_000 });
    await (await wire.next('POST /v1/sessions')).answer(201, sessionAnswer());
    const sentMs = clock.monotonicMs();
    await (await wire.next('POST /v1/leases')).answer(201, leaseAnswer({ ttl_ms: 30_000, expires_in_ms: 6_000 }));
    const lease = await asked;
    expect(lease.remainingMs).toBe(3_000);
    await clock.advanceAsync(2_000);
    await (await wire.next('POST /v1/sessions/session/heartbeat')).answer(200, { expires_in_ms: 9_000, lost: [] });
    expect(lease.remainingMs).toBeLessThanOrEqual(sentMs + 2_000 + 4_500 - clock.monotonicMs());
    expect(lease.remainingMs).toBeGreaterThan(4_000);
    await clock.advanceAsync(2_000);
    expect(await wire.quiet()).toBe(true);
    await clock.advanceAsync(1_000);
    await (await wire.next('POST /v1/sessions/session/heartbeat')).answer(200, { expires_in_ms: 30_000, lost: [] });
    expect(lease.remainingMs).toBeGreaterThan(21_000);
    expect(lease.state).toBe('held');
  });

  it('R22: a heartbeat that fails is tried again until the lease would end, and then it is lost before the gateway can end it', async () => {
    const own = lab();
    const { clock, wire, events } = own;
    const startMs = clock.monotonicMs();
    const lease = await held(own);
    for (let elapsed = 0; !lease.signal.aborted; elapsed += 50) {
      expect(elapsed).toBeLessThan(TTL_MS);
      await clock.advanceAsync(50);
      while (!(await wire.quiet())) await (await wire.next('')).cut();
    }
    expect(clock.monotonicMs() - startMs).toBe(TTL_MS - MARGIN_MS);
    expect(lease.signal.reason).toMatchObject({ code: 'lease_lost', members: { reason: 'expired', fencing_token: '7' } });
    expect(events.filter(({ type }) => type === 'renew_failed').length).toBeGreaterThan(1);
    expect(events.at(-1)?.type === 'lease_lost' || events.some(({ type }) => type === 'lease_lost')).toBe(true);
  });

  it('a lease that counts as lost is given back when the gateway answers again, so that the heartbeat does not keep it', async () => {
    const own = lab();
    const { clock, wire } = own;
    const lease = await held(own);
    await clock.advanceAsync(3_400);
    const late = await wire.next('POST /v1/sessions/session/heartbeat');
    await clock.advanceAsync(TTL_MS);
    expect(lease.state).toBe('lost');
    expect(late.signal?.aborted).toBe(true);
    const given: string[] = [];
    while (given.length < 2) {
      if (await wire.quiet()) await clock.advanceAsync(1_000);
      else {
        const request = await wire.next('');
        if (request.method !== 'DELETE') await request.answer(200, heartbeat);
        else if (given.push(request.target) === 1) await request.cut();
        else await request.answer(204);
      }
    }
    expect(given).toEqual(['/v1/leases/secret?all=true', '/v1/leases/secret?all=true']);
    await clock.advanceAsync(600_000);
    expect(await wire.quiet()).toBe(true);
  });

  it('is not given back before the margin is over: whoever was told of the loss has that time to stop', async () => {
    const own = lab();
    const { clock, wire } = own;
    const lease = await held(own, { marginMs: 4_000 });
    await clock.advanceAsync(3_400);
    await (await wire.next('POST /v1/sessions/session/heartbeat')).cut();
    await lostByClock(own, lease);
    await clock.advanceAsync(3_900);
    expect(wire.seen.filter((request) => request.startsWith('DELETE'))).toEqual([]);
    await clock.advanceAsync(200);
    await (await wire.next('DELETE /v1/leases/secret?all=true')).answer(204);
  });

  it('who asks again after a loss by the clock is not given the lost lease again: it waits until that is given back', async () => {
    const own = lab();
    const { clock, wire, client } = own;
    const lease = await held(own, { marginMs: 4_000 });
    await lostByClock(own, lease);
    const again = client.lease('v/a', { ttlMs: TTL_MS });
    again.catch(() => undefined);
    await expect(client.lease('v/a', { ttlMs: TTL_MS, waitMs: 0 })).rejects.toMatchObject({ code: 'lock_not_acquired', members: { local: true } });
    const asked = (): string[] => wire.seen.filter((request) => request === 'POST /v1/leases');
    await clock.advanceAsync(3_900);
    expect(asked()).toHaveLength(1);
    await clock.advanceAsync(200);
    const givenBack = await wire.next('DELETE /v1/leases/secret?all=true');
    await clock.advanceAsync(50);
    expect(asked()).toHaveLength(1);
    await givenBack.answer(204);
    for (let request = await wire.next(''); ; request = await wire.next('')) {
      if (request.target === '/v1/leases') {
        await request.answer(201, leaseAnswer({ lease_id: 'next', fencing_token: '8' }));
        break;
      }
      await request.answer(200, heartbeat);
    }
    expect((await again).token).toBe('8');
  });

  it('who waits for that when the client is closed is told so', async () => {
    const own = lab();
    const { wire, client } = own;
    const lease = await held(own, { marginMs: 4_000 });
    await lostByClock(own, lease);
    const again = client.lease('v/a', { ttlMs: TTL_MS });
    again.catch(() => undefined);
    await settle();
    void client.close();
    await (await wire.next('DELETE /v1/sessions/session')).answer(204);
    await expect(again).rejects.toMatchObject({ code: 'client_closed' });
  });

  it('R24: a lock that was waited for longer than it lives is renewed before anybody is told', async () => {
    const own = lab();
    const { clock, wire, client } = own;
    const lease = client.lease('v/a', { ttlMs: 1_000 });
    await (await wire.next('POST /v1/sessions')).answer(201, sessionAnswer());
    const waits = leaseAnswer({ state: 'waiting', fencing_token: null, ttl_ms: 1_000, expires_in_ms: 1_000, queue_position: 1 });
    await (await wire.next('POST /v1/leases')).answer(202, waits);
    const poll = await wire.next('GET /v1/leases/secret?wait_ms=30000');
    // No heartbeat gets through meanwhile.
    await clock.advanceAsync(1_200);
    await poll.answer(200, leaseAnswer({ ttl_ms: 1_000, expires_in_ms: 700 }));
    const seen = wire.seen.length;
    for (let request = await wire.next(''); ; request = await wire.next('')) {
      if (request.target.endsWith('/renew')) {
        await request.answer(200, leaseAnswer({ ttl_ms: 1_000, expires_in_ms: 1_000 }));
        break;
      }
      await request.cut();
    }
    expect(seen).toBeGreaterThan(0);
    expect((await lease).remainingMs).toBe(900);
  });

  it('R16: a lock that was waited for lives for what the gateway promises, and not for its time to live', async () => {
    const own = lab();
    const { clock, wire, client } = own;
    const lease = client.lease('v/a', { ttlMs: 30_000 });
    await (await wire.next('POST /v1/sessions')).answer(201, sessionAnswer());
    const short = { ttl_ms: 30_000, expires_in_ms: 9_000 };
    await (await wire.next('POST /v1/leases')).answer(202, leaseAnswer({ ...short, state: 'waiting', fencing_token: null, queue_position: 1 }));
    const poll = await wire.next('GET /v1/leases/secret?wait_ms=30000');
    await clock.advanceAsync(10_000);
    await (await wire.next('POST /v1/sessions/session/heartbeat')).answer(200, { expires_in_ms: 9_000, lost: [] });
    await poll.answer(200, leaseAnswer(short));
    await (await wire.next('POST /v1/leases/secret/renew')).answer(200, leaseAnswer(short));
    expect((await lease).remainingMs).toBeLessThan(9_000);
  });

  it('R24: a lock that ended while it was being granted is not returned', async () => {
    const own = lab();
    const { clock, wire, client } = own;
    const lease = client.lease('v/a', { ttlMs: 1_000 });
    const outcome = expect(lease).rejects.toMatchObject({ code: 'lease_not_held' });
    await (await wire.next('POST /v1/sessions')).answer(201, sessionAnswer());
    await (await wire.next('POST /v1/leases')).answer(202, leaseAnswer({ state: 'waiting', ttl_ms: 1_000 }));
    const poll = await wire.next('GET /v1/leases/secret');
    await clock.advanceAsync(1_200);
    await poll.answer(200, leaseAnswer({ ttl_ms: 1_000, expires_in_ms: 700 }));
    for (let request = await wire.next(''); ; request = await wire.next('')) {
      if (request.target.endsWith('/renew')) {
        await request.answer(...problem(409, 'lease_not_held'));
        break;
      }
      await request.cut();
    }
    await (await wire.next('DELETE /v1/leases/secret')).answer(204);
    await outcome;
  });

  it('ends with the longest hold, however often it is renewed', async () => {
    const own = lab();
    const { clock, wire } = own;
    const lease = await held(own, { maxHoldMs: 5_000, marginMs: 100 }, { hold_expires_in_ms: 5_000 });
    await clock.advanceAsync(3_400);
    await (await wire.next('POST /v1/sessions/session/heartbeat')).answer(200, heartbeat);
    expect(lease.remainingMs).toBe(5_000 - 100 - 3_400);
    await clock.advanceAsync(1_500);
    expect(lease.signal.reason).toMatchObject({ code: 'lease_lost', members: { reason: 'max_hold', lost_by: 'clock' } });
  });

  it('has a margin that a short longest hold leaves room for', async () => {
    const lease = await held(lab(), { maxHoldMs: 2_000 }, { hold_expires_in_ms: 2_000 });
    expect(lease.remainingMs).toBe(1_800);
  });

  it('is not given out when the longest hold of the volume, which nobody asked for, leaves nothing but the margin; it is given back', async () => {
    const own = lab();
    const { clock, wire } = own;
    const refused = expect(own.client.lease('v/a', { ttlMs: TTL_MS, marginMs: 2_000 })).rejects.toMatchObject({
      code: 'lease_lost',
      message: expect.stringContaining('2000 ms, is not more than the margin of 2000 ms'),
      members: { reason: 'max_hold' },
    });
    await (await wire.next('POST /v1/sessions')).answer(201, sessionAnswer());
    await (await wire.next('POST /v1/leases')).answer(201, leaseAnswer({ hold_expires_in_ms: 2_000 }));
    await refused;
    await clock.advanceAsync(2_000);
    await (await wire.next('DELETE /v1/leases/secret?all=true')).answer(204);
  });

  it('has a longest hold that counts from the grant, also after a long wait', async () => {
    const own = lab();
    const { clock, wire, client } = own;
    const lease = client.lease('v/a', { ttlMs: TTL_MS, maxHoldMs: 8_000 });
    await (await wire.next('POST /v1/sessions')).answer(201, sessionAnswer());
    await (await wire.next('POST /v1/leases')).answer(202, leaseAnswer({ state: 'waiting', fencing_token: null, queue_position: 1 }));
    const poll = await wire.next('GET /v1/leases/secret?wait_ms=30000');
    await clock.advanceAsync(3_000);
    await poll.answer(200, leaseAnswer({ hold_expires_in_ms: 8_000 }));
    await (await wire.next('POST /v1/leases/secret/renew')).answer(200, leaseAnswer({ hold_expires_in_ms: 7_990 }));
    expect((await lease).remainingMs).toBe(7_990 - 799);
  });

  it('R25: is judged before each write, also when no timer could run', async () => {
    const own = lab();
    const { clock, wire } = own;
    const lease = await held(own);
    // Like a sleeping machine: time goes on and no timer fires.
    Object.defineProperty(clock, 'monotonicMs', { value: () => 1_000 + 2 * TTL_MS });
    await expect(lease.put('v/a', 'late')).rejects.toMatchObject({ code: 'lease_lost' });
    await expect(lease.delete('v/a')).rejects.toMatchObject({ code: 'lease_lost' });
    expect(wire.seen.filter((request) => request.includes('/v1/files'))).toEqual([]);
  });

  it('is lost for the reason that the gateway gives', async () => {
    const own = lab();
    const { clock, wire } = own;
    const lease = await held(own);
    await clock.advanceAsync(3_400);
    await (await wire.next('POST /v1/sessions/session/heartbeat')).answer(200, { ...heartbeat, lost: ['secret'] });
    await (await wire.next('GET /v1/leases/secret')).answer(200, leaseAnswer({ state: 'broken', reason: 'broken' }));
    expect(lease.signal.reason).toMatchObject({ code: 'lease_lost', members: { reason: 'broken' } });
  });

  it('is lost with its session', async () => {
    const own = lab();
    const { clock, wire } = own;
    const lease = await held(own);
    await clock.advanceAsync(3_400);
    await (await wire.next('POST /v1/sessions/session/heartbeat')).answer(...problem(404, 'session_not_found'));
    expect(lease.signal.reason).toMatchObject({ code: 'lease_lost', members: { reason: 'session_ended' } });
    // The next one gets a session of its own.
    const next = own.client.lease('v/a');
    await (await wire.next('POST /v1/sessions')).answer(201, sessionAnswer());
    await (await wire.next('POST /v1/leases')).answer(201, leaseAnswer());
    expect((await next).state).toBe('held');
  });

  it('a listener that throws stops nothing', async () => {
    const warnings: unknown[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning.message);
    process.on('warning', onWarning);
    const clock = new FakeClock();
    const wire = new FakeFetch();
    const onEvent = (): void => {
      throw new Error('a bug of the listener');
    };
    const client = new FencegateClient({ fetch: wire.fetch, clock, random: () => 0, onEvent });
    const lease = await held({ wire, client });
    clock.advance(TTL_MS);
    expect(lease.signal.aborted).toBe(true);
    await settle();
    process.off('warning', onWarning);
    expect(warnings).toContain('a bug of the listener');
  });
});

describe('asking for a lease', () => {
  it('R21: asks for one session, however many ask at once', async () => {
    const { wire, client } = lab();
    const leases = [client.lease('v/a'), client.lease('v/b')];
    await (await wire.next('POST /v1/sessions')).answer(201, sessionAnswer());
    for (const name of ['v/a', 'v/b']) {
      const request = await wire.next('POST /v1/leases');
      expect(request.json).toMatchObject({ resource: name, session_id: 'session' });
      await request.answer(201, leaseAnswer({ lease_id: name, resources: [name] }));
    }
    await Promise.all(leases);
    expect(wire.seen.filter((request) => request === 'POST /v1/sessions')).toHaveLength(1);
  });

  it('repeats a request under the same hold id, so that it counts once', async () => {
    const { clock, wire, client } = lab();
    const lease = client.lease('v/a');
    await (await wire.next('POST /v1/sessions')).answer(201, sessionAnswer());
    const first = await wire.next('POST /v1/leases');
    await first.cut();
    await clock.advanceAsync(100);
    const second = await wire.next('POST /v1/leases');
    expect(second.json['hold_id']).toBe(first.json['hold_id']);
    await second.answer(201, leaseAnswer());
    const released = (await lease).release();
    await (await wire.next(`DELETE /v1/leases/secret?hold_id=${String(first.json['hold_id'])}`)).answer(204);
    await released;
  });

  it('gives back what it may have been granted when it gave up', async () => {
    const { wire, client } = lab();
    const controller = new AbortController();
    const lease = client.lease('v/a', { ttlMs: TTL_MS, signal: controller.signal });
    const outcome = expect(lease).rejects.toThrow('enough');
    await (await wire.next('POST /v1/sessions')).answer(201, sessionAnswer());
    const asked = await wire.next('POST /v1/leases');
    controller.abort(new Error('enough'));
    await outcome;
    const again = await wire.next('POST /v1/leases');
    expect(again.json['hold_id']).toBe(asked.json['hold_id']);
    await again.answer(200, leaseAnswer());
    await (await wire.next(`DELETE /v1/leases/secret?hold_id=${String(asked.json['hold_id'])}`)).answer(204);
  });

  it.each([
    ['was lost', (asked: FakeRequest) => asked.cut()],
    ['said that it is not known', (asked: FakeRequest) => asked.answer(...problem(503, 'outcome_unknown'))],
  ])('gives back what may have been granted by a request whose answer %s, though the last one was refused', async (_, first) => {
    const { clock, wire, client } = lab();
    const lease = client.lease('v/a', { ttlMs: TTL_MS });
    const outcome = expect(lease).rejects.toMatchObject({ code: 'journal_unavailable' });
    await (await wire.next('POST /v1/sessions')).answer(201, sessionAnswer());
    const asked = await wire.next('POST /v1/leases');
    await first(asked);
    for (let count = 1; count < CLIENT_LIMITS.attemptsMax; count += 1) {
      await clock.advanceAsync(1);
      await (await wire.next('POST /v1/leases')).answer(...problem(503, 'journal_unavailable'));
    }
    await outcome;
    const again = await wire.next('POST /v1/leases');
    expect(again.json['hold_id']).toBe(asked.json['hold_id']);
    await again.answer(200, leaseAnswer());
    await (await wire.next(`DELETE /v1/leases/secret?hold_id=${String(asked.json['hold_id'])}`)).answer(204);
  });

  it('does not hide what the gateway refuses', async () => {
    const { wire, client } = lab();
    const lease = client.lease('v/a');
    const outcome = expect(lease).rejects.toMatchObject({ code: 'ttl_out_of_range', status: 400, requestId: 'req_1', members: { min_ms: 1_000 } });
    await (await wire.next('POST /v1/sessions')).answer(201, sessionAnswer());
    await (await wire.next('POST /v1/leases')).answer(...problem(400, 'ttl_out_of_range', { min_ms: 1_000 }));
    await outcome;
  });

  it('a release that is not confirmed is told, and made up for', async () => {
    const own = lab();
    const { clock, wire, events } = own;
    const lease = await held(own);
    const released = lease.release();
    const outcome = expect(released).rejects.toMatchObject({ code: 'gateway_unreachable' });
    for (let elapsed = 0; !events.some(({ type }) => type === 'release_failed'); elapsed += 100) {
      expect(elapsed).toBeLessThan(10_000);
      while (!(await wire.quiet())) await (await wire.next('')).cut();
      await clock.advanceAsync(100);
    }
    await outcome;
    expect(lease.state).toBe('released');
    for (;;) {
      await clock.advanceAsync(1_000);
      if (await wire.quiet()) continue;
      const request = await wire.next('');
      if (request.method === 'DELETE') {
        await request.answer(204);
        break;
      }
      await request.answer(200, heartbeat);
    }
  });

  it('a closed client gives no lease', async () => {
    const own = lab();
    const lease = await held(own);
    const closed = own.client.close();
    await (await own.wire.next('DELETE /v1/sessions/session')).answer(204);
    await closed;
    expect(lease.state).toBe('released');
    await expect(own.client.lease('v/a')).rejects.toMatchObject({ code: 'client_closed' });
    await own.client.close();
  });
});
