import { describe, expect, it } from 'vitest';
import { type ClientLab, clientLab, heartbeat, held, MARGIN_MS, TTL_MS } from '../../support/client-lab.ts';
import { leaseAnswer, problem } from '../../support/fake-fetch.ts';

/** The stream that tells a client at once what the next heartbeat would tell it late. */

const WATCH = '/v1/sessions/session/watch';
const event = (changes: object = {}): object => ({ resource: 'v/a', lease_ref: 'ref', reason: 'broken', ...changes });

/** What is asked when a stream begins that does not go on behind an event: heartbeat, and each lease. */
async function began({ wire }: ClientLab, answer: object = {}): Promise<void> {
  await (await wire.next('GET /v1/leases/secret')).answer(200, leaseAnswer(answer));
  await (await wire.next('POST /v1/sessions/session/heartbeat')).answer(200, heartbeat);
}

/** A lease that was held for long enough to be followed; the heartbeat that goes with the beginning of the stream is answered. */
async function followed(lab: ClientLab) {
  const lease = await held(lab);
  await lab.clock.advanceAsync(250);
  const stream = await lab.wire.nextStream();
  await stream.open();
  await began(lab);
  return { lease, stream };
}

describe('the stream of losses', () => {
  it('is not asked for by a lease that is held for a moment only', async () => {
    const lab = clientLab();
    const lease = await held(lab);
    await lab.clock.advanceAsync(200);
    const released = lease.release();
    await (await lab.wire.next('DELETE /v1/leases/secret')).answer(204);
    await released;
    await lab.clock.advanceAsync(10_000);
    expect(lab.wire.streams).toBe(0);
  });

  it.each(['broken', 'expired', 'lost', 'released'])('ends the lease at once: %s', async (type) => {
    const lab = clientLab();
    const { lease, stream } = await followed(lab);
    expect([stream.method, stream.target, stream.headers.get('last-event-id')]).toEqual(['GET', WATCH, null]);
    await stream.send(type, event({ lease_ref: 'of another' }));
    expect(lease.signal.aborted).toBe(false);
    await stream.send(type, event({ reason: 'a reason' }));
    expect(lease.signal.reason).toMatchObject({ code: 'lease_lost', members: { reason: 'a reason', fencing_token: '7' } });
    expect(lab.events).toMatchObject([{ type: 'lease_lost', leaseRef: 'ref' }]);
    // Nothing is held any more.
    expect(stream.signal?.aborted).toBe(true);
  });

  it('asks for what happened before it began', async () => {
    const lab = clientLab();
    const lease = await held(lab);
    await lab.clock.advanceAsync(250);
    await (await lab.wire.nextStream()).open();
    await (await lab.wire.next('GET /v1/leases/secret')).cut();
    await (await lab.wire.next('POST /v1/sessions/session/heartbeat')).answer(200, { ...heartbeat, lost: ['secret'] });
    await (await lab.wire.next('GET /v1/leases/secret')).answer(200, leaseAnswer({ state: 'broken', reason: 'broken' }));
    expect(lease.signal.aborted).toBe(true);
  });

  it('costs no lease when it is lost, and goes on behind the last event', async () => {
    const lab = clientLab();
    const { lease, stream } = await followed(lab);
    await stream.send('suspended', event({ lease_ref: null, resource: null }));
    await stream.break();
    await lab.clock.advanceAsync(10);
    const next = await lab.wire.nextStream();
    expect(next.headers.get('last-event-id')).toBe('1');
    await next.open();
    await (await lab.wire.next('POST /v1/sessions/session/heartbeat')).answer(200, heartbeat);
    await next.end();
    await lab.clock.advanceAsync(10);
    expect(lab.wire.streams).toBe(1);
    expect([lease.state, lab.events]).toEqual(['held', []]);
  });

  it('comes again later and later while nothing answers, and heartbeats go on meanwhile', async () => {
    const lab = clientLab(() => 0.5);
    await held(lab);
    await lab.clock.advanceAsync(250);
    const pauses: number[] = [];
    for (let i = 0; i < 4; i += 1) {
      await (await lab.wire.nextStream()).cut();
      const beganMs = lab.clock.monotonicMs();
      while (lab.wire.streams === 0) await lab.clock.advanceAsync(10);
      pauses.push(lab.clock.monotonicMs() - beganMs);
    }
    expect(pauses).toEqual([50, 100, 200, 400]);
    while (await lab.wire.quiet()) await lab.clock.advanceAsync(100);
    await (await lab.wire.next('POST /v1/sessions/session/heartbeat')).answer(200, heartbeat);
  });

  it('is asked for rarely where all places are taken', async () => {
    const lab = clientLab(() => 0.5);
    await held(lab, {}, { ttl_ms: 600_000, expires_in_ms: 600_000 });
    await lab.clock.advanceAsync(250);
    await (await lab.wire.nextStream()).answer(...problem(503, 'overloaded'));
    await lab.clock.advanceAsync(29_000);
    expect(lab.wire.streams).toBe(0);
    await lab.clock.advanceAsync(1_100);
    expect(lab.wire.streams).toBe(1);
  });

  it('that is refused for good is told, and the heartbeat stays', async () => {
    const lab = clientLab();
    const lease = await held(lab);
    await lab.clock.advanceAsync(250);
    await (await lab.wire.nextStream()).answer(...problem(403, 'forbidden'));
    expect(lab.events).toMatchObject([{ type: 'watch_refused', error: { code: 'forbidden' } }]);
    await lab.clock.advanceAsync(3_100);
    await (await lab.wire.next('POST /v1/sessions/session/heartbeat')).answer(200, { ...heartbeat, lost: ['secret'] });
    await (await lab.wire.next('GET /v1/leases/secret')).answer(200, leaseAnswer({ state: 'broken', reason: 'broken' }));
    expect([lease.state, lab.wire.streams]).toEqual(['lost', 0]);
  });

  it('ends every lease with its session', async () => {
    const lab = clientLab();
    const lease = await held(lab);
    await lab.clock.advanceAsync(250);
    await (await lab.wire.nextStream()).answer(...problem(404, 'session_not_found'));
    expect(lease.signal.reason).toMatchObject({ code: 'lease_lost', members: { reason: 'session_ended' } });
  });

  it('takes no release of our own for a loss, and ends with it', async () => {
    const lab = clientLab();
    const { lease, stream } = await followed(lab);
    const released = lease.release();
    const request = await lab.wire.next('DELETE /v1/leases/secret');
    await stream.send('released', event({ reason: 'released' }));
    await request.answer(204);
    await released;
    expect([lease.state, lease.signal.aborted, lab.events]).toEqual(['released', false, []]);
    expect(stream.signal?.aborted).toBe(true);
  });

  it('ends with the client', async () => {
    const lab = clientLab();
    const { stream } = await followed(lab);
    const closed = lab.client.close();
    expect(stream.signal?.aborted).toBe(true);
    await (await lab.wire.next('DELETE /v1/sessions/session')).answer(204);
    await closed;
  });
});

describe('a lease that an administrator breaks after a grace', () => {
  it('is over here before the grace is, however often it is renewed', async () => {
    const lab = clientLab();
    const { lease, stream } = await followed(lab);
    await stream.send('breaking', event({ reason: 'maintenance (until 2026-01-01T00:00:10.000Z)' }));
    const atMs = lab.clock.monotonicMs();
    await (await lab.wire.next('GET /v1/leases/secret')).answer(200, leaseAnswer({ reason: 'breaking', expires_in_ms: 4_000 }));
    expect(lab.events).toMatchObject([{ type: 'lease_breaking', leaseRef: 'ref', resources: ['v/a'], remainingMs: 4_000 - MARGIN_MS }]);
    while (!lease.signal.aborted) {
      await lab.clock.advanceAsync(50);
      if (!lease.signal.aborted && !(await lab.wire.quiet())) await (await lab.wire.next('POST')).answer(200, heartbeat);
    }
    expect(lab.clock.monotonicMs() - atMs).toBe(4_000 - MARGIN_MS);
    expect(lease.signal.reason).toMatchObject({ code: 'lease_lost', members: { reason: 'broken' } });
  });

  it('is so, too, when that was announced before the stream began', async () => {
    const lab = clientLab();
    const lease = await held(lab);
    await lab.clock.advanceAsync(250);
    await (await lab.wire.nextStream()).open();
    await began(lab, { reason: 'breaking', expires_in_ms: 2_000 });
    expect(lab.events).toMatchObject([{ type: 'lease_breaking', reason: null, remainingMs: 2_000 - MARGIN_MS }]);
    await lab.clock.advanceAsync(2_000 - MARGIN_MS);
    expect(lease.signal.reason).toMatchObject({ members: { reason: 'broken' } });
  });

  it('that would have ended before is as it was', async () => {
    const lab = clientLab();
    const { lease, stream } = await followed(lab);
    await stream.send('breaking', event());
    await (await lab.wire.next('GET /v1/leases/secret')).answer(200, leaseAnswer({ reason: 'breaking', expires_in_ms: 3_600_000 }));
    await lab.clock.advanceAsync(TTL_MS);
    expect(lease.signal.reason).toMatchObject({ members: { reason: 'expired' } });
  });
});
