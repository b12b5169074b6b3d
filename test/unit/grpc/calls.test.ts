import { EventEmitter } from 'node:events';
import { Metadata, type ServerUnaryCall, type ServiceError } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { GatewayError, refuse } from '../../../src/domain/errors.ts';
import { fencingToken } from '../../../src/domain/fencing-token.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { send } from '../../../src/grpc/answer-stream.ts';
import { Calls } from '../../../src/grpc/calls.ts';
import { loadContract } from '../../../src/grpc/contract.ts';
import { Deliveries } from '../../../src/grpc/deliveries.ts';
import type { GrpcDeps } from '../../../src/grpc/grpc-deps.ts';
import { lockMethods } from '../../../src/grpc/lock-methods.ts';
import type { RecordLockRequest, RecordLockResponse, ReleaseLockRequest, RenewLockRequest } from '../../../src/grpc/messages.ts';
import { OpenCalls } from '../../../src/grpc/open-calls.ts';
import { RateLimit } from '../../../src/grpc/rate-limit.ts';
import { retryAfterMsOf, statusOf } from '../../../src/http/status.ts';
import { leaseView } from '../../support/fake-locks.ts';
import { detailsOf, refusalOf } from '../../support/grpc-client.ts';
import { type FakeDeps, fakeDeps, principal } from '../../support/http-fakes.ts';

/** The way in and out of a call, over the doubles of the ports. */

const contract = loadContract();

interface Ended {
  readonly error: ServiceError | null;
  readonly answer: RecordLockResponse | undefined;
}

function room(perSecond = 0) {
  const fakes: FakeDeps = fakeDeps();
  const behind = { now: false };
  const observed: (readonly [method: string, status: string, seconds: number])[] = [];
  const deps: GrpcDeps = {
    ...fakes,
    isDraining: () => fakes.draining,
    authenticate: () => {
      if (fakes.principal instanceof GatewayError) throw fakes.principal;
      return fakes.principal;
    },
    statusOf,
    retryAfterMsOf,
    isBehind: () => behind.now,
    observe: (...answer) => observed.push(answer),
    settings: { host: '127.0.0.1', port: 0, tls: null, rateLimitPerSecond: perSecond },
  };
  const open = new OpenCalls(deps.deadline);
  const methods = lockMethods(
    deps,
    new Calls({ deps, contract, open, deliveries: new Deliveries(), rate: new RateLimit(deps.clock, perSecond) }),
    open,
  );
  const call = <Request>(request: Request, metadata: Readonly<Record<string, string>> = {}) => {
    const sent = new Metadata();
    for (const [name, value] of Object.entries(metadata)) sent.set(name, value);
    const wire = Object.assign(new EventEmitter(), {
      cancelled: false,
      metadata: sent,
      request,
      getPeer: () => '192.0.2.7:41234',
      getDeadline: () => Number.POSITIVE_INFINITY,
      getAuthContext: () => ({}),
    });
    return {
      wire: wire as unknown as ServerUnaryCall<Request, never>,
      cancel: () => {
        wire.cancelled = true;
        wire.emit('cancelled');
      },
    };
  };
  const acquire = (request: Partial<RecordLockRequest> = {}, metadata: Readonly<Record<string, string>> = {}) => {
    const whole: RecordLockRequest = {
      resource_path: 'demo/a.txt',
      client_id: '',
      session_timeout_ms: '0',
      wait_blocking: false,
      mode: 'LOCK_MODE_UNSPECIFIED',
      session_id: '',
      hold_id: '',
      ...request,
    };
    const { wire, cancel } = call(whole, metadata);
    const ended = new Promise<Ended>((resolve) =>
      methods.AcquireLock(wire, (error, answer) => resolve({ error: error as ServiceError, answer: answer ?? undefined })),
    );
    return { ended, cancel };
  };
  const other = async (method: 'RenewLock' | 'ReleaseLock', request: RenewLockRequest | ReleaseLockRequest): Promise<Ended> =>
    new Promise((resolve) => {
      const handler = methods[method] as (wire: unknown, done: (error: unknown, answer?: unknown) => void) => void;
      handler(call(request).wire, (error, answer) => resolve({ error: error as ServiceError, answer: answer as RecordLockResponse }));
    });
  return { fakes, behind, observed, open, acquire, other };
}

const refused = async (ended: Promise<Ended>): Promise<string> => refusalOf((await ended).error);

describe('what the lock service is asked', () => {
  it('a try: defaults where nothing was sent, and the caller with address, label and request id', async () => {
    const { fakes, acquire } = room();
    await acquire({ client_id: 'batch' }, { 'x-client-id': 'other', 'x-request-id': 'mine' }).ended;
    const [caller, request] = fakes.locks.calls[0]?.args ?? [];
    expect(caller).toMatchObject({ clientId: 'batch', remoteAddress: '192.0.2.7', requestId: 'mine' });
    expect(request).toMatchObject({
      mode: 'exclusive',
      ttlMs: null,
      waitMs: 0,
      maxWaitMs: null,
      maxHoldMs: null,
      priority: 5,
      sessionId: null,
      holdId: null,
      lockDelayMs: null,
    });
  });

  it('a wait without limit and deadline is bounded', async () => {
    const { fakes, acquire } = room();
    await acquire({ wait_blocking: true }).ended;
    expect(fakes.locks.calls[0]?.args[1]).toMatchObject({ maxWaitMs: LIMITS.leaseWaitMsMax });
  });

  it('a wait lasts as long as the call: until its limit, or until the client goes, with its hold', async () => {
    const { fakes, acquire } = room();
    let told: AbortSignal | null = null;
    fakes.locks.acquireWait = (signal) => {
      told = signal;
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    };
    const { ended, cancel } = acquire({ wait_blocking: true, session_timeout_ms: '9000', wait_limit_ms: '120000', hold_id: 'h' });
    await new Promise((resolve) => setImmediate(resolve));
    expect(fakes.locks.calls).toHaveLength(1);
    expect(fakes.locks.calls[0]?.args[1]).toMatchObject({ waitMs: null, maxWaitMs: 120_000, holdId: 'h' });
    expect(told).toMatchObject({ aborted: false });
    cancel();
    await ended;
    expect(told).toMatchObject({ aborted: true });
    expect(fakes.refusals.durable).toEqual([]);
  });
});

describe('a wait that ends without the lock', () => {
  it.each([
    ['expired', 'expired', null],
    ['cancelled', 'max_wait', null],
    ['expired', 'session_ended', null],
    ['broken', 'broken', null],
    ['cancelled', 'deadlock', 'ABORTED deadlock'],
    ['cancelled', 'journal_unavailable', 'UNAVAILABLE journal_unavailable'],
  ] as const)('%s, %s', async (state, reason, expected) => {
    const { fakes, acquire } = room();
    fakes.locks.view = leaseView({ state, reason, fencingToken: fencingToken(9n) });
    const { error, answer } = await acquire({ wait_blocking: true }).ended;
    if (expected !== null) expect(refusalOf(error)).toBe(expected);
    else
      expect(answer).toMatchObject({
        acquired: false,
        fencing_token: '0',
        acquired_znode_path: '',
        reason,
        state: `LEASE_STATE_${state.toUpperCase()}`,
      });
  });

  it('lost in a gateway that drains is UNAVAILABLE; at any other time it is not acquired', async () => {
    const { fakes, acquire } = room();
    fakes.locks.view = leaseView({ state: 'lost', reason: 'lost' });
    expect((await acquire({ wait_blocking: true }).ended).answer).toMatchObject({ acquired: false, reason: 'lost' });
    const late = acquire({ wait_blocking: true });
    fakes.draining = true;
    expect(await refused(late.ended)).toBe('UNAVAILABLE draining');
  });
});

describe('refusals', () => {
  it('before the lock service has it are durable before the answer, with principal and resource', async () => {
    const { fakes, acquire } = room();
    fakes.principal = principal('clerk', ['writer'], ['other']);
    expect(await refused(acquire({ client_id: 'c' }).ended)).toBe('PERMISSION_DENIED forbidden');
    expect(fakes.refusals.durable).toMatchObject([
      { action: 'lease_refuse', code: 'forbidden', status: 403, principal: 'clerk', volume: 'demo', path: 'a.txt', remoteAddress: '192.0.2.7' },
    ]);
  });

  it('that cannot be recorded are UNAVAILABLE: fail closed', async () => {
    const { fakes, acquire } = room();
    fakes.principal = principal('reader', ['reader']);
    fakes.refusals.failure = refuse('journal_unavailable', 'The journal cannot be written.');
    expect(await refused(acquire().ended)).toBe('UNAVAILABLE journal_unavailable');
  });

  it('without a principal are only counted', async () => {
    const { fakes, acquire } = room();
    fakes.principal = refuse('unauthenticated', 'No.');
    expect(await refused(acquire().ended)).toBe('UNAUTHENTICATED unauthenticated');
    expect(fakes.refusals.durable).toEqual([]);
    expect(fakes.refusals.early).toMatchObject([{ code: 'unauthenticated', principal: null }]);
  });

  it('of the lock service are its own to record', async () => {
    const { fakes, other } = room();
    fakes.locks.refusal = refuse('lease_not_held', 'The lease has ended.');
    expect(await refused(other('RenewLock', { lease_id: 'l', ttl_ms: '0' }))).toBe('FAILED_PRECONDITION lease_not_held');
    expect([...fakes.refusals.durable, ...fakes.refusals.early]).toEqual([]);
  });

  it('a release by token that finds nothing is recorded with resource and token', async () => {
    const { fakes, other } = room();
    fakes.locks.refusal = refuse('not_lease_owner', 'It belongs to somebody else.');
    const request = { lease_id: '', resource_path: 'demo/a.txt', fencing_token: '4103', hold_id: '', all: false };
    expect(await refused(other('ReleaseLock', request))).toBe('PERMISSION_DENIED not_lease_owner');
    expect(fakes.refusals.durable).toMatchObject([{ code: 'not_lease_owner', path: 'a.txt', fencingToken: 4103n }]);
  });

  it('an error of our own says nothing of itself, and is in the log', async () => {
    const { fakes, acquire } = room();
    fakes.locks.acquireWait = async () => {
      throw new Error('secret words');
    };
    const { error } = await acquire().ended;
    expect(refusalOf(error)).toBe('INTERNAL internal');
    expect(JSON.stringify(error)).not.toContain('secret words');
    expect(fakes.logLines.join('')).toContain('secret words');
  });

  it('draining refuses new leases and lets holders renew', async () => {
    const { fakes, acquire, other } = room();
    fakes.draining = true;
    expect(await refused(acquire().ended)).toBe('UNAVAILABLE draining');
    expect((await other('RenewLock', { lease_id: 'l', ttl_ms: '0' })).error).toBeNull();
  });

  it('an event loop that is late refuses new work, says when to come again, and lets holders renew and release', async () => {
    const { fakes, behind, acquire, other } = room();
    behind.now = true;
    const { error } = await acquire().ended;
    expect(refusalOf(error)).toBe('UNAVAILABLE overloaded');
    expect(detailsOf(error)).toMatchObject([{}, { type: 'google.rpc.RetryInfo' }]);
    expect(fakes.locks.calls).toEqual([]);
    expect(fakes.refusals.early).toMatchObject([{ code: 'overloaded', status: 503, principal: null }]);
    expect((await other('RenewLock', { lease_id: 'l', ttl_ms: '0' })).error).toBeNull();
    expect((await other('ReleaseLock', { lease_id: 'l', resource_path: '', fencing_token: '0', hold_id: '', all: false })).error).toBeNull();
  });

  it('and answers are counted alike, by method and status', async () => {
    const { fakes, observed, acquire, other } = room();
    await acquire().ended;
    fakes.locks.refusal = refuse('lease_not_held', 'The lease has ended.');
    await other('RenewLock', { lease_id: 'l', ttl_ms: '0' });
    expect(observed).toEqual([
      ['AcquireLock', 'OK', expect.any(Number)],
      ['RenewLock', 'FAILED_PRECONDITION', expect.any(Number)],
    ]);
  });

  it('a label that is no text, and an id of the caller that is none', async () => {
    const { fakes, acquire } = room();
    expect(await refused(acquire({ client_id: 'x'.repeat(257) }).ended)).toBe('INVALID_ARGUMENT invalid_request');
    await acquire({}, { 'x-request-id': 'two words' }).ended;
    expect(fakes.locks.calls.at(-1)?.args[0]).toMatchObject({ requestId: expect.stringMatching(/^req_/) });
  });
});

describe('the rate limit', () => {
  it('counts per second and principal, and says when to come again', async () => {
    const { fakes, acquire } = room(2);
    fakes.principal = principal('a', ['writer']);
    const first = await Promise.all([acquire().ended, acquire().ended, acquire().ended]);
    expect(first.map(({ error }) => (error === null ? 'OK' : refusalOf(error)))).toEqual(['OK', 'OK', 'RESOURCE_EXHAUSTED rate_limited']);
    expect(fakes.refusals.early).toHaveLength(1);
    fakes.principal = principal('b', ['writer']);
    expect((await acquire().ended).error).toBeNull();
    fakes.principal = principal('a', ['writer']);
    fakes.clock.advance(1_000);
    expect((await acquire().ended).error).toBeNull();
  });
});

describe('a client that does not keep up', () => {
  class Slow extends EventEmitter {
    readonly written: object[] = [];
    write(message: object): boolean {
      this.written.push(message);
      return false;
    }
  }

  it('is waited for, and no longer than the call lives', async () => {
    const stream = new Slow();
    const gone = new AbortController();
    const first = send(stream as never, { n: 1 }, gone.signal);
    stream.emit('drain');
    await first;
    const second = send(stream as never, { n: 2 }, gone.signal);
    gone.abort(refuse('draining', 'Stop.'));
    await expect(second).rejects.toMatchObject({ code: 'draining' });
    await expect(send(stream as never, { n: 3 }, gone.signal)).rejects.toMatchObject({ code: 'draining' });
    expect(stream.written).toEqual([{ n: 1 }, { n: 2 }]);
    expect(stream.listenerCount('drain')).toBe(0);
  });
});
