import { afterEach, describe, expect, it } from 'vitest';
import { LIMITS } from '../../src/domain/limits.ts';
import { eventually, GatewayClient, jsonOf, type LeaseJson, verdictOf } from '../support/gateway-client.ts';
import { GatewayProcess } from '../support/gateway-process.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { LockClient } from '../support/lock-client.ts';
import { TIER } from '../support/tier.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** What a restart, a crash and a pause of the gateway do to leases: nothing that was told is taken back, nothing lives longer. */

const VOLUMES = { v: {}, locks: { path: null } };
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function started(directory?: string): Promise<VolumesGateway> {
  const gateway = await startVolumes(directory === undefined ? { volumes: VOLUMES } : { volumes: VOLUMES, directory });
  return gateway;
}

describe('a restart', () => {
  it('R33, B39: brings leases back with a fresh time to live, the same tokens and holds; goes on above every number; waiters are answered lost', async () => {
    const before = await started();
    const locks = new LockClient(before.client);
    const session = await locks.session({ ttl_ms: 60_000, client_id: 'batch-7' });
    const own = await before.client.lease('v/own', { session_id: session.session_id, ttl_ms: 30_000, hold_id: 'outer', metadata: { job: 7 } });
    await locks.acquire('v/own', { session_id: session.session_id, hold_id: 'inner' });
    const reader = await before.client.lease('locks/read', { mode: 'shared', ttl_ms: 60_000 });
    const released = await before.client.lease('locks/over');
    await locks.release(released);
    const polling = jsonOf<LeaseJson>(await locks.acquire('v/own', { wait_ms: 1 }));
    // Clients of their own: they wait for what the gateway says when it goes.
    const patient = new GatewayClient(before.url);
    closing.push(() => patient.close());
    const waiting = new LockClient(patient).acquire('v/own', { wait_ms: 60_000 });
    await locks.queued('v/own', 2);
    const polled = new LockClient(patient).lease(polling, 60_000);
    await before.client.put('v/implicit', 'x');

    await before.halt();
    expect(verdictOf(await waiting)).toBe('409 lock_not_acquired');
    expect(await polled).toMatchObject({ state: 'lost' });

    const after = await started(before.directory);
    closing.push(() => after.stop());
    const again = new LockClient(after.client);
    expect(await again.lease(own)).toMatchObject({
      state: 'held',
      fencing_token: own.fencing_token,
      hold_count: 2,
      ttl_ms: 30_000,
      session_id: session.session_id,
      granted_at: own['granted_at'],
      metadata: { job: 7 },
    });
    expect(Number((await again.lease(own))['expires_in_ms'])).toBeGreaterThan(25_000);
    expect(await again.lease(reader)).toMatchObject({ state: 'held', mode: 'shared' });
    expect(await again.lease(released)).toMatchObject({ state: 'released', reason: 'released' });
    expect(await again.lease(polling)).toMatchObject({ state: 'lost', reason: 'lost' });
    expect(verdictOf(await again.renew(polling))).toBe('409 lease_not_held');
    expect(await again.lock('v/implicit')).toMatchObject({ holders: [], queue_length: 0 });
    expect((await after.client.put('v/own', 'x', { 'x-fencing-token': own.fencing_token })).status).toBe(201);
    expect(jsonOf(await again.heartbeat(session))).toEqual({ expires_in_ms: 60_000, lost: [] });
    expect(verdictOf(await again.acquire('v/own'))).toBe('409 lock_not_acquired');
    const next = await after.client.lease('locks/next');
    expect(BigInt(next.fencing_token)).toBeGreaterThan(BigInt(reader.fencing_token));
    await again.release(own, { hold_id: 'outer' });
    await again.release(own, { hold_id: 'inner' });
    expect(await again.lease(own)).toMatchObject({ state: 'released' });
  });

  it('says of a lease that ended before it what was said then: to a poll, to a renewal, to the heartbeat', async () => {
    const before = await started();
    const locks = new LockClient(before.client);
    const session = await locks.session({ ttl_ms: 60_000 });
    const lease = await before.client.lease('locks/broken', { session_id: session.session_id, ttl_ms: 30_000, metadata: { job: 7 } });
    await locks.break('locks/broken');
    const said = async (client: LockClient) => {
      const { request_id: _, ...refusal } = jsonOf<Record<string, unknown>>(await client.renew(lease));
      return { lease: await client.lease(lease), refusal, lost: jsonOf<{ lost: unknown }>(await client.heartbeat(session)).lost };
    };
    const then = await said(locks);
    expect(then).toMatchObject({
      lease: { state: 'broken', fencing_token: lease.fencing_token, resources: ['locks/broken'], ttl_ms: 30_000, metadata: { job: 7 } },
      refusal: { code: 'lease_not_held', state: 'broken', reason: 'broken' },
      lost: [lease.lease_id],
    });
    await before.halt();
    const after = await started(before.directory);
    closing.push(() => after.stop());
    expect(await said(new LockClient(after.client))).toEqual(then);
  });

  it('R10: a holder is told of its loss over it, too: by the stream of its session, by polling, by its heartbeat, with the reason and its last token', async () => {
    const before = await started();
    const locks = new LockClient(before.client);
    const session = await locks.session({ ttl_ms: 60_000 });
    const own = { session_id: session.session_id };
    const watch = await locks.watch(`/v1/sessions/${session.session_id}/watch`);
    const kept = await before.client.lease('v/kept', own);
    const expired = await before.client.lease('v/expired', { ...own, ttl_ms: 1_000 });
    const gone = await before.client.lease('locks/gone', own);
    expect(await watch.types(3)).toEqual(['granted', 'granted', 'granted']);
    const last = await watch.next();
    expect(last).toMatchObject({ type: 'expired', data: { lease_ref: expired.lease_ref, reason: 'expired', fencing_token: expired.fencing_token } });
    watch.close();
    await before.halt();

    // What was held on the volume that is not there any more cannot come back.
    const after = await startVolumes({ volumes: { v: {} }, directory: before.directory });
    closing.push(() => after.stop());
    const again = new LockClient(after.client);
    const resumed = await again.watch(`/v1/sessions/${session.session_id}/watch`, { 'last-event-id': last.id });
    const { type, data } = await resumed.next();
    resumed.close();
    expect(type).toBe('reset');
    expect((data['locks'] as { resource: string }[]).map(({ resource }) => resource)).toEqual(['v/kept']);
    expect(await again.lease(kept)).toMatchObject({ state: 'held' });
    expect(await again.lease(expired)).toMatchObject({ state: 'expired', reason: 'expired', fencing_token: expired.fencing_token });
    expect(await again.lease(gone)).toMatchObject({ state: 'lost', reason: 'lost', fencing_token: gone.fencing_token });
    expect(jsonOf<{ lost: string[] }>(await again.heartbeat(session)).lost.sort()).toEqual([expired.lease_id, gone.lease_id].sort());
  });

  it('knows a session that ended before it: its end may be repeated, its heartbeat is refused as before', async () => {
    const before = await started();
    const session = await new LockClient(before.client).session();
    await before.client.lease('v/of-ended', { session_id: session.session_id });
    const end = (gateway: VolumesGateway) => gateway.client.send('DELETE', `/v1/sessions/${session.session_id}`);
    expect((await end(before)).status).toBe(204);
    await before.halt();
    const after = await started(before.directory);
    closing.push(() => after.stop());
    expect((await end(after)).status).toBe(204);
    expect(verdictOf(await new LockClient(after.client).heartbeat(session))).toBe('409 session_ended');
  });

  it('serves a lock-delay again in full', async () => {
    const before = await started();
    await before.client.lease('locks/delay', { lock_delay_ms: 60_000 });
    await new LockClient(before.client).break('locks/delay');
    await before.halt();
    const after = await started(before.directory);
    closing.push(() => after.stop());
    expect(verdictOf(await new LockClient(after.client).acquire('locks/delay'))).toBe('409 lock_not_acquired');
  });

  it(`takes ${TIER.returningSessions} sessions that come back at once in at a bounded rate, tells the others when to come again, and no live lease is lost`, async () => {
    const before = await started();
    // Each lease with a session of its own, as of so many clients.
    const made: LeaseJson[] = [];
    for (let i = 0; i < TIER.returningSessions; i += 250) {
      const batch = Array.from({ length: 250 }, (_, n) => before.client.lease(`locks/return/${i + n}`, { ttl_ms: 3_600_000 }));
      made.push(...(await Promise.all(batch)));
    }
    await before.halt();
    const after = await started(before.directory);
    closing.push(() => after.stop());

    let coming = made.map(({ session_id }) => session_id);
    const told: number[] = [];
    const cameMs = Date.now();
    let firstRoundMs = Number.POSITIVE_INFINITY;
    for (let round = 0; coming.length > 0; round += 1) {
      const again: string[] = [];
      const batches = Array.from({ length: Math.ceil(coming.length / 1_000) }, (_, i) => coming.slice(i * 1_000, (i + 1) * 1_000));
      const answers = await Promise.all(batches.map((session_ids) => after.client.post('/v1/sessions/heartbeats', { session_ids })));
      for (const answer of answers) {
        const { sessions } = jsonOf<{ sessions: { session_id: string; code: string | null; lost: unknown[] }[] }>(answer);
        const sent = sessions.filter(({ code }) => code !== null);
        expect(sessions.flatMap(({ lost }) => lost)).toEqual([]);
        expect(new Set(sent.map(({ code }) => code)).size).toBeLessThanOrEqual(1);
        if (sent.length > 0) {
          expect(sent[0]?.code).toBe('overloaded');
          told.push(Number(answer.headers['retry-after']));
        }
        again.push(...sent.map(({ session_id }) => session_id));
      }
      coming = again;
      firstRoundMs = Math.min(firstRoundMs, Date.now() - cameMs);
      // A client would wait as long as it was told; here it asks on, and is let in as soon as there is room.
      if (round > 1_000) throw new Error('they are never let in');
    }
    // A machine that takes as long to answer them as their turns last tells nobody to wait.
    const turnsMs = ((TIER.returningSessions - LIMITS.reconnectBurstMax) / LIMITS.reconnectsPerSecondMax) * 1_000;
    expect(told.length > 0 || firstRoundMs > turnsMs).toBe(true);
    expect(told.every((seconds) => seconds >= 1 && seconds <= 60)).toBe(true);
    const states = await Promise.all(made.filter((_, i) => i % 50 === 0).map((lease) => new LockClient(after.client).lease(lease)));
    expect(states.every(({ state }, i) => state === 'held' && states[i]?.fencing_token === made[i * 50]?.fencing_token)).toBe(true);
    expect(await after.client.audit({ action: 'lease_expire' })).toEqual([]);
    const { next_cursor, locks } = jsonOf<{ next_cursor: string | null; locks: unknown[] }>(
      await after.client.send('GET', '/v1/locks', { query: { volume: 'locks', limit: 1_000 } }),
    );
    expect([locks.length, next_cursor === null]).toEqual([1_000, false]);
  }, 300_000);
});

describe('a gateway process', () => {
  async function processIn(directory: string): Promise<{ process: GatewayProcess; locks: LockClient }> {
    const process = await GatewayProcess.start(directory);
    const client = new GatewayClient(process.url);
    closing.push(() => client.close());
    return { process, locks: new LockClient(client) };
  }

  it("that is killed loses no lease and repeats no token; a token-less write's lease does not come back", async () => {
    const directory = await newDirectory();
    closing.push(() => removeDirectory(directory));
    const seen: bigint[] = [];
    let held: LeaseJson | null = null;
    for (let round = 0; round < 3; round += 1) {
      const { process, locks } = await processIn(directory);
      if (held !== null) {
        expect(await locks.lease(held)).toMatchObject({ state: 'held', fencing_token: held.fencing_token });
        expect((await locks.client.put('v/held', String(round), { 'x-fencing-token': held.fencing_token })).status).toBeLessThan(300);
        await locks.release(held);
      }
      for (let i = 0; i < 5; i += 1) {
        const lease = await locks.client.lease(`v/file-${i}`);
        seen.push(BigInt(lease.fencing_token));
        await locks.release(lease);
        seen.push(BigInt((await locks.client.put('v/file', 'x')).headers['x-fencing-token'] ?? 0));
      }
      held = await locks.client.lease('v/held', { ttl_ms: 120_000 });
      seen.push(BigInt(held.fencing_token));
      await process.kill();
    }
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen.every((token, i) => i === 0 || token > (seen[i - 1] ?? 0n))).toBe(true);
  });

  it.each(['SIGKILL', 'SIGTERM'] as const)(
    'that gets a %s keeps what is left in a session that a lease made, whose first lease has ended, and everybody who names it is answered',
    async (signal) => {
      const directory = await newDirectory();
      closing.push(() => removeDirectory(directory));
      const { process, locks } = await processIn(directory);
      await locks.client.lease('v/busy', { ttl_ms: 600_000 });
      const first = await locks.client.lease('v/first', { ttl_ms: 120_000 });
      const own = { session_id: String(first.session_id) };
      const left = await locks.client.lease('v/left', { ...own, ttl_ms: 120_000 });
      const innocent = await locks.session({ ttl_ms: 120_000 });
      const named = async (client: LockClient) => {
        const batch = await client.client.post('/v1/sessions/heartbeats', { session_ids: [own.session_id, innocent.session_id] });
        const { sessions } = jsonOf<{ sessions: { code: string | null; lost: string[] }[] }>(batch);
        return [
          verdictOf(await client.heartbeat(own)),
          ...sessions.map(({ code, lost }) => `${code} ${lost.length}`),
          verdictOf(await client.acquire('v/busy', own)),
          (await client.acquire('v/left', own)).status,
          verdictOf(await client.renew(left)),
          (await client.client.put('v/left', 'x', { 'x-fencing-token': left.fencing_token })).status < 300,
        ];
      };
      const ALIVE = ['200', 'null 0', 'null 0', '409 lock_not_acquired', 200, '200', true];
      await locks.release(first);
      expect(await named(locks)).toEqual(ALIVE);
      process.signal(signal);
      await process.ended();

      const again = await processIn(directory);
      expect(await again.locks.lease(left)).toMatchObject({ state: 'held', fencing_token: left.fencing_token, ...own });
      expect(await named(again.locks)).toEqual(ALIVE);
      expect(await again.locks.client.audit({ action: 'lease_lose' })).toEqual([]);
      expect((await again.locks.client.send('DELETE', `/v1/sessions/${own.session_id}`)).status).toBe(204);
      expect(await again.locks.lease(left)).toMatchObject({ state: 'released', reason: 'session_ended' });
    },
    120_000,
  );

  it.each(['SIGTERM', 'SIGKILL'] as const)(
    'tells of a wait that it ended: by the heartbeat of its session, by a poll, and in the audit log (%s)',
    async (signal) => {
      const directory = await newDirectory();
      closing.push(() => removeDirectory(directory));
      const { process, locks } = await processIn(directory);
      await locks.client.lease('v/busy', { ttl_ms: 600_000 });
      const session = await locks.session({ ttl_ms: 600_000, client_id: 'patient' });
      const own = { session_id: session.session_id, ttl_ms: 600_000, wait_ms: 1 };
      const waiting = jsonOf<LeaseJson>(await locks.acquire('v/busy', own));
      expect(waiting).toMatchObject({ state: 'waiting' });
      process.signal(signal);
      await process.ended();

      const again = await processIn(directory);
      for (let i = 0; i < 2; i += 1) expect(jsonOf(await again.locks.heartbeat(session))).toMatchObject({ lost: [waiting.lease_id] });
      expect(await again.locks.lease(waiting)).toMatchObject({ state: 'lost', resources: ['v/busy'], session_id: session.session_id });
      expect(await again.locks.client.audit({ action: 'lease_lose' })).toMatchObject([
        { resource: 'v/busy', lease_ref: waiting.lease_ref, client_id: 'patient', outcome: 'committed', fencing_token: null },
      ]);
    },
    120_000,
  );

  it('that is killed within the grace of a break goes on with it: nobody new gets in before the deadline, then the lease is broken', async () => {
    const directory = await newDirectory();
    closing.push(() => removeDirectory(directory));
    const before = await processIn(directory);
    const reader = await before.locks.client.lease('v/breaking', { mode: 'shared', ttl_ms: 600_000 });
    const { deadline } = jsonOf<{ deadline: string }>(await before.locks.break('v/breaking', { grace_ms: 10_000 }));
    const [announced] = await before.locks.client.audit({ action: 'lease_break' });
    expect(announced).toMatchObject({ outcome: 'pending', lease_ref: reader.lease_ref });
    await before.process.kill();

    const { locks } = await processIn(directory);
    const operation = () => locks.client.send('GET', `/v1/operations/${announced?.['operation_id']}`);
    // Without the break another reader would come in at once.
    const next = jsonOf<LeaseJson>(await locks.acquire('v/breaking', { mode: 'shared', wait_ms: 60_000 }));
    expect(next).toMatchObject({ state: 'held' });
    expect(Date.parse(String(next['granted_at']))).toBeGreaterThanOrEqual(Date.parse(deadline));
    expect(await locks.lease(reader)).toMatchObject({ state: 'broken', reason: 'broken' });
    expect(jsonOf(await operation())).toMatchObject({ action: 'lease_break', outcome: 'committed', resource: 'v/breaking' });
    expect(await locks.client.audit({ action: 'lease_break' })).toMatchObject([{ outcome: 'committed', lease_ref: reader.lease_ref }]);
    expect(await locks.client.audit({ action: 'lease_break', outcome: 'pending' })).toEqual([]);
  }, 120_000);

  it('that was stopped for longer than the time to live has no late holder when it wakes: judged at use, before anything is admitted', async () => {
    const directory = await newDirectory();
    closing.push(() => removeDirectory(directory));
    const { process, locks } = await processIn(directory);
    const lease = await locks.client.lease('v/paused', { ttl_ms: 1_000 });
    process.signal('SIGSTOP');
    const late = [locks.client.put('v/paused', 'x', { 'x-fencing-token': lease.fencing_token }), locks.renew(lease)];
    const until = Date.now() + 1_200;
    await eventually(
      () => Date.now(),
      (now) => now > until,
    );
    process.signal('SIGCONT');
    expect((await Promise.all(late)).map(verdictOf)).toEqual(['412 lease_ended', '409 lease_not_held']);
    expect((await locks.client.get('v/paused')).status).toBe(404);
  });
});
