import { afterAll, beforeAll, expect, it } from 'vitest';
import { FencegateClient, type WatchEvent } from '../../src/client/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { removeDirectory } from '../support/gateway-settings.ts';
import { TestProxy } from '../support/proxy.ts';
import { until } from '../support/until.ts';

let gateway: TestGateway;
let proxy: TestProxy;
let writer: FencegateClient;
let watcher: FencegateClient;

beforeAll(async () => {
  gateway = await startGateway();
  proxy = await TestProxy.to(gateway.port);
  writer = new FencegateClient({ url: gateway.url, clientId: 'writer' });
  watcher = new FencegateClient({ url: proxy.url });
});

afterAll(async () => {
  await writer.close();
  await watcher.close();
  await proxy.close();
  await gateway.stop();
  await removeDirectory(gateway.directory);
});

/** What a watch has seen, as it comes. */
function following(events: AsyncIterable<WatchEvent>): { readonly seen: WatchEvent[]; readonly ended: Promise<unknown> } {
  const seen: WatchEvent[] = [];
  const follow = async (): Promise<unknown> => {
    try {
      for await (const event of events) seen.push(event);
      return 'ended';
    } catch (thrown) {
      return thrown;
    }
  };
  return { seen, ended: follow() };
}

async function leased(resource: string): Promise<string> {
  const lease = await writer.lease(resource);
  await lease.release();
  return lease.token;
}

/** Events come only from the moment on when the gateway has the stream: the first ones are made until one is seen. */
async function warm(resource: string, seen: readonly WatchEvent[]): Promise<void> {
  await until(async () => {
    await leased(resource);
    return seen.length > 0 ? true : null;
  });
  await until(() => (seen.at(-1)?.type === 'released' ? true : null));
}

it('R19: a watch goes on where it was cut, without a gap and without an event twice', async () => {
  const stop = new AbortController();
  const { seen, ended } = following(watcher.watch({ resource: 'v/a' }, { signal: stop.signal }));
  await warm('v/a', seen);
  const from = seen.length;
  const tokens: string[] = [];
  for (let round = 0; round < 3; round += 1) {
    proxy.cutOnce();
    tokens.push(await leased('v/a'));
  }
  await until(() => (seen.filter(({ type }) => type === 'released').length >= from / 2 + tokens.length ? true : null));
  const granted = seen.slice(from).filter((event) => event.type === 'granted');
  expect(granted.map((event) => ('fencing_token' in event ? event.fencing_token : null))).toEqual(tokens);
  const numbers = seen.map(({ seq }) => seq);
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
  expect(Object.keys(seen.at(-1) ?? {}).sort()).toEqual(
    ['seq', 'at', 'resource', 'lease_ref', 'client_id', 'mode', 'fencing_token', 'reason', 'cycle', 'type'].sort(),
  );
  stop.abort(new Error('enough'));
  expect(await ended).toMatchObject({ message: 'enough' });
});

it('a watch that cannot go on begins with the present state', async () => {
  const lease = await writer.lease('v/reset');
  for await (const event of watcher.watch({ volume: 'v', pathPrefix: 'res' }, { afterSeq: 1 })) {
    expect(event).toMatchObject({ type: 'reset', locks: [{ resource: 'v/reset', holders: [{ client_id: 'writer' }] }] });
    break;
  }
  await lease.release();
});

it('a watch of the own session tells what becomes of its leases', async () => {
  expect(() => new FencegateClient({ url: gateway.url }).watch({ session: true })).toThrow('no session');
  const own = new FencegateClient({ url: gateway.url });
  const lease = await own.lease('v/own');
  const { seen, ended } = following(own.watch({ session: true }));
  await until(async () => {
    await (await own.lease('v/other')).release();
    return seen.length > 0 ? true : null;
  });
  await writer.breakLock('v/own', { reason: 'test' });
  await until(() => seen.find(({ type }) => type === 'broken') ?? null);
  expect(lease.state === 'held' || lease.state === 'lost').toBe(true);
  await own.close();
  proxy.cutOnce();
  void ended;
});

it('what the gateway refuses for good ends a watch', async () => {
  const { ended } = following(watcher.watch({ resource: 'nosuch/a' }));
  expect(await ended).toMatchObject({ code: 'volume_not_found' });
});

it('a watch goes on over a restart of the gateway, and misses nothing of what comes after', async () => {
  const own = await startGateway();
  const [one, two] = [new FencegateClient({ url: own.url }), new FencegateClient({ url: own.url })];
  const stop = new AbortController();
  const { seen, ended } = following(one.watch({ resource: 'v/restarted' }, { signal: stop.signal }));
  const grant = async (): Promise<string> => two.withLease('v/restarted', {}, ({ token }) => token);
  await until(async () => {
    await grant();
    return seen.length > 0 ? true : null;
  });
  await own.stop();
  const next = await startGateway({ directory: own.directory, environment: { FENCEGATE_PORT: String(own.port) } });
  const first = await grant();
  // In the events, or in the state that comes in their place when they are gone.
  await until(() => seen.find((event) => ('fencing_token' in event ? event.fencing_token === first : event.locks.length >= 0)) ?? null);
  await until(() => (seen.at(-1)?.type === 'reset' || seen.at(-1)?.type === 'released' ? true : null));
  const second = await grant();
  await until(() => seen.find((event) => 'fencing_token' in event && event.type === 'granted' && event.fencing_token === second) ?? null);
  const numbers = seen.flatMap((event) => (event.type === 'reset' ? [] : [event.seq]));
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
  stop.abort(new Error('enough'));
  expect(await ended).toMatchObject({ message: 'enough' });
  await one.close();
  await two.close();
  await next.stop();
  await removeDirectory(own.directory);
});
