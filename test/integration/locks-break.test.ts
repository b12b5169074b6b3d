import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { jsonOf, type LeaseJson, verdictOf } from '../support/gateway-client.ts';
import { LockClient } from '../support/lock-client.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** Lock stealing by an administrator: fences first, tells what had been written, audited. */

let gateway: VolumesGateway;
let locks: LockClient;
beforeAll(async () => {
  gateway = await startVolumes({ volumes: { v: {}, forever: { path: null, lease: { infinite: true } } } });
  locks = new LockClient(gateway.client);
});
afterAll(() => gateway.stop());

const put = (name: string, lease: LeaseJson, body = 'x') => gateway.client.put(name, body, { 'x-fencing-token': lease.fencing_token });

describe('a break', () => {
  it('R20: needs no id: a token that nobody gets raises the mark, then the lease ends, and the next one gets in', async () => {
    const stuck = await gateway.client.lease('forever/job', { client_id: 'crashed', ttl_ms: 10_000_000, metadata: { reason: 'nightly' } });
    const waiting = locks.acquire('forever/job', { wait_ms: 30_000 });
    await locks.queued('forever/job', 1);
    const { holders } = await locks.lock('forever/job');
    expect(holders).toMatchObject([{ lease_ref: stuck.lease_ref, client_id: 'crashed', since: stuck['granted_at'], reason: 'nightly' }]);
    const answer = await gateway.client
      .with({ 'x-client-id': 'operator' })
      .post('/v1/admin/locks/break', { resource: 'forever/job', reason: 'it crashed' });
    expect(answer.status).toBe(200);
    const fence = String(BigInt(stuck.fencing_token) + 1n);
    expect(jsonOf(answer)).toEqual({
      resource: 'forever/job',
      state: 'broken',
      high_water_mark: fence,
      deadline: null,
      leases: [
        {
          lease_ref: stuck.lease_ref,
          client_id: 'crashed',
          mode: 'exclusive',
          fencing_token: stuck.fencing_token,
          operation_id: expect.stringMatching(/^op_/),
          committed: [],
          committed_truncated: false,
        },
      ],
    });
    const { leases } = jsonOf<{ leases: { operation_id: string }[] }>(answer);
    const operation = await gateway.client.send('GET', `/v1/operations/${leases[0]?.operation_id}`);
    expect(jsonOf(operation)).toMatchObject({
      action: 'lease_break',
      resource: 'forever/job',
      outcome: 'committed',
      fencing_token: stuck.fencing_token,
    });
    expect(BigInt(jsonOf<LeaseJson>(await waiting).fencing_token)).toBeGreaterThan(BigInt(fence));
    expect(await locks.lease(stuck)).toMatchObject({ state: 'broken', reason: 'broken' });
    expect(await gateway.client.audit({ action: 'lease_break', path: 'job' })).toMatchObject([
      { outcome: 'committed', client_id: 'operator', lease_ref: stuck.lease_ref, fencing_token: stuck.fencing_token, high_water_mark: fence },
    ]);
  });

  it('tells what the broken lease had committed, oldest first, with the versions before and after', async () => {
    const lease = await gateway.client.lease('v/harm');
    const written = [await put('v/harm', lease, 'one'), await put('v/harm', lease, 'two')].map((answer) => jsonOf(answer));
    const { leases } = jsonOf<{ leases: { committed: unknown[] }[] }>(await locks.break('v/harm'));
    expect(leases[0]?.committed).toEqual([
      {
        operation_id: written[0]?.['operation_id'],
        action: 'put',
        resource: 'v/harm',
        at: expect.any(String),
        etag_before: null,
        etag_after: written[0]?.['etag'],
      },
      {
        operation_id: written[1]?.['operation_id'],
        action: 'put',
        resource: 'v/harm',
        at: expect.any(String),
        etag_before: written[0]?.['etag'],
        etag_after: written[1]?.['etag'],
      },
    ]);
    // The record says the same, and why.
    const [record] = await gateway.client.audit({ action: 'lease_break', path: 'harm' });
    expect(record?.['detail']).toEqual({ reason: expect.any(String), committed: leases[0]?.committed, committed_truncated: false });
    expect(verdictOf(await put('v/harm', lease))).toBe('412 stale_token');
  });

  it('with a grace period is 202 with the deadline; the holder may still write and release, nobody new gets in meanwhile', async () => {
    const lease = await gateway.client.lease('v/grace');
    const waiting = locks.acquire('v/grace', { wait_ms: 30_000 });
    await locks.queued('v/grace', 1);
    const answer = await locks.break('v/grace', { grace_ms: 60_000 });
    expect(answer.status).toBe(202);
    expect(jsonOf(answer)).toMatchObject({
      state: 'breaking',
      high_water_mark: null,
      deadline: expect.stringMatching(/Z$/),
      leases: [{ lease_ref: lease.lease_ref }],
    });
    expect((await put('v/grace', lease)).status).toBe(201);
    expect(await locks.lock('v/grace')).toMatchObject({ queue_length: 1, holders: [{ lease_ref: lease.lease_ref }] });
    await locks.release(lease);
    expect(jsonOf(await waiting)).toMatchObject({ state: 'held' });
    expect(await locks.lease(lease)).toMatchObject({ state: 'released' });
  });

  it('with two grace periods ends by the first; a break at once is a third one; each has its word in the audit log', async () => {
    await gateway.client.lease('v/twice', { client_id: 'slow', ttl_ms: 600_000 });
    const answers = [
      await locks.break('v/twice', { reason: 'first', grace_ms: 60_000 }),
      await locks.break('v/twice', { reason: 'second', grace_ms: 3_600_000 }),
      await locks.break('v/twice', { reason: 'third' }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([202, 202, 200]);
    const [first, second, third] = answers.map((answer) => jsonOf<{ deadline: string; leases: { operation_id: string }[] }>(answer));
    expect(Date.parse(second?.deadline ?? '')).toBeLessThanOrEqual(Date.parse(first?.deadline ?? ''));
    const records = await gateway.client.audit({ action: 'lease_break', path: 'twice', order: 'asc' });
    expect(records.map(({ operation_id: id, outcome, detail }) => [id, outcome, (detail as { reason: string }).reason])).toEqual([
      [first?.leases[0]?.operation_id, 'aborted', 'first'],
      [second?.leases[0]?.operation_id, 'aborted', 'second'],
      [third?.leases[0]?.operation_id, 'committed', 'third'],
    ]);
    for (const record of records) expect(record['high_water_mark']).toMatch(/^[0-9]+$/);
  });

  it('ends the lease when the grace period is over, and shared leases all together', async () => {
    const readers = [await gateway.client.lease('v/readers', { mode: 'shared' }), await gateway.client.lease('v/readers', { mode: 'shared' })];
    const writer = locks.acquire('v/readers', { wait_ms: 30_000 });
    await locks.queued('v/readers', 1);
    expect((await locks.break('v/readers', { grace_ms: 50 })).status).toBe(202);
    expect(jsonOf(await writer)).toMatchObject({ state: 'held', mode: 'exclusive' });
    for (const reader of readers) expect(await locks.lease(reader)).toMatchObject({ state: 'broken' });
  });

  it('of one resource ends the lease over all of its resources', async () => {
    const lease = await gateway.client.lease(['v/both/a', 'v/both/b']);
    await locks.break('v/both/b');
    expect(await locks.lease(lease)).toMatchObject({ state: 'broken' });
    for (const name of ['v/both/a', 'v/both/b']) {
      expect(await locks.lock(name)).toMatchObject({ holders: [], high_water_mark: String(BigInt(lease.fencing_token) + 1n) });
      expect(verdictOf(await put(name, lease))).toBe('412 stale_token');
    }
  });

  it('where nobody holds is 404; without a reason, or with a grace out of bounds, 400', async () => {
    expect(verdictOf(await locks.break('v/nobody'))).toBe('404 not_found');
    expect(await gateway.client.audit({ action: 'lease_break', path: 'nobody' })).toMatchObject([
      { outcome: 'rejected', code: 'not_found', status: 404, count: 1 },
    ]);
    await gateway.client.lease('v/form');
    expect(verdictOf(await gateway.client.post('/v1/admin/locks/break', { resource: 'v/form' }))).toBe('400 invalid_request');
    for (const more of [{ reason: '' }, { grace_ms: -1 }, { grace_ms: 3_600_001 }, { grace_ms: '5' }, { resource: 'nowhere/x' }]) {
      expect(['400 invalid_request', '404 volume_not_found']).toContain(verdictOf(await locks.break('v/form', more)));
    }
    expect(await locks.lock('v/form')).toMatchObject({ holders: [{}] });
  });
});
