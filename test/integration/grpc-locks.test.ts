import { once, setMaxListeners } from 'node:events';
import type { ServiceError } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KeepAliveResponse, RecordLockResponse, WireEvent } from '../../src/grpc/messages.ts';
import { detailsOf, type GrpcLockClient, refusal, refusalOf } from '../support/grpc-client.ts';
import { type GrpcGateway, startGrpc } from '../support/grpc-gateway.ts';
import { until } from '../support/until.ts';

/** The contract of `fencegate.v1.LockService`, by a client made from the shipped file, against a gateway process. */

let gateway: GrpcGateway;
let client: GrpcLockClient;
let names = 0;
const fresh = (): string => {
  names += 1;
  return `v/file-${names}`;
};

beforeAll(async () => {
  gateway = await startGrpc();
  client = gateway.client();
});
afterAll(() => gateway.stop());

const queued = (path: string, length: number): Promise<true> =>
  until(async () => ((await client.lock(path)).queue_length === length ? (true as const) : null));

const breakLock = (resource: string): Promise<unknown> =>
  fetch(`${gateway.process.url}/v1/admin/locks/break`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ resource, reason: 'test', grace_ms: 0 }),
  });

describe('AcquireLock', () => {
  it('is granted at once when nobody holds: token, node, time, ids', async () => {
    const before = Date.now();
    const held = await client.acquire({ resource_path: 'v/ledger/q3.csv', client_id: 'batch', session_timeout_ms: 20_000 });
    expect(held).toMatchObject({ acquired: true, state: 'LEASE_STATE_HELD', queue_position: 0, reason: '', hold_count: 1, signed_token: '' });
    expect(held.acquired_znode_path).toMatch(/^\/locks\/v\/ledger%2Fq3\.csv\/_c_/);
    expect(BigInt(held.fencing_token)).toBeGreaterThan(0n);
    expect(Number(held.expires_in_ms)).toBeGreaterThan(0);
    expect(Number(held.expires_in_ms)).toBeLessThanOrEqual(20_000);
    expect(Number(held.lease_expires_at)).toBeGreaterThan(before);
    expect(held.lease_id).not.toBe('');
    expect(held.session_id).not.toBe('');
    await client.release({ lease_id: held.lease_id });
  });

  it('its token is the one that HTTP writes are checked by', async () => {
    const path = fresh();
    const held = await client.acquire({ resource_path: path });
    const put = (token: string) =>
      fetch(`${gateway.process.url}/v1/files/${path}`, { method: 'PUT', body: 'x', headers: { 'x-fencing-token': token } });
    expect((await put(held.fencing_token)).status).toBe(201);
    await client.release({ lease_id: held.lease_id });
    const next = await client.acquire({ resource_path: path });
    expect(BigInt(next.fencing_token)).toBeGreaterThan(BigInt(held.fencing_token));
    expect((await put(held.fencing_token)).status).toBe(412);
    await client.release({ lease_id: next.lease_id });
  });

  it('a name under /locks is the same resource', async () => {
    const path = fresh();
    const held = await client.acquire({ resource_path: `/locks/${path}` });
    expect((await client.lock(path)).holders).toHaveLength(1);
    expect((await client.acquire({ resource_path: path })).acquired).toBe(false);
    await client.release({ lease_id: held.lease_id });
  });

  it('a try that fails is no error: acquired is false, token 0, path empty, and a reason', async () => {
    const path = fresh();
    const held = await client.acquire({ resource_path: path });
    expect(await client.acquire({ resource_path: path })).toEqual({
      acquired: false,
      acquired_znode_path: '',
      fencing_token: '0',
      lease_expires_at: '0',
      lease_id: '',
      session_id: '',
      state: 'LEASE_STATE_UNSPECIFIED',
      queue_position: 0,
      signed_token: '',
      reason: 'lock_not_acquired',
      hold_count: 0,
      expires_in_ms: '0',
      hold_expires_in_ms: '0',
    });
    await client.release({ lease_id: held.lease_id });
  });

  it('waits in line, first in first out, and longer than a time to live', async () => {
    const path = fresh();
    const held = await client.acquire({ resource_path: path });
    const order: string[] = [];
    const wait = async (name: string): Promise<RecordLockResponse> => {
      const mine = await client.acquire(
        { resource_path: path, client_id: name, wait_blocking: true, session_timeout_ms: 1_000 },
        { deadlineMs: 50_000 },
      );
      order.push(name);
      await client.release({ lease_id: mine.lease_id });
      return mine;
    };
    const first = wait('first');
    await queued(path, 1);
    const second = wait('second');
    await queued(path, 2);
    // The stream is what keeps the places: three times to live pass, by the gateway's own clock.
    const { waiters } = await client.lock(path);
    const since = Number(waiters[0]?.since);
    await until(async () => {
      await client.renew({ lease_id: held.lease_id });
      return Date.now() - since > 3_000 ? true : null;
    });
    expect((await client.lock(path)).queue_length).toBe(2);
    await client.release({ lease_id: held.lease_id });
    const [one, two] = await Promise.all([first, second]);
    expect(order).toEqual(['first', 'second']);
    expect(BigInt(two.fencing_token)).toBeGreaterThan(BigInt(one.fencing_token));
  });

  it('GetLock says what a holder that came over HTTP is for', async () => {
    const path = fresh();
    await fetch(`${gateway.process.url}/v1/leases`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ resource: path, metadata: { reason: 'nightly' } }),
    });
    expect((await client.lock(path)).holders).toMatchObject([{ reason: 'nightly' }]);
    await breakLock(path);
  });

  it('GetLock says what HTTP says of the lock: times to live, lock-delay, what holds it back, how it is fenced', async () => {
    const path = fresh();
    const held = await client.acquire({ resource_path: path, session_timeout_ms: 60_000, lock_delay_ms: 600_000 });
    const free = { held_back_ms: '0', foreign_contenders: [], fence_level: 'FENCE_LEVEL_INCARNATION' };
    expect(await client.lock(path)).toMatchObject({ ...free, holders: [{ ttl_ms: '60000', lock_delay_ms: '600000' }] });
    await breakLock(path);
    const { held_back_ms: left, holders } = await client.lock(path);
    expect(holders).toEqual([]);
    expect(Number(left)).toBeGreaterThan(500_000);
    expect(held.acquired).toBe(true);
  });

  it('wait_limit_ms ends the wait as not acquired', async () => {
    const path = fresh();
    const held = await client.acquire({ resource_path: path });
    expect(await client.acquire({ resource_path: path, wait_blocking: true, wait_limit_ms: 100 })).toMatchObject({
      acquired: false,
      fencing_token: '0',
      state: 'LEASE_STATE_CANCELLED',
      reason: 'max_wait',
    });
    expect((await client.acquire({ resource_path: path, wait_blocking: true, wait_limit_ms: 0 })).acquired).toBe(false);
    expect((await client.lock(path)).queue_length).toBe(0);
    await client.release({ lease_id: held.lease_id });
  });

  it('cancelling a waiting call leaves the line at once, whenever it comes', async () => {
    const path = fresh();
    const held = await client.acquire({ resource_path: path });
    for (const polls of [0, 1]) {
      const gone = new AbortController();
      const call = client.acquire(
        { resource_path: path, wait_blocking: true, session_timeout_ms: 1_000 },
        { deadlineMs: 50_000, signal: gone.signal },
      );
      const cancelled = refusal(call);
      await queued(path, 1);
      // A second poll shows as a time to live that was started again.
      let least = Number.POSITIVE_INFINITY;
      await until(async () => {
        const left = Number((await client.lock(path)).waiters[0]?.expires_in_ms);
        if (polls === 0 || left > least + 100) return true;
        least = Math.min(least, left);
        return null;
      });
      gone.abort();
      expect(await cancelled).toBe('CANCELLED -');
      await queued(path, 0);
    }
    expect((await client.lock(path)).holders).toHaveLength(1);
    await client.release({ lease_id: held.lease_id });
    const next = await client.acquire({ resource_path: path });
    expect(next.acquired).toBe(true);
    await client.release({ lease_id: next.lease_id });
  });

  it('two waiting calls of one session leave one by one, and either may still be served', async () => {
    const path = fresh();
    const held = await client.acquire({ resource_path: path });
    // A lease elsewhere, for a session that both calls name.
    const { session_id, lease_id: elsewhere } = await client.acquire({ resource_path: fresh(), session_timeout_ms: 600_000 });
    const gone = new AbortController();
    const ask = { resource_path: path, session_id, wait_blocking: true, session_timeout_ms: 600_000 };
    const first = refusal(client.acquire({ ...ask, hold_id: 'one' }, { deadlineMs: 50_000, signal: gone.signal }));
    await queued(path, 1);
    const second = client.acquire({ ...ask, hold_id: 'two' }, { deadlineMs: 50_000 });
    const repeated = new AbortController();
    const third = refusal(client.acquire({ ...ask, hold_id: 'two' }, { deadlineMs: 50_000, signal: repeated.signal }));
    // Answered after both, and on the same connection: so they have come.
    expect((await client.acquire({ ...ask, wait_limit_ms: 1 })).reason).toBe('max_wait');
    gone.abort();
    repeated.abort();
    expect([await first, await third]).toEqual(['CANCELLED -', 'CANCELLED -']);
    await client.lock(path);
    expect((await client.lock(path)).queue_length).toBe(1);
    await client.release({ lease_id: held.lease_id });
    const mine = await second;
    expect(mine).toMatchObject({ acquired: true, hold_count: 1 });
    expect(await client.release({ lease_id: mine.lease_id, hold_id: 'two' })).toEqual({ released: true });
    await client.release({ lease_id: elsewhere });
  });

  it('waits for the other readers when the session already reads', async () => {
    const path = fresh();
    const mine = await client.acquire({ resource_path: path, mode: 'LOCK_MODE_SHARED' });
    const other = await client.acquire({ resource_path: path, mode: 'LOCK_MODE_SHARED' });
    const ask = { resource_path: path, session_id: mine.session_id, session_timeout_ms: 1_000, wait_blocking: true };
    expect(await client.acquire({ ...ask, wait_limit_ms: 100 })).toMatchObject({ acquired: false });
    const writer = client.acquire({ ...ask, wait_limit_ms: 30_000 });
    const waitedMs = performance.now();
    // Longer than a third of its time to live.
    while (performance.now() - waitedMs < 600) await client.renew({ lease_id: mine.lease_id });
    await client.release({ lease_id: other.lease_id });
    expect(await writer).toMatchObject({ acquired: true, lease_id: mine.lease_id });
    await client.release({ lease_id: mine.lease_id, all: true });
  });

  it('the deadline of the call ends a wait, and nobody is left in line', async () => {
    const path = fresh();
    const held = await client.acquire({ resource_path: path });
    expect(await refusal(client.acquire({ resource_path: path, wait_blocking: true }, { deadlineMs: 300 }))).toBe('DEADLINE_EXCEEDED -');
    await queued(path, 0);
    await client.release({ lease_id: held.lease_id });
  });

  it('is re-entrant within a session: same lease, same token, one hold per hold_id', async () => {
    const path = fresh();
    const held = await client.acquire({ resource_path: path, hold_id: 'one' });
    const ask = { resource_path: path, session_id: held.session_id };
    const again = await client.acquire({ ...ask, hold_id: 'two' });
    expect(again).toMatchObject({ acquired: true, lease_id: held.lease_id, fencing_token: held.fencing_token, hold_count: 2 });
    expect((await client.acquire({ ...ask, hold_id: 'two' })).hold_count).toBe(2);
    expect(await client.release({ lease_id: held.lease_id, hold_id: 'two' })).toEqual({ released: false });
    expect(await client.release({ lease_id: held.lease_id, hold_id: 'two' })).toEqual({ released: false });
    expect(await client.release({ lease_id: held.lease_id, hold_id: 'one' })).toEqual({ released: true });
  });

  it('shared leases come in together, and keep an exclusive one out', async () => {
    const path = fresh();
    const readers = await Promise.all(['a', 'b'].map((id) => client.acquire({ resource_path: path, mode: 'LOCK_MODE_SHARED', client_id: id })));
    expect(readers.map(({ acquired }) => acquired)).toEqual([true, true]);
    expect((await client.lock(path)).mode).toBe('LOCK_MODE_SHARED');
    expect((await client.acquire({ resource_path: path })).acquired).toBe(false);
    for (const { lease_id } of readers) await client.release({ lease_id });
  });

  it('priority 0 is a priority, not the default', async () => {
    const path = fresh();
    const held = await client.acquire({ resource_path: path, priority: 0 });
    expect((await client.lock(path)).holders[0]).toMatchObject({ priority: 0, client_id: '' });
    await client.release({ lease_id: held.lease_id });
  });

  it('max_hold_ms ends a lease however it is renewed', async () => {
    const path = fresh();
    expect((await client.acquire({ resource_path: fresh() })).hold_expires_in_ms).toBe('0');
    const held = await client.acquire({ resource_path: path, max_hold_ms: 1_000 });
    expect(Number(held.expires_in_ms)).toBeLessThanOrEqual(1_000);
    expect(Number(held.hold_expires_in_ms)).toBeGreaterThan(0);
    expect(Number(held.hold_expires_in_ms)).toBeLessThanOrEqual(1_000);
    expect(
      await until(async () => refusal(client.renew({ lease_id: held.lease_id })).then((told) => (told.startsWith('answered') ? null : told))),
    ).toBe('FAILED_PRECONDITION lease_not_held');
  });

  it('1,000 wait at the same time, on one connection, and are served in order', async () => {
    const path = 'jobs/rush';
    const held = await client.acquire({ resource_path: path, session_timeout_ms: 600_000 });
    const places: number[] = [];
    const tokens: bigint[] = [];
    const waiting = Array.from({ length: 1_000 }, async (_, index) => {
      const mine = await client.acquire(
        { resource_path: path, wait_blocking: true, session_timeout_ms: 600_000, client_id: String(index) },
        { deadlineMs: 600_000 },
      );
      places.push(index);
      tokens.push(BigInt(mine.fencing_token));
      await client.release({ lease_id: mine.lease_id });
    });
    await queued(path, 1_000);
    expect(await refusal(client.acquire({ resource_path: path, wait_blocking: true }))).toBe('RESOURCE_EXHAUSTED queue_full');
    await client.release({ lease_id: held.lease_id });
    await Promise.all(waiting);
    expect(places).toEqual(Array.from({ length: 1_000 }, (_, index) => index));
    expect(tokens).toEqual([...tokens].sort((a, b) => (a < b ? -1 : 1)));
  }, 600_000);

  it('1,000 that wait and are cancelled at once leave nobody in line', async () => {
    const path = 'jobs/given-up';
    const held = await client.acquire({ resource_path: path, session_timeout_ms: 600_000 });
    // On a connection of its own: after so many resets Node closes it.
    const crowd = gateway.client();
    const gone = new AbortController();
    setMaxListeners(0, gone.signal);
    const waiting = Array.from({ length: 1_000 }, () =>
      refusal(crowd.acquire({ resource_path: path, wait_blocking: true, session_timeout_ms: 600_000 }, { signal: gone.signal, deadlineMs: 600_000 })),
    );
    await queued(path, 1_000);
    gone.abort();
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(['CANCELLED -']));
    await queued(path, 0);
    await client.release({ lease_id: held.lease_id });
  }, 600_000);

  it('a wait that ends in a circle is ABORTED', async () => {
    const [a, b] = [fresh(), fresh()];
    const one = await client.acquire({ resource_path: a });
    const two = await client.acquire({ resource_path: b });
    const waits = [
      client.acquire({ resource_path: b, session_id: one.session_id, wait_blocking: true }, { deadlineMs: 50_000 }),
      client.acquire({ resource_path: a, session_id: two.session_id, wait_blocking: true }, { deadlineMs: 50_000 }),
    ];
    expect(await refusal(Promise.race(waits))).toBe('ABORTED deadlock');
    await client.release({ lease_id: one.lease_id });
    await client.release({ lease_id: two.lease_id });
    await Promise.allSettled(waits);
  });
});

describe('RenewLock and ReleaseLock', () => {
  it('renew starts the time again, for the time to live that it has or another within the bounds', async () => {
    const held = await client.acquire({ resource_path: fresh(), session_timeout_ms: 20_000 });
    expect(await client.renew({ lease_id: held.lease_id })).toMatchObject({ acquired: true, fencing_token: held.fencing_token });
    expect((await client.renew({ lease_id: held.lease_id, ttl_ms: 20_000 })).acquired).toBe(true);
    const longer = await client.renew({ lease_id: held.lease_id, ttl_ms: 600_000 });
    expect([longer.fencing_token, Number(longer.expires_in_ms) > 500_000]).toEqual([held.fencing_token, true]);
    expect(Number((await client.renew({ lease_id: held.lease_id })).expires_in_ms)).toBeGreaterThan(500_000);
    for (const ttl_ms of [5, -1, '9223372036854775807'])
      expect(await refusal(client.renew({ lease_id: held.lease_id, ttl_ms }))).toBe('INVALID_ARGUMENT ttl_out_of_range');
    await client.release({ lease_id: held.lease_id });
    expect(await refusal(client.renew({ lease_id: held.lease_id }))).toBe('FAILED_PRECONDITION lease_not_held');
    expect(await refusal(client.renew({ lease_id: held.lease_id, ttl_ms: 30_000 }))).toBe('FAILED_PRECONDITION lease_not_held');
  });

  it('release may be repeated, and never frees the next holder', async () => {
    const path = fresh();
    const held = await client.acquire({ resource_path: path });
    expect(await client.release({ lease_id: held.lease_id })).toEqual({ released: true });
    const next = await client.acquire({ resource_path: path });
    expect(await client.release({ lease_id: held.lease_id })).toEqual({ released: true });
    expect(await client.release({ resource_path: path, fencing_token: held.fencing_token as unknown as number })).toEqual({ released: true });
    expect((await client.lock(path)).holders).toHaveLength(1);
    expect(await client.release({ resource_path: `/locks/${path}`, fencing_token: next.fencing_token, all: true })).toEqual({ released: true });
    expect((await client.lock(path)).holders).toEqual([]);
  });

  it('a release by a token that is on another resource is refused', async () => {
    const [path, other] = [fresh(), fresh()];
    const held = await client.acquire({ resource_path: path });
    expect(await refusal(client.release({ resource_path: other, fencing_token: held.fencing_token }))).toBe('NOT_FOUND lease_not_found');
    await client.release({ lease_id: held.lease_id });
  });
});

describe('every refusal has its status and the code of HTTP', () => {
  const cases: readonly (readonly [string, () => Promise<unknown>])[] = [
    ['INVALID_ARGUMENT invalid_path', () => client.acquire({ resource_path: 'v/../etc' })],
    ['INVALID_ARGUMENT invalid_path', () => client.acquire({ resource_path: '' })],
    ['INVALID_ARGUMENT invalid_path', () => client.acquire({ resource_path: 'v/.fencegate/owner' })],
    ['NOT_FOUND not_found', () => client.lock('v/.fencegate/owner')],
    ['NOT_FOUND volume_not_found', () => client.acquire({ resource_path: 'nowhere/a' })],
    ['INVALID_ARGUMENT ttl_out_of_range', () => client.acquire({ resource_path: 'v/a', session_timeout_ms: 5 })],
    ['INVALID_ARGUMENT ttl_out_of_range', () => client.acquire({ resource_path: 'v/a', session_timeout_ms: '9223372036854775807' })],
    ['INVALID_ARGUMENT ttl_out_of_range', () => client.acquire({ resource_path: 'v/a', session_timeout_ms: -1 })],
    ['INVALID_ARGUMENT invalid_request', () => client.acquire({ resource_path: 'v/a', priority: 10 })],
    ['INVALID_ARGUMENT invalid_request', () => client.acquire({ resource_path: 'v/a', wait_blocking: true, wait_limit_ms: -1 })],
    ['INVALID_ARGUMENT invalid_request', () => client.acquire({ resource_path: 'v/a', mode: 7 as never })],
    ['INVALID_ARGUMENT invalid_request', () => client.acquire({ resource_path: 'v/a', client_id: 'two\nlines' })],
    ['INVALID_ARGUMENT invalid_request', () => client.acquire({ resource_path: 'v/a', lock_delay_ms: '9223372036854775807' })],
    ['NOT_FOUND session_not_found', () => client.acquire({ resource_path: 'v/a', session_id: 'nobody' })],
    ['NOT_FOUND lease_not_found', () => client.renew({ lease_id: 'nothing' })],
    ['NOT_FOUND lease_not_found', () => client.release({ lease_id: 'nothing' })],
    ['INVALID_ARGUMENT invalid_request', () => client.release({})],
    ['INVALID_ARGUMENT invalid_request', () => client.renew({})],
    ['INVALID_ARGUMENT invalid_token', () => client.release({ resource_path: 'v/a' })],
    ['INVALID_ARGUMENT invalid_token', () => client.release({ resource_path: 'v/a', fencing_token: -4 })],
    ['INVALID_ARGUMENT invalid_request', () => once(client.watch({ resource_path: 'v/a', from_seq: -1 }), 'data')],
    ['INVALID_ARGUMENT invalid_path', () => once(client.watch({ resource_path: 'v//' }), 'data')],
  ];
  it.each(cases)('%s', async (expected, act) => {
    expect(await refusal(act())).toBe(expected);
  });

  it('with the members of the problem document, the request id, and when to come again', async () => {
    const thrown = await client
      .acquire({ resource_path: 'v/a', session_timeout_ms: 5 }, { metadata: { 'x-request-id': 'mine-1' } })
      .catch((error: ServiceError) => error);
    expect(refusalOf(thrown)).toBe('INVALID_ARGUMENT ttl_out_of_range');
    expect(detailsOf(thrown)).toEqual([
      {
        type: 'google.rpc.ErrorInfo',
        message: { reason: 'ttl_out_of_range', domain: 'fencegate', metadata: { min_ms: '1000', max_ms: '3600000', request_id: 'mine-1' } },
      },
    ]);
    expect((thrown as ServiceError).metadata.get('x-request-id')).toEqual(['mine-1']);
  });

  it.each([
    [{ session_timeout_ms: 5 }, 'session_timeout_ms lies between 1000 and 3600000 here.'],
    [{ wait_blocking: true, wait_limit_ms: -1 }, 'wait_limit_ms lies between 0 and 9007199254740991.'],
    [{ wait_blocking: true, wait_limit_ms: '9223372036854775807' }, 'wait_limit_ms lies between 0 and 9007199254740991.'],
    [{ lock_delay_ms: -1 }, 'lock_delay_ms lies between 0 and 3600000.'],
    [{ max_hold_ms: 999 }, 'max_hold_ms lies between 1000 and 9007199254740991.'],
    [{ resource_path: `v/${'x/'.repeat(2_500)}x` }, 'The path is over 4096 bytes.'],
    [{ priority: 10 }, 'priority lies between 0 and 9.'],
  ])('names the fields of the message: %o', async (wrong, details) => {
    const thrown: unknown = await client.acquire({ resource_path: 'v/a', ...wrong }).catch((error: ServiceError) => error);
    expect(thrown).toMatchObject({ details });
  });

  it('a message that is too large is refused, and the gateway lives on', async () => {
    const large = client.acquire({ resource_path: `v/${'x'.repeat(600_000)}` });
    expect(await refusal(large)).toMatch(/^RESOURCE_EXHAUSTED/);
    expect((await client.lock('v/a')).queue_length).toBe(0);
  });
});

describe('WatchLock', () => {
  it('tells what happens, in order, and resumes after the last seq that was seen', async () => {
    const path = fresh();
    const stream = client.watch({ resource_path: path });
    const seen: WireEvent[] = [];
    stream.on('data', (event: WireEvent) => seen.push(event)).on('error', () => undefined);
    await once(stream, 'metadata');
    const held = await client.acquire({ resource_path: path, client_id: 'c' });
    await client.release({ lease_id: held.lease_id });
    await until(() => (seen.some(({ type }) => type === 'RELEASED') ? true : null));
    expect(seen.map(({ type }) => type)).toEqual(['GRANTED', 'RELEASED']);
    expect(seen[0]).toMatchObject({ resource_path: path, client_id: 'c', mode: 'LOCK_MODE_EXCLUSIVE', fencing_token: held.fencing_token });
    stream.cancel();
    const again = client.watch({ resource_path: path, from_seq: seen[0]?.seq ?? '0' });
    again.on('error', () => undefined);
    const [event] = (await once(again, 'data')) as [WireEvent];
    expect(event).toEqual(seen[1]);
    again.cancel();
  });

  it('1,000 watches on one connection are all told', async () => {
    const path = fresh();
    const crowd = gateway.client();
    const streams = Array.from({ length: 1_000 }, () => crowd.watch({ resource_path: path }));
    for (const stream of streams) stream.on('error', () => undefined);
    await Promise.all(streams.map((stream) => once(stream, 'metadata')));
    const firsts = Promise.all(streams.map(async (stream) => ((await once(stream, 'data')) as [WireEvent])[0]));
    const held = await client.acquire({ resource_path: path });
    expect(new Set((await firsts).map(({ type, fencing_token: token }) => `${type} ${token}`))).toEqual(new Set([`GRANTED ${held.fencing_token}`]));
    for (const stream of streams) stream.cancel();
    await client.release({ lease_id: held.lease_id });
  }, 600_000);

  it('from a number that is not known the first event is the present state', async () => {
    const path = fresh();
    const held = await client.acquire({ resource_path: path, client_id: 'c' });
    const stream = client.watch({ resource_path: path, from_seq: '9007199254740991' });
    stream.on('error', () => undefined);
    const [event] = (await once(stream, 'data')) as [WireEvent];
    expect(event.type).toBe('RESET');
    expect(event.locks).toMatchObject([{ resource_path: path, holders: [{ client_id: 'c' }] }]);
    stream.cancel();
    await client.release({ lease_id: held.lease_id });
  });

  it('tells the waits of a deadlock', async () => {
    const [a, b] = [fresh(), fresh()];
    const seen: WireEvent[] = [];
    const streams = [a, b].map((path) => client.watch({ resource_path: path }));
    for (const stream of streams) stream.on('data', (event: WireEvent) => seen.push(event)).on('error', () => undefined);
    await Promise.all(streams.map((stream) => once(stream, 'metadata')));
    const one = await client.acquire({ resource_path: a });
    const two = await client.acquire({ resource_path: b });
    const waits = [
      client.acquire({ resource_path: b, client_id: 'one', session_id: one.session_id, wait_blocking: true }, { deadlineMs: 50_000 }),
      client.acquire({ resource_path: a, client_id: 'two', session_id: two.session_id, wait_blocking: true }, { deadlineMs: 50_000 }),
    ];
    await Promise.race(waits).catch(() => undefined);
    const told = await until(() => seen.find(({ type }) => type === 'DEADLOCK') ?? null);
    expect([...told.cycle].sort((x, y) => (x.client_id < y.client_id ? -1 : 1))).toEqual([
      { lease_ref: expect.any(String), client_id: 'one', waits_for: b },
      { lease_ref: expect.any(String), client_id: 'two', waits_for: a },
    ]);
    expect(seen.filter(({ type }) => type === 'GRANTED').every(({ cycle }) => cycle.length === 0)).toBe(true);
    await client.release({ lease_id: one.lease_id });
    await client.release({ lease_id: two.lease_id });
    await Promise.allSettled(waits);
    for (const stream of streams) stream.cancel();
  });

  it('R10: a holder that loses its lease is told, with the reason and its last token', async () => {
    const path = fresh();
    const stream = client.watch({ resource_path: path });
    const seen: WireEvent[] = [];
    stream.on('data', (event: WireEvent) => seen.push(event)).on('error', () => undefined);
    await once(stream, 'metadata');
    const held = await client.acquire({ resource_path: path, session_timeout_ms: 1_000 });
    await until(() => (seen.some(({ type }) => type === 'EXPIRED') ? true : null));
    expect(seen.at(-1)).toMatchObject({ fencing_token: held.fencing_token, reason: 'expired' });
    expect(await refusal(client.renew({ lease_id: held.lease_id }))).toBe('FAILED_PRECONDITION lease_not_held');
    stream.cancel();
  });
});

describe('KeepAlive', () => {
  const answers = async (stream: ReturnType<GrpcLockClient['keepAlive']>, ids: readonly string[]): Promise<KeepAliveResponse[]> => {
    const told: KeepAliveResponse[] = [];
    const done = new Promise<void>((resolve) => {
      const onData = (answer: KeepAliveResponse): void => {
        told.push(answer);
        if (told.length < ids.length) return;
        stream.off('data', onData);
        resolve();
      };
      stream.on('data', onData);
    });
    stream.write({ session_ids: ids });
    await done;
    return told;
  };
  const session = async (ttlMs: number): Promise<string> => {
    const answer = await fetch(`${gateway.process.url}/v1/sessions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ttl_ms: ttlMs }),
    });
    return ((await answer.json()) as { session_id: string }).session_id;
  };

  it('renews sessions with all their leases, one answer per id, dead ones among them', async () => {
    const id = await session(20_000);
    const path = fresh();
    await client.acquire({ resource_path: path, session_id: id });
    const stream = client.keepAlive();
    expect(await answers(stream, [id, 'nobody'])).toEqual([
      { session_id: id, expires_in_ms: '20000', lost_lease_ids: [], reason: '' },
      { session_id: 'nobody', expires_in_ms: '0', lost_lease_ids: [], reason: 'session_not_found' },
    ]);
    stream.end();
    await once(stream, 'end');
    // The end of the stream ended nothing.
    expect((await client.lock(path)).holders).toHaveLength(1);
  });

  it('names the leases that were lost', async () => {
    const id = await session(60_000);
    const path = fresh();
    const held = await client.acquire({ resource_path: path, session_id: id });
    await breakLock(path);
    const stream = client.keepAlive();
    expect(await answers(stream, [id])).toMatchObject([{ lost_lease_ids: [held.lease_id], reason: '' }]);
    stream.end();
    await once(stream, 'end');
  });

  it('keeps what is left in the session that a first lease made, and AcquireLock goes on in it; with the last lease it is over', async () => {
    const [first, second, third] = [fresh(), fresh(), fresh()];
    const made = await client.acquire({ resource_path: first, session_timeout_ms: 20_000 });
    const id = made.session_id;
    const left = await client.acquire({ resource_path: second, session_timeout_ms: 20_000, session_id: id });
    await client.release({ lease_id: made.lease_id });
    const stream = client.keepAlive();
    expect(await answers(stream, [id])).toEqual([{ session_id: id, expires_in_ms: '20000', lost_lease_ids: [], reason: '' }]);
    const last = await client.acquire({ resource_path: third, session_id: id });
    expect(last).toMatchObject({ acquired: true, session_id: id });
    for (const { lease_id } of [left, last]) await client.release({ lease_id });
    expect(await answers(stream, [id])).toMatchObject([{ reason: 'session_not_found' }]);
    stream.end();
    await once(stream, 'end');
  });

  it('a batch without ids ends the stream with INVALID_ARGUMENT', async () => {
    const stream = client.keepAlive();
    stream.write({ session_ids: [] });
    expect(await refusal(once(stream, 'data'))).toBe('INVALID_ARGUMENT invalid_request');
  });
});
