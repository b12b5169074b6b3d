import { CLIENT_LIMITS } from './client-limits.ts';
import type { AcquireLease, Lease } from './contract/answers.ts';
import { BOUNDS } from './contract/bounds.ts';
import { STATUS_BY_CODE } from './contract/codes.ts';
import { FencegateError, isFencegateError } from './errors.ts';
import { HeldLease } from './held-lease.ts';
import type { LeaseOptions } from './lease-options.ts';
import { pause } from './pause.ts';
import { jitteredDelayMs, retrying, ruleOf } from './retrying.ts';
import type { SessionKeeper } from './session-keeper.ts';
import type { Transport } from './transport.ts';
import { ttlOf } from './ttl-of.ts';
import { wasNeverSent } from './unreachable.ts';

export interface Acquisition {
  readonly resources: readonly string[];
  readonly options: LeaseOptions;
  /** Makes a repeated request count once. */
  readonly holdId: string;
  /** Of the own clock; `null`: without limit. */
  readonly untilMs: number | null;
}

/** An answer, and when the request was sent that it answers. */
interface Answered {
  readonly lease: Lease;
  readonly sentMs: number;
  /** It was not waited for, so its `expires_in_ms` counts from then. */
  readonly fresh: boolean;
}

/** By the own clock: until when the lease certainly lives, and when the request was sent that `lease` answers. */
interface Counted {
  readonly lease: Lease;
  readonly untilMs: number;
  readonly askedMs: number;
}

/** Asks the gateway for a lease: a short first request, then long polls, which keep the place in line over cut connections. */
export class Acquiring {
  readonly #transport: Transport;
  readonly #keeper: SessionKeeper;
  /** Held by this process, by lease id: readers of one resource share one lease of the session. */
  readonly #held = new Map<string, HeldLease>();

  constructor(transport: Transport, keeper: SessionKeeper) {
    this.#transport = transport;
    this.#keeper = keeper;
  }

  /** Resolves with a lease that is held and has time left (case R24), and has the hold. */
  async acquire(acquisition: Acquisition): Promise<HeldLease> {
    const { clock, random } = this.#transport;
    for (let round = 1; ; round += 1) {
      try {
        const answered = await this.#round(acquisition);
        if (answered.lease.state !== 'held') throw notAcquired(answered.lease);
        const lease = this.#holding(acquisition, await this.#counted(acquisition, answered));
        if (lease.state === 'held') return lease;
        throw tooShort(lease) ?? lease.loss ?? notAcquired(answered.lease);
      } catch (thrown) {
        if (!isLostPlace(thrown) || round >= CLIENT_LIMITS.attemptsMax || this.#restMs(acquisition) <= 0) throw thrown;
      }
      await pause(clock, jitteredDelayMs(round, random), acquisition.options.signal);
    }
  }

  async #round(acquisition: Acquisition): Promise<Answered> {
    const { ttlMs } = acquisition.options;
    for (let made = 1; ; made += 1) {
      const sessionId = await this.#keeper.session(ttlMs);
      const done = this.#keeper.waiting(ttlMs ?? BOUNDS.leaseTtlMsDefault);
      try {
        const first = await this.#ask(acquisition, sessionId);
        return first.lease.state === 'waiting' || stillReads(acquisition, first.lease) ? await this.#line(acquisition, first) : first;
      } catch (thrown) {
        if (!isFencegateError(thrown, 'session_not_found', 'session_ended')) throw thrown;
        this.#keeper.gone(sessionId);
        if (made >= CLIENT_LIMITS.sessionsPerAcquireMax) throw thrown;
      } finally {
        done();
      }
    }
  }

  async #ask(acquisition: Acquisition, sessionId: string): Promise<Answered> {
    const { clock } = this.#transport;
    const { signal } = acquisition.options;
    const json = this.#body(acquisition, sessionId);
    const waitMs = Math.ceil(Math.min(CLIENT_LIMITS.firstWaitMs, this.#restMs(acquisition)));
    let sentMs = 0;
    let mayBeGranted = false;
    const attempt = async (): Promise<Lease> => {
      sentMs = clock.monotonicMs();
      try {
        return await this.#transport.json<Lease>({ method: 'POST', path: '/v1/leases', json: { ...json, wait_ms: waitMs }, waitMs, signal });
      } catch (thrown) {
        mayBeGranted = leavesOpen(thrown, mayBeGranted);
        throw thrown;
      }
    };
    try {
      return { lease: await retrying(this.#transport, attempt, { keyed: true, signal }), sentMs, fresh: true };
    } catch (thrown) {
      if (mayBeGranted) this.#keeper.leftovers.addRequest(json, acquisition.holdId);
      throw thrown;
    }
  }

  async #line(acquisition: Acquisition, first: Answered): Promise<Answered> {
    const { lease_id: leaseId } = first.lease;
    const ttlMs = ttlOf(first.lease);
    const { signal } = acquisition.options;
    const { clock } = this.#transport;
    const path = `/v1/leases/${encodeURIComponent(leaseId)}`;
    const pollMs = Math.min(CLIENT_LIMITS.pollWaitMs, BOUNDS.leaseWaitMsMax);
    try {
      for (;;) {
        const waitMs = Math.ceil(Math.min(pollMs, this.#restMs(acquisition)));
        let sentMs = 0;
        const attempt = (): Promise<Lease> => {
          sentMs = clock.monotonicMs();
          return this.#transport.json<Lease>({ method: 'GET', path, query: { wait_ms: waitMs }, waitMs, signal });
        };
        // For as long as the place can still be there.
        const lease = await retrying(this.#transport, attempt, { keyed: true, signal, untilMs: clock.monotonicMs() + ttlMs });
        const reads = stillReads(acquisition, lease);
        if (lease.state !== 'waiting' && !reads) return { lease, sentMs, fresh: false };
        if (waitMs <= 0 || (reads && lease.queue_position === null)) throw notAcquired(lease);
      }
    } catch (thrown) {
      await this.#leaveLine(leaseId, acquisition.holdId);
      throw thrown;
    }
  }

  /** With a limit of its own: the signal that ended the wait is over already. Never rejects, so that the first error stands. */
  async #leaveLine(leaseId: string, holdId: string): Promise<void> {
    this.#keeper.leftovers.addHold(leaseId, holdId);
    await this.#keeper.leftovers.clear();
  }

  /**
   * A poll says how long the lease lives from its *answer* on, and this clock may only count from before the request. Where heartbeats
   * do not close the gap, the lease is renewed before anybody is told of it.
   */
  async #counted({ options: { signal }, holdId }: Acquisition, answered: Answered): Promise<Counted> {
    const { lease, sentMs, fresh } = answered;
    const { clock } = this.#transport;
    const ttlMs = ttlOf(lease);
    const untilMs = Math.max(sentMs + lease.expires_in_ms, fresh ? 0 : this.#keeper.vouchedUntilMs(ttlMs));
    const waitedMs = clock.monotonicMs() - sentMs;
    const isClose = untilMs - clock.monotonicMs() > ttlMs / 2 && waitedMs < holdMsOf(lease) / 4;
    if (fresh || isClose) return { lease, untilMs, askedMs: sentMs };
    let renewedMs = 0;
    const attempt = (): Promise<Lease> => {
      renewedMs = clock.monotonicMs();
      return this.#transport.json<Lease>({ method: 'POST', path: `/v1/leases/${encodeURIComponent(lease.lease_id)}/renew`, signal });
    };
    try {
      const renewed = await retrying(this.#transport, attempt, { keyed: true, signal, untilMs: clock.monotonicMs() + ttlMs });
      return { lease: renewed, untilMs: renewedMs + renewed.expires_in_ms, askedMs: renewedMs };
    } catch (thrown) {
      await this.#leaveLine(lease.lease_id, holdId);
      throw thrown;
    }
  }

  #holding({ options: { marginMs }, holdId }: Acquisition, { lease: answer, untilMs, askedMs }: Counted): HeldLease {
    const known = this.#held.get(answer.lease_id);
    if (known !== undefined && known.state === 'held') {
      known.holds.add(holdId);
      return known;
    }
    const { clock } = this.#transport;
    const lease = new HeldLease({ clock, lease: answer, untilMs, askedMs, holdMs: holdMsOf(answer), marginMs: marginMs ?? null });
    lease.holds.add(holdId);
    this.#held.set(lease.leaseId, lease);
    lease.onEnd(() => void this.#held.delete(lease.leaseId));
    this.#keeper.join(lease);
    return lease;
  }

  #body({ resources, options, holdId, untilMs }: Acquisition, sessionId: string): AcquireLease {
    const [first] = resources;
    const restMs = untilMs === null ? null : Math.ceil(untilMs - this.#transport.clock.monotonicMs());
    return {
      ...(resources.length === 1 && first !== undefined ? { resource: first } : { resources }),
      mode: options.mode ?? 'exclusive',
      ttl_ms: options.ttlMs ?? this.#keeper.defaultTtlMs,
      max_wait_ms: restMs !== null && restMs > 0 ? restMs : null,
      max_hold_ms: options.maxHoldMs ?? null,
      priority: options.priority ?? null,
      session_id: sessionId,
      hold_id: holdId,
      lock_delay_ms: options.lockDelayMs ?? null,
      metadata: options.metadata ?? null,
    };
  }

  #restMs({ untilMs }: Acquisition): number {
    return untilMs === null ? Number.POSITIVE_INFINITY : Math.max(0, untilMs - this.#transport.clock.monotonicMs());
  }
}

/** The session has a reader's lease that no task of this process knows any more; asked for as the writer's it waits for the other readers. */
function stillReads({ options }: Acquisition, { state, mode }: Lease): boolean {
  return state === 'held' && mode === 'shared' && options.mode !== 'shared';
}

/** What the answer says is left of the longest hold, its own or the volume's. */
export function holdMsOf({ hold_expires_in_ms: leftMs }: Lease): number {
  return leftMs ?? Number.POSITIVE_INFINITY;
}

/** The longest hold of the volume is not known before there is a lease; the margin that was asked for may be all of it. */
function tooShort({ loss, marginMs, keptForMs }: HeldLease): FencegateError | null {
  if (loss?.members['reason'] !== 'max_hold') return null;
  const detail = `The longest hold that is left here, ${Math.ceil(keptForMs)} ms, is not more than the margin of ${marginMs} ms by which the lease counts as over too early.`;
  return new FencegateError(loss.code, { detail, members: loss.members });
}

/** Whether a grant is possible after this error. One that says that nothing was done says so of the last request only, not of those before. */
function leavesOpen(thrown: unknown, before: boolean): boolean {
  if (thrown instanceof FencegateError && wasNeverSent(thrown)) return before;
  if (!(thrown instanceof FencegateError) || thrown.status === null) return true;
  const rule = ruleOf(thrown);
  return rule === 'keyed' || (rule === 'unchanged' && before);
}

/** A place in line does not outlive a restart of the gateway, and expires while the gateway is out of reach: it is taken anew. */
function isLostPlace(thrown: unknown): boolean {
  return isFencegateError(thrown, 'lock_not_acquired') && ['lost', 'expired'].includes(String(thrown.members['state']));
}

/** A wait that is over without the lock. The victim of a deadlock is told so. */
export function notAcquired(lease: Lease): FencegateError {
  const code = lease.reason === 'deadlock' ? 'deadlock' : 'lock_not_acquired';
  const detail = code === 'deadlock' ? 'The waits went round in a circle; this one gave way.' : 'The wait ended without the lock.';
  const members = { lease_ref: lease.lease_ref, state: lease.state, reason: lease.reason };
  return new FencegateError(code, { detail, status: STATUS_BY_CODE[code], members });
}
