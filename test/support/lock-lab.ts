import { setMaxListeners } from 'node:events';
import type { FencingToken } from '../../src/domain/fencing-token.ts';
import type { AcquireRequest, LeaseView, SessionView } from '../../src/domain/lock-api.ts';
import type { Caller, Role } from '../../src/domain/principal.ts';
import { type Resource, resourceOf } from '../../src/domain/resource.ts';
import type { VolumePolicy } from '../../src/domain/volume.ts';
import { statusOf } from '../../src/http/status.ts';
import type { Coordination } from '../../src/locks/coordination.ts';
import type { Locks } from '../../src/locks/create-lock-service.ts';
import { createLockService } from '../../src/locks/create-lock-service.ts';
import type { SigningKey } from '../../src/locks/signed-token.ts';
import { FakeClock, seededRandom } from './fake-clock.ts';
import { MemoryJournal } from './memory-journal.ts';

export const never: AbortSignal = new AbortController().signal;
setMaxListeners(0, never);

export function resource(path: string, volume = 'vol'): Resource {
  return resourceOf(volume, path.split('/'), false);
}

/** `name` null: a gateway without authentication. */
export function callerOf(name: string | null, clientId: string | null = name, roles: readonly Role[] = ['writer']): Caller {
  const principal = { name: name ?? 'anonymous', roles: new Set(roles), scopes: [], authenticated: name !== null };
  return { principal, clientId, remoteAddress: '127.0.0.1', requestId: 'request' };
}

export const anybody: Caller = callerOf(null);

export function request(resources: Resource | readonly Resource[], changes: Partial<AcquireRequest> = {}): AcquireRequest {
  return {
    resources: 'key' in resources ? [resources] : resources,
    mode: 'exclusive',
    ttlMs: null,
    waitMs: 0,
    maxWaitMs: null,
    maxHoldMs: null,
    priority: 5,
    clientId: null,
    sessionId: null,
    holdId: null,
    lockDelayMs: null,
    metadata: null,
    ...changes,
  };
}

export type PolicyChanges = Partial<Omit<VolumePolicy, 'lease' | 'limits'>> & {
  readonly lease?: Partial<VolumePolicy['lease']>;
  readonly limits?: Partial<VolumePolicy['limits']>;
};

export interface LabOptions {
  readonly policy?: PolicyChanges;
  readonly signingKeys?: readonly SigningKey[];
  readonly seed?: number;
  readonly journal?: MemoryJournal;
  readonly clock?: FakeClock;
  readonly coordination?: (clock: FakeClock, queueMax: (volume: string) => number) => Coordination;
}

/** A lock service over a fake clock and a journal in memory, and short forms for asking it. */
export class LockLab {
  readonly clock: FakeClock;
  readonly journal: MemoryJournal;
  /** Every reservation that was asked for; `reserveGate` delays or refuses them. */
  readonly reserved: { readonly volume: string; readonly token: FencingToken }[] = [];
  reserveGate: () => Promise<void> = async () => undefined;
  readonly locks: Locks;
  #alive = true;

  constructor({ policy = {}, signingKeys = [], seed = 1, journal = new MemoryJournal(), clock = new FakeClock(), coordination }: LabOptions = {}) {
    this.clock = clock;
    this.journal = journal;
    this.locks = createLockService({
      clock,
      random: seededRandom(seed),
      journal: whileAlive(journal, () => this.#alive),
      refusals: journal,
      ceilings: {
        reserve: (volume, token) => {
          if (!this.#alive) return new Promise(() => undefined);
          this.reserved.push({ volume, token });
          if (token > this.ceiling) this.ceiling = token;
          return this.reserveGate();
        },
      },
      policy: (volume) => policyOf(volume, policy),
      statusOf,
      fenceLevel: () => 'incarnation',
      gatewayUuid: 'lab',
      signingKeys,
      coordination: coordination === undefined ? null : (queueMax) => coordination(clock, queueMax),
    });
  }

  /** What the stamps on the volumes would say: at or above every token that was ever reserved. */
  ceiling = 0n;

  /** A process that starts after this one died without a word. */
  async restarted(options: { readonly comeBack?: boolean; readonly above?: bigint; readonly seed?: number } = {}): Promise<LockLab> {
    this.#alive = false;
    this.locks.stop();
    const start = this.journal.crash();
    this.clock.advance(1_000);
    const next = new LockLab({ journal: this.journal, clock: this.clock, seed: options.seed ?? 2 });
    next.ceiling = options.above ?? this.ceiling;
    await next.locks.restore(start, { above: next.ceiling, comeBack: options.comeBack ?? true });
    return next;
  }

  async acquire(
    where: Resource | readonly Resource[],
    changes: Partial<AcquireRequest> = {},
    caller: Caller = anybody,
    signal: AbortSignal = never,
  ): Promise<LeaseView> {
    return (await this.locks.service.acquire(caller, request(where, changes), signal)).lease;
  }

  lease(leaseId: string, waitMs = 0, caller: Caller = anybody, signal: AbortSignal = never): Promise<LeaseView> {
    return this.locks.service.lease(caller, leaseId, waitMs, signal);
  }

  async sessions(): Promise<readonly SessionView[]> {
    return (await this.locks.service.sessionPage({ limit: Number.MAX_SAFE_INTEGER, cursor: null })).sessions;
  }

  release(leaseId: string, options: { readonly holdId?: string; readonly all?: boolean } = {}, caller: Caller = anybody): Promise<void> {
    return this.locks.service.release(caller, leaseId, { holdId: options.holdId ?? null, all: options.all ?? false });
  }

  /** Runs `work` while time goes by in steps, until it settles. */
  async during<T>(work: Promise<T>, totalMs: number, stepMs = 100): Promise<T> {
    let done = false;
    const watched = work.finally(() => {
      done = true;
    });
    watched.catch(() => undefined);
    for (let spent = 0; !done && spent < totalMs; spent += stepMs) await this.clock.advanceAsync(stepMs);
    return watched;
  }
}

/** The journal as a process sees it that may die: afterwards nothing of it becomes durable, and nothing is answered. */
function whileAlive(journal: MemoryJournal, alive: () => boolean): MemoryJournal {
  return new Proxy(journal, {
    get(target, name) {
      if (name === 'commit' && !alive()) return () => new Promise(() => undefined);
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

export function policyOf(name: string, changes: PolicyChanges): VolumePolicy {
  const { lease, limits, ...rest } = changes;
  return {
    name,
    path: null,
    tokens: 'issued',
    requireToken: 'false',
    rangeWrites: 'copy-on-write',
    onCoordinatorLoss: 'refuse',
    hardLinks: 'refuse',
    names: 'portable',
    attributes: 'keep',
    readOnly: false,
    ...rest,
    lease: { ttlMsMin: 1_000, ttlMsMax: 3_600_000, maxHoldMs: null, lockDelayMs: 0, infinite: false, ...lease },
    limits: { bodyBytes: null, stagedBytes: null, inFlight: 8, queueLength: 1_000, ...limits },
  };
}

/** The token of a lease that must be held. */
export function tokenOf(lease: LeaseView): FencingToken {
  if (lease.fencingToken === null) throw new Error(`lease ${lease.leaseRef} is ${lease.state}`);
  return lease.fencingToken;
}
