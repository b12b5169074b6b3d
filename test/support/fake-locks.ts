import { type GatewayError, refuse } from '../../src/domain/errors.ts';
import { fencingToken } from '../../src/domain/fencing-token.ts';
import type { LeaseView, LockService, SessionView } from '../../src/domain/lock-api.ts';
import { type Resource, resourceOf } from '../../src/domain/resource.ts';

export function leaseView(changes: Partial<LeaseView> = {}): LeaseView {
  return {
    leaseId: 'secret-lease',
    leaseRef: 'lr_1',
    resources: [resourceOf('demo', ['a.txt'], false)],
    mode: 'exclusive',
    state: 'held',
    fencingToken: fencingToken(4103n),
    signedToken: null,
    clientId: null,
    sessionId: 'secret-session',
    priority: 5,
    holdCount: 1,
    holdId: null,
    ttlMs: 30_000,
    expiresInMs: 29_999.6,
    holdExpiresInMs: null,
    leaseExpiresAt: '2026-01-01T00:00:30.000Z',
    grantedAt: '2026-01-01T00:00:00.000Z',
    queuePosition: null,
    acquiredZnodePath: null,
    reason: null,
    cycle: null,
    metadata: null,
    ...changes,
  };
}

export const sessionView: SessionView = {
  sessionId: 'secret-session',
  sessionRef: 'sr_1',
  principal: 'anonymous',
  clientId: null,
  state: 'live',
  ttlMs: 30_000,
  expiresInMs: 30_000,
  leaseCount: 0,
};

/** A lock service whose answers and refusals are set; it records what it was asked. */
export class FakeLocks implements LockService {
  readonly calls: { readonly name: string; readonly args: readonly unknown[] }[] = [];
  view: LeaseView = leaseView();
  created = true;
  refusal: GatewayError | null = null;
  acquireWait: ((signal: AbortSignal) => Promise<void>) | null = null;

  async acquire(...args: Parameters<LockService['acquire']>) {
    this.#called('acquire', args);
    await this.acquireWait?.(args[2]);
    return { lease: this.view, created: this.created };
  }
  undelivered(...args: Parameters<LockService['undelivered']>): void {
    this.#called('undelivered', args);
  }
  async lease(...args: Parameters<LockService['lease']>) {
    return this.#called('lease', args);
  }
  async leaseWithToken(...args: Parameters<LockService['leaseWithToken']>) {
    return this.#called('leaseWithToken', args);
  }
  async renew(...args: Parameters<LockService['renew']>) {
    return this.#called('renew', args);
  }
  async convert(...args: Parameters<LockService['convert']>) {
    return this.#called('convert', args);
  }
  async release(...args: Parameters<LockService['release']>) {
    this.#called('release', args);
  }
  async createSession(...args: Parameters<LockService['createSession']>) {
    this.#called('createSession', args);
    return sessionView;
  }
  async heartbeat(...args: Parameters<LockService['heartbeat']>) {
    this.#called('heartbeat', args);
    if (args[1] === 'gone') throw refuse('session_not_found', 'There is no such session.');
    return { expiresInMs: 30_000, lost: [] };
  }
  async endSession(...args: Parameters<LockService['endSession']>) {
    this.#called('endSession', args);
  }
  async endSessionByRef(...args: Parameters<LockService['endSessionByRef']>) {
    this.#called('endSessionByRef', args);
  }
  async sessionPage(...args: Parameters<LockService['sessionPage']>) {
    this.#called('sessionPage', args);
    return { sessions: [sessionView], nextCursor: '1' };
  }
  async lock(resource: Resource) {
    this.#called('lock', [resource]);
    return {
      resource,
      mode: null,
      highWaterMark: null,
      holders: [],
      waiters: [],
      queueLength: 0,
      waitEstimateMs: null,
      heldBackMs: 0,
      znodePath: `/locks/${resource.volume}/x`,
      foreign: [],
      fenceLevel: 'incarnation' as const,
    };
  }
  async locks(filter: Parameters<LockService['locks']>[0]) {
    this.#called('locks', [filter]);
    return { locks: [await this.lock(resourceOf('demo', ['a.txt'], false)), await this.lock(resourceOf('other', ['b'], false))], nextCursor: null };
  }

  #called(name: string, args: readonly unknown[]): LeaseView {
    this.calls.push({ name, args });
    if (this.refusal !== null) throw this.refusal;
    return this.view;
  }
}
