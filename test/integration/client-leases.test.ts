import { describe, expect, it } from 'vitest';
import { type ClientEvent, FencegateClient, type LeaseHandle } from '../../src/client/index.ts';
import { unheldFetch } from '../../src/client/own-fetch.ts';
import { clientSuite, codeOf } from '../support/client-suite.ts';
import { startGateway } from '../support/gateway.ts';
import { removeDirectory } from '../support/gateway-settings.ts';
import { TestProxy } from '../support/proxy.ts';
import { until } from '../support/until.ts';

const lab = clientSuite({ yaml: 'volumes: { v: { path: "{dir}/v" }, brief: { path: null, lease: { max_hold_ms: 2500 } } }' });
const { client } = lab;

/** Resolves when somebody stands in line. */
async function waiting(resource: string, count = 1): Promise<void> {
  await until(async () => ((await client().lock(resource)).queue_length >= count ? true : null));
}

async function aborted(signal: AbortSignal): Promise<unknown> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  return signal.reason;
}

describe('a lease of the client', () => {
  it('carries its token with every write', async () => {
    const lease = await client({ clientId: 'writer' }).lease('v/a.csv');
    const written = await lease.put('v/a.csv', 'one\n');
    expect(written).toMatchObject({ resource: 'v/a.csv', size_bytes: 4, fencing_token: lease.token, lease_ref: lease.leaseRef });
    expect(await client().lock('v/a.csv')).toMatchObject({ mode: 'exclusive', high_water_mark: lease.token, holders: [{ client_id: 'writer' }] });
    await lease.release();
    expect((await client().lock('v/a.csv')).holders).toEqual([]);
  });

  it('is refused locally once it is released', async () => {
    const lease = await client().lease('v/released.csv');
    await lease.release();
    await lease.release();
    expect(lease.state).toBe('released');
    expect(lease.signal.aborted).toBe(false);
    expect(await codeOf(lease.put('v/released.csv', 'x'))).toBe('lease_released');
  });

  it('is tried once with waitMs 0, and not waited for', async () => {
    const holder = await client({ clientId: 'holder' }).lease('v/try.csv');
    const other = client();
    await expect(other.lease('v/try.csv', { waitMs: 0 })).rejects.toMatchObject({
      code: 'lock_not_acquired',
      status: 409,
      members: { holder_client_id: 'holder' },
    });
    expect(await codeOf(other.lease('v/try.csv', { waitMs: 400 }))).toBe('lock_not_acquired');
    await holder.release();
    await (await other.lease('v/try.csv', { waitMs: 0 })).release();
  });

  it('goes to whoever waits, in turn', async () => {
    const first = await client().lease('v/turn.csv');
    const order: string[] = [];
    const second = client()
      .lease('v/turn.csv')
      .then((lease) => {
        order.push('second');
        return lease;
      });
    await waiting('v/turn.csv');
    const third = client()
      .lease('v/turn.csv')
      .then((lease) => {
        order.push('third');
        return lease;
      });
    await waiting('v/turn.csv', 2);
    await first.release();
    await (await second).release();
    await (await third).release();
    expect(order).toEqual(['second', 'third']);
  });

  it('keeps its place in line while its connections are cut', async () => {
    const first = await client().lease('v/cut.csv');
    let polls = 0;
    const counting: typeof fetch = (input, init) => {
      if (init?.method === 'GET') polls += 1;
      return fetch(input, init);
    };
    const waiter = client({ url: lab.proxy.url, fetch: counting }).lease('v/cut.csv');
    await until(() => (polls > 0 ? true : null));
    const before = (await client().lock('v/cut.csv')).waiters[0]?.lease_ref;
    const later = client().lease('v/cut.csv');
    await waiting('v/cut.csv', 2);
    lab.proxy.cutOnce();
    await until(() => (polls > 1 ? true : null));
    lab.proxy.cutOnce();
    await first.release();
    const lease = await waiter;
    expect(lease.leaseRef).toBe(before);
    await lease.release();
    await (await later).release();
  });

  it('leaves the line when its signal aborts', async () => {
    const first = await client().lease('v/abort.csv');
    const controller = new AbortController();
    const waiter = client().lease('v/abort.csv', { signal: controller.signal });
    const outcome = expect(waiter).rejects.toThrow('no longer wanted');
    await waiting('v/abort.csv');
    controller.abort(new Error('no longer wanted'));
    await outcome;
    await until(async () => ((await client().lock('v/abort.csv')).queue_length === 0 ? true : null));
    await first.release();
  });

  it('R21: three first leases at once, before there is a session: one session, one granted, two in line, and each release lets the next one in', async () => {
    const one = client({ clientId: 'r21' });
    const granted: LeaseHandle[] = [];
    const asked = [1, 2, 3].map(() => one.lease('v/r21.csv', { waitMs: 60_000 }).then((lease) => void granted.push(lease)));
    await Promise.race(asked);
    const sessions = (await (await fetch(`${lab.gateway.url}/v1/admin/sessions`)).json()) as { sessions: { client_id: string | null }[] };
    expect(sessions.sessions.filter(({ client_id: id }) => id === 'r21')).toHaveLength(1);
    for (let n = 1; n <= 3; n += 1) {
      await until(async () => (granted.length >= n ? true : null));
      expect(granted.map(({ state }) => state)).toEqual([...Array.from({ length: n - 1 }, () => 'released'), 'held']);
      expect((await client().lock('v/r21.csv')).holders).toMatchObject([{ lease_ref: granted[n - 1]?.leaseRef }]);
      // The one before is released once more: it is over, and nobody else's lease goes with it.
      await granted[n - 2]?.release();
      expect((await client().lock('v/r21.csv')).holders).toHaveLength(1);
      await granted[n - 1]?.release();
    }
    await Promise.all(asked);
    expect(new Set(granted.map(({ token }) => token)).size).toBe(3);
  });

  it('tasks that ask at the same moment share a session, and take turns', async () => {
    const one = client();
    const seen: string[] = [];
    const task = (name: string) =>
      one.withLease('v/tasks.csv', {}, async (lease) => {
        seen.push(`${name} in`);
        await lease.append('v/tasks.csv', `${name}\n`);
        seen.push(`${name} out`);
        return lease.token;
      });
    const tokens = await Promise.all([task('a'), task('b'), task('c')]);
    expect(seen).toEqual(['a in', 'a out', 'b in', 'b out', 'c in', 'c out']);
    expect(new Set(tokens).size).toBe(3);
    expect(await (await one.get('v/tasks.csv')).text()).toBe('a\nb\nc\n');
  });

  it('is entered again by the code that has it, with the same token, and released by the outermost', async () => {
    const one = client();
    await one.withLease('v/nested.csv', {}, async (outer) => {
      await one.withLease('v/nested.csv', { waitMs: 0 }, async (inner) => {
        expect(inner.token).toBe(outer.token);
        expect(inner.leaseRef).toBe(outer.leaseRef);
        await inner.put('v/nested.csv', 'inner');
      });
      expect(outer.state).toBe('held');
      expect((await client().lock('v/nested.csv')).holders).toHaveLength(1);
      await outer.append('v/nested.csv', ' outer');
      // A write of the client itself goes under the lease of the code around it.
      expect((await one.append('v/nested.csv', ' client')).fencing_token).toBe(outer.token);
    });
    expect((await client().lock('v/nested.csv')).holders).toEqual([]);
    expect(await (await one.get('v/nested.csv')).text()).toBe('inner outer client');
  });

  it('may be shared, and becomes exclusive with a new token when the other readers are gone', async () => {
    const [one, two] = [client(), client()];
    const reader = await one.lease('v/shared.csv', { mode: 'shared' });
    const other = await two.lease('v/shared.csv', { mode: 'shared', waitMs: 0 });
    expect(await codeOf(reader.put('v/shared.csv', 'x'))).toBe('lease_is_shared');
    expect(await codeOf(reader.convert('exclusive', { waitMs: 50 }))).toBe('lock_not_acquired');
    expect(reader.mode).toBe('shared');
    const before = reader.token;
    const converted = reader.convert('exclusive');
    await other.release();
    await converted;
    expect(reader.mode).toBe('exclusive');
    expect(BigInt(reader.token)).toBeGreaterThan(BigInt(before));
    await reader.put('v/shared.csv', 'exclusive now');
    await reader.convert('shared');
    expect(await codeOf(reader.put('v/shared.csv', 'x'))).toBe('lease_is_shared');
    await reader.release();
  });

  it('may be shared by tasks of one client, and an upgrade waits for the other task', async () => {
    const one = client();
    const [first, second] = await Promise.all([one.lease('v/both.csv', { mode: 'shared' }), one.lease('v/both.csv', { mode: 'shared' })]);
    expect(first.leaseRef).toBe(second.leaseRef);
    const converted = first.convert('exclusive');
    expect(await codeOf(second.convert('exclusive', { waitMs: 0 }))).toBe('upgrade_conflict');
    await second.release();
    await converted;
    expect(first.state).toBe('held');
    await first.put('v/both.csv', 'x');
    await first.release();
  });

  it('may be over several resources, with one token for all', async () => {
    await client().withLease(['v/x.csv', 'v/y.csv'], {}, async (lease) => {
      await lease.put('v/x.csv', 'x');
      await lease.put('v/y.csv', 'y');
      const moved = await lease.move('v/x.csv', 'v/y.csv', { overwrite: true });
      expect(moved.fencing_token).toBe(lease.token);
    });
    expect(await (await client().get('v/y.csv')).text()).toBe('x');
  });

  it('says which bounds a time to live has', async () => {
    await expect(client().lease('v/ttl.csv', { ttlMs: 10 })).rejects.toMatchObject({ code: 'ttl_out_of_range', members: { min_ms: 1_000 } });
    await expect(client({ sessionTtlMs: 5_000 }).lease('v/ttl.csv', { ttlMs: 6_000 })).rejects.toThrow(RangeError);
  });

  it('is over here before the longest hold of its volume ends it there, however well it is renewed', async () => {
    const one = client();
    const lease = await one.lease('brief/a', { ttlMs: 1_500 });
    await new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
    expect((await one.lock('brief/a')).holders).toHaveLength(1);
    expect(lease.signal.reason).toMatchObject({ code: 'lease_lost', members: { reason: 'max_hold', lost_by: 'clock' } });
  });

  it('tells the victim of a deadlock', async () => {
    const [one, two] = [client(), client()];
    const a = await one.lease('v/dead-a.csv', { priority: 9 });
    const b = await two.lease('v/dead-b.csv');
    const forward = one.lease('v/dead-b.csv', { priority: 9 });
    await waiting('v/dead-b.csv');
    expect(await codeOf(two.lease('v/dead-a.csv', { priority: 0 }))).toBe('deadlock');
    await b.release();
    await (await forward).release();
    await a.release();
  });
});

describe('a lease that ends without its holder', () => {
  it('R10: is reported with the reason when an administrator breaks it', async () => {
    const events: ClientEvent[] = [];
    const lease = await client({ onEvent: (event) => events.push(event) }).lease('v/broken.csv', { ttlMs: 1_000 });
    await client().breakLock('v/broken.csv', { reason: 'test' });
    expect(await aborted(lease.signal)).toMatchObject({ code: 'lease_lost', members: { reason: 'broken', fencing_token: lease.token } });
    expect(lease.state).toBe('lost');
    expect(await codeOf(lease.put('v/broken.csv', 'late'))).toBe('lease_lost');
    expect(events).toMatchObject([{ type: 'lease_lost', resources: ['v/broken.csv'] }]);
    await lease.release();
  });

  it('R10: is known to be over at once, long before a heartbeat is due', async () => {
    const lease = await client().lease('v/at-once.csv', { ttlMs: 3_600_000 });
    await client().breakLock('v/at-once.csv', { reason: 'test' });
    expect(await aborted(lease.signal)).toMatchObject({ code: 'lease_lost', members: { reason: 'broken' } });
  });

  it('costs nothing but early news when the stream that tells of it is cut', async () => {
    const events: ClientEvent[] = [];
    let streams = 0;
    const counting: typeof fetch = (input, init) => {
      if (!String(input).endsWith('/watch')) return fetch(input, init);
      return unheldFetch(input, init).finally(() => (streams += 1));
    };
    const own = client({ url: lab.proxy.url, fetch: counting, onEvent: (event) => events.push(event) });
    const lease = await own.lease('v/cut-stream.csv', { ttlMs: 3_600_000 });
    await until(() => (streams > 0 ? true : null));
    lab.proxy.cutOnce();
    await until(() => (streams > 1 ? true : null));
    await lease.put('v/cut-stream.csv', 'still held');
    await client().breakLock('v/cut-stream.csv', { reason: 'test' });
    expect(await aborted(lease.signal)).toMatchObject({ code: 'lease_lost', members: { reason: 'broken' } });
    expect(events.map(({ type }) => type)).not.toContain('watch_refused');
  });

  it('is over after the first write that is refused for it', async () => {
    // Without the stream, which may be quicker.
    const deaf: typeof fetch = (input, init) => (String(input).endsWith('/watch') ? new Promise(() => undefined) : fetch(input, init));
    const lease = await client({ fetch: deaf }).lease('v/refused.csv', { ttlMs: 60_000 });
    await client().breakLock('v/refused.csv', { reason: 'test' });
    expect(await codeOf(lease.put('v/refused.csv', 'late'))).toBe('stale_token');
    expect(lease.signal.aborted).toBe(true);
    expect(await codeOf(lease.put('v/refused.csv', 'later'))).toBe('lease_lost');
  });

  it('R22: is renewed again and again while the gateway is out of reach, then lost; and freed there when contact returns', async () => {
    const events: ClientEvent[] = [];
    const lease = await client({ url: lab.proxy.url, onEvent: (event) => events.push(event) }).lease('v/out.csv', { ttlMs: 2_000 });
    lab.proxy.cut();
    await until(() => (events.some(({ type }) => type === 'renew_failed') ? true : null));
    lab.proxy.mend();
    await until(async () => ((await client().lock('v/out.csv')).holders[0]?.expires_in_ms ?? 0) > 1_500 || null);
    expect(lease.state).toBe('held');
    await lease.put('v/out.csv', 'still here');
    lab.proxy.cut();
    expect(await aborted(lease.signal)).toMatchObject({ code: 'lease_lost', members: { reason: 'expired' } });
    // Early: the gateway may still keep it for the margin.
    expect(await codeOf(lease.put('v/out.csv', 'late'))).toBe('lease_lost');
    lab.proxy.mend();
    const next = await client().lease('v/out.csv');
    expect(BigInt(next.token)).toBeGreaterThan(BigInt(lease.token));
    await next.release();
  });

  it('R25: a process that stood still for twice the time to live finds it lost, writes nothing, and lives on', async () => {
    const one = client({ sessionTtlMs: 5_000 });
    const lease = await one.lease('v/still.csv', { ttlMs: 1_000 });
    await lease.put('v/still.csv', 'before');
    // The event loop stands still, and the gateway in this process with it: only the clock goes on.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000);
    expect(await codeOf(lease.put('v/still.csv', 'after'))).toBe('lease_lost');
    expect(lease.signal.reason).toMatchObject({ code: 'lease_lost' });
    expect(await (await one.get('v/still.csv')).text()).toBe('before');
    await expect(one.withLease('v/still.csv', {}, (again) => again.put('v/still.csv', 'again'))).resolves.toMatchObject({ size_bytes: 5 });
  });

  it('makes withLease reject, also when its work did not notice', async () => {
    const work = client().withLease('v/unnoticed.csv', { ttlMs: 1_000 }, async (lease) => {
      await client().breakLock('v/unnoticed.csv', { reason: 'test' });
      await aborted(lease.signal);
      return 'done';
    });
    expect(await codeOf(work)).toBe('lease_lost');
  });

  it('does not let a write of the client fall back to none', async () => {
    const one = client();
    const outcome = one.withLease('v/fallback.csv', { ttlMs: 1_000 }, async (lease) => {
      await client().breakLock('v/fallback.csv', { reason: 'test' });
      await aborted(lease.signal);
      await one.put('v/fallback.csv', 'unguarded');
    });
    expect(await codeOf(outcome)).toBe('lease_lost');
    expect(await codeOf(one.get('v/fallback.csv'))).toBe('not_found');
  });

  it('R30: is not brought back by a session that went on', async () => {
    const one = client({ url: lab.proxy.url });
    const lease = await one.lease('v/back.csv', { ttlMs: 1_000 });
    lab.proxy.cut();
    await aborted(lease.signal);
    const other = await client().lease('v/back.csv');
    await other.put('v/back.csv', 'foreign');
    lab.proxy.mend();
    const again: Promise<LeaseHandle> = one.lease('v/back.csv');
    await waiting('v/back.csv');
    expect(lease.state).toBe('lost');
    await other.release();
    await (await again).put('v/back.csv', 'anew');
  });

  it('survives a restart of the gateway, waiting, held, or about to be converted', async () => {
    const own = await startGateway();
    const link = await TestProxy.to(own.port);
    // Whoever is converted waits for neither of the two that wait for each other's file: that would be a deadlock.
    const clientOf = () => new FencegateClient({ url: link.url });
    const [one, two, three] = [clientOf(), clientOf(), clientOf()];
    const lease = await one.lease('v/restart.csv', { ttlMs: 20_000 });
    const waiter = two.lease('v/restart.csv', { ttlMs: 20_000 });
    const [reader, other] = [await three.lease('v/upgraded.csv', { mode: 'shared' }), await one.lease('v/upgraded.csv', { mode: 'shared' })];
    const converted = reader.convert('exclusive');
    for (const name of ['v/restart.csv', 'v/upgraded.csv']) await until(async () => ((await one.lock(name)).queue_length > 0 ? true : null));
    await own.stop();
    const next = await startGateway({ directory: own.directory, environment: { FENCEGATE_PORT: String(own.port) } });
    await lease.put('v/restart.csv', 'after the restart');
    await lease.release();
    await (await waiter).put('v/restart.csv', 'after the wait');
    await until(async () => ((await one.lock('v/upgraded.csv')).queue_length > 0 ? true : null));
    await other.release();
    await converted;
    await reader.put('v/upgraded.csv', 'after the conversion');
    for (const client of [one, two, three]) await client.close();
    await link.close();
    await next.stop();
    await removeDirectory(own.directory);
  });
});
