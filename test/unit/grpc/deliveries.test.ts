import { Metadata, type ServerInterceptingCallInterface, type ServerMethodDefinition, status } from '@grpc/grpc-js';
import { afterEach, describe, expect, it } from 'vitest';
import { Deliveries } from '../../../src/grpc/deliveries.ts';
import type { GrpcDeps } from '../../../src/grpc/grpc-deps.ts';
import { GrpcServer } from '../../../src/grpc/server.ts';
import { retryAfterMsOf, statusOf } from '../../../src/http/status.ts';
import { leaseView } from '../../support/fake-locks.ts';
import { GrpcLockClient, refusal } from '../../support/grpc-client.ts';
import { fakeDeps } from '../../support/http-fakes.ts';

/** Answers that cross with a cancellation: what the server can know of them, and what it does then. */

const OK = { code: status.OK, details: '' };
const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** A call below the interceptor, in place of the library's. */
function intercepted() {
  const deliveries = new Deliveries();
  const sent: unknown[] = [];
  let cancel: () => void = () => undefined;
  const metadata = new Metadata();
  const below = {
    start: (listener: { onReceiveMetadata(metadata: Metadata): void; onCancel(): void }) => {
      cancel = () => listener.onCancel();
      listener.onReceiveMetadata(metadata);
    },
    sendStatus: (end: unknown) => sent.push(end),
  } as unknown as ServerInterceptingCallInterface;
  const call = deliveries.interceptor({} as ServerMethodDefinition<unknown, unknown>, below);
  const nothing = (): void => undefined;
  call.start({ onReceiveMetadata: nothing, onReceiveMessage: nothing, onReceiveHalfClose: nothing, onCancel: nothing });
  let undelivered = 0;
  const expectDelivery = (): void => deliveries.expect(metadata, () => (undelivered += 1));
  return { call, sent, cancel: () => cancel(), expectDelivery, undelivered: () => undelivered };
}

describe('an answer that must not get lost', () => {
  it('is out once what has come by then from the client was read', async () => {
    const { call, sent, cancel, expectDelivery, undelivered } = intercepted();
    expectDelivery();
    call.sendStatus(OK);
    expect(sent).toEqual([]);
    await turn();
    expect(sent).toEqual([OK]);
    // The library says so at the end of every call.
    cancel();
    expect(undelivered()).toBe(0);
  });

  it('is told as lost, once, when the client went before its status', async () => {
    for (const when of ['before the answer', 'before the status', 'while the status waits']) {
      const { call, sent, cancel, expectDelivery, undelivered } = intercepted();
      if (when === 'before the answer') cancel();
      expectDelivery();
      if (when === 'before the status') cancel();
      call.sendStatus(OK);
      if (when === 'while the status waits') cancel();
      await turn();
      cancel();
      expect([when, sent, undelivered()]).toEqual([when, [], 1]);
    }
  });

  it('holds up no other one', () => {
    const { call, sent } = intercepted();
    call.sendStatus(OK);
    expect(sent).toEqual([OK]);
  });
});

describe('AcquireLock', () => {
  let stop: () => Promise<void> = async () => undefined;
  afterEach(() => stop());

  async function served() {
    const fakes = fakeDeps();
    const deps: GrpcDeps = {
      ...fakes,
      isDraining: () => false,
      authenticate: () => ({ name: 'a', roles: new Set(['writer']), scopes: [], authenticated: true }),
      statusOf,
      retryAfterMsOf,
      isBehind: () => false,
      observe: () => undefined,
      settings: { host: '127.0.0.1', port: 0, tls: null, rateLimitPerSecond: 0 },
    };
    const server = new GrpcServer(deps);
    const client = new GrpcLockClient(await server.start());
    stop = async () => {
      client.close();
      await server.stop();
    };
    fakes.locks.view = leaseView({ holdId: 'h' });
    return { fakes, client };
  }

  it('that is granted when its client has gone is given back, with the hold that nobody was told of', async () => {
    const { fakes, client } = await served();
    const gone = new AbortController();
    // The grant does not look whether anybody is there.
    fakes.locks.acquireWait = (signal) => {
      gone.abort();
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
    };
    expect(await refusal(client.acquire({ resource_path: 'demo/a.txt' }, { signal: gone.signal }))).toBe('CANCELLED -');
    // On the same connection, and so after it.
    await client.lock('demo/a.txt').catch(() => undefined);
    expect(fakes.locks.calls.filter(({ name }) => name === 'undelivered')).toMatchObject([
      { args: [{ principal: { name: 'a' } }, 'secret-lease', 'h'] },
    ]);
  });

  it('that is answered is not', async () => {
    const { fakes, client } = await served();
    expect(await client.acquire({ resource_path: 'demo/a.txt' })).toMatchObject({ acquired: true });
    await client.lock('demo/a.txt').catch(() => undefined);
    expect(fakes.locks.calls.filter(({ name }) => name === 'undelivered')).toEqual([]);
  });
});
