import { describe, expect, it } from 'vitest';
import type { FencegateClient } from '../../../src/client/fencegate-client.ts';
import { clientLab, held } from '../../support/client-lab.ts';

/** The first of what is iterated. */
const first = (items: AsyncIterable<unknown>): Promise<unknown> => items[Symbol.asyncIterator]().next();

/** Every method that asks the gateway for something. */
const CALLS: Readonly<Record<string, (client: FencegateClient) => Promise<unknown>>> = {
  lease: (client) => client.lease('v/a'),
  withLease: (client) => client.withLease('v/a', {}, () => undefined),
  lock: (client) => client.lock('v/a'),
  locks: (client) => first(client.locks()),
  breakLock: (client) => client.breakLock('v/a', { reason: 'test' }),
  audit: (client) => first(client.audit()),
  verifyAudit: (client) => client.verifyAudit(),
  volumes: (client) => client.volumes(),
  operation: (client) => client.operation({ requestId: 'r' }),
  watch: async (client) => first(client.watch({ session: true })),
  put: (client) => client.put('v/a', 'x'),
  append: (client) => client.append('v/a', 'x'),
  writeRange: (client) => client.writeRange('v/a', 0, 'x'),
  delete: (client) => client.delete('v/a'),
  move: (client) => client.move('v/a', 'v/b'),
  copy: (client) => client.copy('v/a', 'v/b'),
  makeDirectory: (client) => client.makeDirectory('v/d'),
  upload: (client) => client.upload('v/d', [{ name: 'a', body: 'x' }]),
  get: (client) => client.get('v/a'),
  list: (client) => first(client.list('v/')),
  'unattended.acquire': (client) => client.unattended.acquire('v/a'),
  'unattended.renew': (client) => client.unattended.renew('id'),
  'unattended.release': (client) => client.unattended.release('id'),
  'administration.doctor': (client) => client.administration.doctor(),
  'administration.fix': (client) => client.administration.fix('f'),
  'administration.fence': (client) => client.administration.fence('v/a'),
  'administration.rebase': (client) => client.administration.rebase({ reason: 'test' }),
  'administration.adopt': (client) => client.administration.adopt('v', { reason: 'test' }),
};

function methodsOf(value: object, before = ''): string[] {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (typeof prototype !== 'object' || prototype === null || prototype === Object.prototype) return [];
  const own = Object.getOwnPropertyNames(prototype).filter((name) => name !== 'constructor');
  return [...own.map((name) => `${before}${name}`), ...methodsOf(prototype, before)];
}

describe('a client that is closed', () => {
  it.each(Object.entries(CALLS))('rejects %s with client_closed, and sends nothing', async (_name, call) => {
    const { client, wire } = clientLab();
    await client.close();
    await expect(call(client)).rejects.toMatchObject({ name: 'FencegateError', code: 'client_closed' });
    expect(wire.seen).toEqual([]);
  });

  it('does so in every method that it has', () => {
    const { client } = clientLab();
    const all = [...methodsOf(client), ...methodsOf(client.unattended, 'unattended.'), ...methodsOf(client.administration, 'administration.')];
    expect(all.filter((name) => name !== 'close').sort()).toEqual(Object.keys(CALLS).sort());
  });

  it('cuts what is under way with the same code, and still gives back what it holds', async () => {
    const lab = clientLab();
    const { client, wire } = lab;
    const lease = await held(lab);
    const asked = client.lock('v/a');
    const refused = expect(asked).rejects.toMatchObject({ code: 'client_closed' });
    const lockRequest = await wire.next('GET /v1/locks/v/a');
    const releasing = lease.release();
    const release = await wire.next('DELETE /v1/leases/secret');
    const closing = client.close();
    await refused;
    expect(lockRequest.signal?.aborted).toBe(true);
    expect(release.signal?.aborted).toBe(false);
    await release.answer(204);
    await releasing;
    await (await wire.next('DELETE /v1/sessions/session')).answer(204);
    await closing;
    await expect(lease.put('v/a', 'x')).rejects.toMatchObject({ code: 'client_closed' });
    await lease.release();
  });
});

it('many writes at once under one lease are no leak of listeners', async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on('warning', onWarning);
  try {
    const lab = clientLab();
    const lease = await held(lab);
    const writes = Array.from({ length: 20 }, () => lease.move('v/a', 'v/b').catch(() => undefined));
    await new Promise((resolve) => setImmediate(resolve));
    void lab.client.close();
    await Promise.all(writes);
    await new Promise((resolve) => setImmediate(resolve));
    expect(warnings).toEqual([]);
  } finally {
    process.off('warning', onWarning);
  }
});
