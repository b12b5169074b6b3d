import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { FencegateClient, type LeaseHandle, type LeaseMode } from '../../src/client/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { removeDirectory } from '../support/gateway-settings.ts';

let gateway: TestGateway;
/** As `fencegate exec` itself has it. */
let outer: FencegateClient;
let clients: FencegateClient[];
let lease: LeaseHandle;

beforeAll(async () => {
  gateway = await startGateway();
  outer = new FencegateClient({ url: gateway.url, clientId: 'exec' });
  clients = [outer];
});

afterEach(() => lease.release());

afterAll(async () => {
  for (const client of clients) await client.close();
  await gateway.stop();
  await removeDirectory(gateway.directory);
});

/** The client of a command that runs inside `exec`, which holds `resource`. */
async function inside(resource: string, mode: LeaseMode): Promise<FencegateClient> {
  lease = await outer.lease(resource, { mode });
  const client = new FencegateClient({ url: gateway.url, inheritedLease: { resource, leaseId: lease.leaseId, fencingToken: lease.writeToken } });
  clients.push(client);
  return client;
}

describe('a client inside fencegate exec --shared', () => {
  it('is refused an exclusive lease of the same resource, and never given the shared one in its place', async () => {
    const client = await inside('v/shared-1', 'shared');
    await expect(client.lease('v/shared-1')).rejects.toMatchObject({ code: 'overlapping_lease', message: expect.stringContaining('shared') });
    await expect(client.withLease('v/shared-1', { mode: 'exclusive' }, () => 'ran')).rejects.toMatchObject({ code: 'overlapping_lease' });
    expect(await client.withLease('v/shared-1', { mode: 'shared' }, ({ mode }) => mode)).toBe('shared');
  });

  it('R21: is refused every write by the gateway, and nothing is written', async () => {
    await outer.put('v/shared-2', 'before');
    const client = await inside('v/shared-2', 'shared');
    for (const write of [
      () => client.put('v/shared-2', 'x'),
      () => client.append('v/shared-2', 'x'),
      () => client.delete('v/shared-2'),
      () => client.move('v/shared-2', 'v/shared-3'),
    ]) {
      await expect(write()).rejects.toMatchObject({ code: 'lease_is_shared' });
    }
    expect(await (await client.get('v/shared-2')).text()).toBe('before');
  });
});

describe('a client inside fencegate exec', () => {
  it('gets the lease that is there also when it would do with less', async () => {
    const client = await inside('v/exclusive-1', 'exclusive');
    await client.withLease('v/exclusive-1', { mode: 'shared', waitMs: 0 }, async (own) => {
      expect([own.mode, own.token]).toEqual(['exclusive', lease.token]);
      expect((await own.put('v/exclusive-1', 'x')).fencing_token).toBe(lease.token);
    });
    expect(lease.state).toBe('held');
  });

  it('moves and deletes under its token', async () => {
    await outer.put('v/moved-1', 'x');
    const client = await inside('v/moved-1', 'exclusive');
    expect((await client.copy('v/moved-1', 'v/moved-copy')).size_bytes).toBe(1);
    expect((await client.delete('v/moved-1')).fencing_token).toBe(lease.token);
  });

  it('does not wait for itself: more than what is held is refused at once', async () => {
    const client = await inside('v/part-1', 'exclusive');
    await expect(client.lease(['v/part-1', 'v/part-2'])).rejects.toMatchObject({
      code: 'overlapping_lease',
      message: expect.stringContaining('v/part-1'),
    });
  });

  it('is told of a lease that is over, in place of being given another one', async () => {
    const client = await inside('v/over-1', 'exclusive');
    await lease.release();
    await expect(client.lease('v/over-1')).rejects.toMatchObject({ code: 'lease_lost' });
    await expect(client.put('v/over-1', 'x')).rejects.toMatchObject({ code: 'lease_lost' });
  });
});

describe('code inside withLease', () => {
  it('is refused an exclusive lease inside a shared one, and gets a shared one', async () => {
    lease = await outer.lease('v/nested-0');
    await outer.withLease('v/nested-1', { mode: 'shared' }, async () => {
      await expect(outer.withLease('v/nested-1', {}, () => 'ran')).rejects.toMatchObject({ code: 'overlapping_lease' });
      expect(await outer.withLease('v/nested-1', { mode: 'shared' }, ({ mode }) => mode)).toBe('shared');
    });
  });

  it('does not wait for itself when it asks for a part of what it has and for more', async () => {
    lease = await outer.lease('v/nested-0');
    await outer.withLease(['v/nested-2', 'v/nested-3'], {}, async () => {
      await expect(outer.lease(['v/nested-3', 'v/nested-4'])).rejects.toMatchObject({ code: 'overlapping_lease' });
      await outer.withLease('v/nested-4', { waitMs: 0 }, () => undefined);
    });
  });
});
