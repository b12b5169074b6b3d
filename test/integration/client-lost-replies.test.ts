import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FencegateClient, type LeaseHandle } from '../../src/client/index.ts';
import { GatewayProcess } from '../support/gateway-process.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { TestProxy } from '../support/proxy.ts';

/** The gateway did it, and the answer is lost on its way: the client asks again, with the same key or hold id, and it stays done once. */

let directory: string;
let gateway: GatewayProcess;
let proxy: TestProxy;
/** Through the proxy. */
let client: FencegateClient;
/** Beside it. */
let observer: FencegateClient;

beforeAll(async () => {
  directory = await newDirectory();
  gateway = await GatewayProcess.start(directory, { outlivesTest: true });
  proxy = await TestProxy.to(Number(new URL(gateway.url).port));
  client = new FencegateClient({ url: proxy.url, clientId: 'unlucky' });
  observer = new FencegateClient({ url: gateway.url });
});

afterAll(async () => {
  await client.close();
  await observer.close();
  await proxy.close();
  await gateway.stop();
  await removeDirectory(directory);
});

async function actionsOn(path: string): Promise<string[]> {
  const actions: string[] = [];
  for await (const { action, outcome } of observer.audit({ volume: 'v', path, order: 'asc' })) actions.push(`${action} ${outcome}`);
  return actions;
}

/** Runs `work` while the next answer is lost; resolves as `work` does. */
async function unlucky<T>(work: () => Promise<T>): Promise<T> {
  // With its session made, so that the next answer is the one to what the test asks.
  await client.withLease('v/warm', {}, () => undefined);
  proxy.loseReply();
  const before = proxy.lostReplies;
  const result = await work();
  expect(proxy.lostReplies).toBe(before + 1);
  return result;
}

describe('a write whose answer is lost', () => {
  const WRITES: readonly (readonly [string, string, (lease: LeaseHandle) => Promise<unknown>, string])[] = [
    ['put', 'put-1', (lease) => lease.put('v/put-1', 'new'), 'new'],
    ['append', 'append-1', (lease) => lease.append('v/append-1', '+'), 'old+'],
    ['patch', 'patch-1', (lease) => lease.writeRange('v/patch-1', 0, 'N'), 'Nld'],
  ];

  it.each(WRITES)('%s is done once under a lease', async (action, path, write, content) => {
    await observer.put(`v/${path}`, 'old');
    const lease = await client.lease(`v/${path}`);
    await unlucky(() => write(lease));
    await lease.release();
    expect(await (await observer.get(`v/${path}`)).text()).toBe(content);
    expect((await actionsOn(path)).filter((one) => one === `${action} committed`)).toHaveLength(action === 'put' ? 2 : 1);
  });

  it('a deletion, a move and a copy are done once, and answer as if nothing had been lost', async () => {
    for (const name of ['del-1', 'mv-1', 'cp-1']) await observer.put(`v/${name}`, 'x');
    expect((await unlucky(() => client.delete('v/del-1'))).operation_id).not.toBe('');
    expect(await unlucky(() => client.move('v/mv-1', 'v/mv-2'))).toMatchObject({ resource: 'v/mv-2', size_bytes: 1 });
    expect(await unlucky(() => client.copy('v/cp-1', 'v/cp-2'))).toMatchObject({ resource: 'v/cp-2', size_bytes: 1 });
    for (const [path, action] of [
      ['del-1', 'delete'],
      ['cp-2', 'copy'],
    ] as const)
      expect((await actionsOn(path)).filter((one) => one === `${action} committed`)).toHaveLength(1);
  });
});

describe('a lease whose answer is lost', () => {
  it('is granted once, with one hold, and one release ends it', async () => {
    const lease = await unlucky(() => client.lease('v/lease-1'));
    expect((await observer.lock('v/lease-1')).holders).toMatchObject([{ lease_ref: lease.leaseRef }]);
    expect((await actionsOn('lease-1')).filter((one) => one === 'lease_grant committed')).toHaveLength(1);
    await lease.release();
    expect((await observer.lock('v/lease-1')).holders).toEqual([]);
  });

  it('is converted once, and released once: the next holder keeps its own', async () => {
    const lease = await client.lease('v/lease-2', { mode: 'shared' });
    await unlucky(() => lease.convert('exclusive'));
    await lease.put('v/lease-2', 'x');
    await unlucky(() => lease.release());
    const next = await observer.lease('v/lease-2', { waitMs: 0 });
    expect((await observer.lock('v/lease-2')).holders).toMatchObject([{ lease_ref: next.leaseRef }]);
    await next.release();
  });

  it('that outlives the process is asked for once: nobody is told that somebody else holds it', async () => {
    await expect(unlucky(() => client.unattended.acquire('v/lease-3', { ttlMs: 60_000 }))).rejects.toMatchObject({ code: 'gateway_unreachable' });
    expect((await actionsOn('lease-3')).filter((one) => one.startsWith('lease_'))).toEqual(['lease_grant committed']);
  });

  it('that outlives the process is renewed and released as often as it takes', async () => {
    const { lease_id: id } = await client.unattended.acquire('v/lease-4', { ttlMs: 60_000 });
    expect((await unlucky(() => client.unattended.renew(id, { ttlMs: 120_000 }))).ttl_ms).toBe(120_000);
    await unlucky(() => client.unattended.release(id));
    expect((await observer.lock('v/lease-4')).holders).toEqual([]);
  });
});

describe('an order whose answer is lost', () => {
  it('is given again where it names whom it is of, and is nobody else’s break', async () => {
    const { leaseRef } = await observer.lease('v/order-2');
    const next = observer.lease('v/order-2', { waitMs: 10_000 });
    const { leases } = await unlucky(() => client.breakLock('v/order-2', { reason: 'a test', leaseRefs: [String(leaseRef)] }));
    expect(leases.map(({ lease_ref: ref }) => ref)).toEqual([leaseRef]);
    expect((await actionsOn('order-2')).filter((one) => one === 'lease_break committed')).toHaveLength(1);
    const held = await next;
    await held.confirm();
    await held.release();
  });

  it('is not given again where it does not: a second break would end the lease of whoever came next', async () => {
    await observer.lease('v/order-1');
    const next = observer.lease('v/order-1').catch(() => null);
    await expect(unlucky(() => client.breakLock('v/order-1', { reason: 'a test' }))).rejects.toMatchObject({ code: 'gateway_unreachable' });
    expect((await actionsOn('order-1')).filter((one) => one === 'lease_break committed')).toHaveLength(1);
    await (await next)?.release();
  });
});
