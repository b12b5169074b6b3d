import { type Clock, rfc3339 } from '../domain/clock.ts';
import { cycleMembers } from '../domain/deadlock.ts';
import { GatewayError } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import { foreignDetail, foreignMembers } from '../domain/foreign-contenders.ts';
import type { Journal, Mark } from '../domain/journal.ts';
import type { HeldLease, ImplicitLease, ImplicitLeaseRequest, Pin, TokenFacts, WriteLeases } from '../domain/lease.ts';
import { LIMITS } from '../domain/limits.ts';
import { inCanonicalOrder, type Resource } from '../domain/resource.ts';
import type { Coordination } from './coordination.ts';
import type { Coordinator } from './coordinator.ts';
import { endKinds } from './end-kinds.ts';
import { foreignThere } from './foreign-there.ts';
import type { LeaseDesk } from './lease-desk.ts';
import type { LeaseIds } from './lease-ids.ts';
import type { LeaseLedger } from './lease-ledger.ts';
import type { Lease } from './lease-record.ts';
import type { LeaseTable } from './lease-table.ts';
import { notLookedYet, sessionLost } from './lock-refusals.ts';
import { PRIORITY_DEFAULT } from './order-key.ts';
import type { Pinnable } from './pinnable.ts';
import type { RefusedTokens } from './refused-tokens.ts';
import { leaseRefOf } from './secret-id.ts';
import type { SignedTokens } from './signed-token.ts';
import { waitForChange } from './wait-for-change.ts';

export interface WriteLeasesDeps {
  readonly clock: Clock;
  readonly leaseIds: LeaseIds;
  readonly journal: Pick<Journal, 'mark' | 'endedLease'>;
  readonly coordinator: Coordinator<Lease>;
  readonly coordination: Coordination;
  readonly pinnable: Pinnable;
  readonly table: LeaseTable;
  readonly desk: LeaseDesk;
  readonly refusedTokens: RefusedTokens;
  readonly ledger: LeaseLedger;
  readonly signedTokens: SignedTokens;
  readonly nextOrder: () => number;
}

/** What the write protocol asks of the locks: facts at admission, pins in the commit section (I1), leases for token-less writes. */
export class LocksForWrites implements WriteLeases {
  readonly #deps: WriteLeasesDeps;
  /** Whoever waited through the end of a session has lost what it staged: the incarnation ended with it, however soon the next one is there. */
  #sessionsLost = 0;

  constructor(deps: WriteLeasesDeps) {
    this.#deps = deps;
    deps.coordination.onState((state) => {
      if (state === 'lost') this.#sessionsLost += 1;
    });
  }

  async facts(resource: Resource, presented: FencingToken | null): Promise<TokenFacts> {
    this.#deps.desk.now();
    return this.#factsInMemory(resource) ?? this.#factsFrom(resource, presented, await this.#deps.journal.mark(resource.key));
  }

  async factsMet(resource: Resource, presented: FencingToken): Promise<TokenFacts> {
    const look = this.#deps.coordinator.look(resource.key);
    const facts = await this.facts(resource, presented);
    const met = look?.mark ?? null;
    if (look === null || met === null || (facts.mark !== null && facts.mark >= met)) return facts;
    const next = look.exclusiveHolder;
    return { ...facts, mark: met, atMark: next === null ? null : { leaseRef: next.leaseRef, principal: next.terms.principal, ended: null } };
  }

  refusalTold(resource: Resource, token: FencingToken, signal: AbortSignal): Promise<boolean> {
    return this.#deps.refusedTokens.told(resource, token, signal);
  }

  pin(resource: Resource, token: FencingToken): Pin {
    return this.#deps.desk.pin(resource, token);
  }

  async inContact(resource: Resource, token: FencingToken | null, waitMs: number, signal: AbortSignal): Promise<void> {
    const { coordination, pinnable, clock } = this.#deps;
    const untilMs = clock.monotonicMs() + waitMs;
    const lostBefore = this.#sessionsLost;
    let suspension: GatewayError | null = null;
    for (;;) {
      if (signal.aborted) throw signal.reason;
      if (suspension !== null && this.#sessionsLost > lostBefore) throw suspension;
      const refusal = coordination.refusal();
      if (refusal === null || (token !== null && pinnable.mayFinish(resource, token, refusal))) return;
      const restMs = untilMs - clock.monotonicMs();
      // Without a session there is nothing to wait for: what the caller had is void. Who waited is told why it waited.
      if (refusal.code !== 'coordinator_suspended' || restMs <= 0) throw suspension ?? refusal;
      suspension = refusal;
      await waitForContact(clock, Math.min(restMs, LIMITS.contactPollMs), signal);
    }
  }

  async acquireImplicit(request: ImplicitLeaseRequest): Promise<ImplicitLease> {
    const { clock, desk, ledger, coordination } = this.#deps;
    const { signal } = request;
    if (signal.aborted) throw signal.reason;
    const lostBefore = this.#sessionsLost;
    desk.now();
    const lease = this.#implicit(request);
    desk.enter(lease);
    const untilMs = clock.monotonicMs() + request.waitMs;
    while (lease.phase === 'waiting' || lease.phase === 'granting') {
      const undecided = lease.phase === 'granting' || (request.waitMs === 0 && !lease.stands);
      const suspension = undecided && lease.phase === 'waiting' ? coordination.refusal() : null;
      if (suspension !== null) {
        desk.withdraw(lease, suspension);
        break;
      }
      const restMs = undecided ? Number.POSITIVE_INFINITY : untilMs - clock.monotonicMs();
      const outcome = restMs <= 0 ? 'time' : await waitForChange(lease, clock, restMs, signal);
      desk.now();
      if (outcome === 'aborted') break;
      if (outcome === 'time' && lease.phase === 'waiting') desk.withdraw(lease, this.#waitedOut(lease));
    }
    if (signal.aborted) {
      desk.end(lease, endKinds.cancelled(request.caller));
      throw signal.reason;
    }
    // Who does not wait is not refused for the length of the line.
    if (request.waitMs === 0 && lease.failure?.code === 'queue_full') throw this.#locked(lease);
    if (lease.phase !== 'held' || lease.told === null) throw this.#sessionsLost > lostBefore ? sessionLost() : this.#whyNot(lease);
    return {
      lease: heldLease(lease, lease.told),
      grantOps: ledger.implicitOps(lease, lease.told.token),
      release: () => desk.end(lease, endKinds.released(null)),
    };
  }

  holder(resource: Resource): ReturnType<WriteLeases['holder']> {
    const nowMs = this.#deps.desk.now();
    // Nobody knows who holds now; the write is refused for that.
    if (this.#deps.coordination.refusal() !== null) return null;
    const look = this.#deps.coordinator.look(resource.key);
    if (look === null) return null;
    const first = look.holders[0];
    if (first === undefined && look.heldBackUntilMs <= nowMs && look.queueLength === 0) return null;
    return { clientId: first?.clientId ?? null, queueLength: look.queueLength, foreign: foreignThere(this.#deps.coordinator, look) };
  }

  keepAlive(resource: Resource, token: FencingToken): boolean {
    const nowMs = this.#deps.desk.now();
    const lease = this.#deps.table.liveByToken(token);
    if (lease === null || !lease.open || !lease.covers(resource.key)) return false;
    lease.renew(nowMs);
    return true;
  }

  leaseRefOf(resource: Resource, token: FencingToken): string | null {
    const { table } = this.#deps;
    const lease = table.liveByToken(token) ?? table.endedByToken(token);
    return lease?.covers(resource.key) === true ? lease.leaseRef : null;
  }

  isLeaseId(leaseId: string, leaseRef: string): boolean {
    return leaseRefOf(leaseId) === leaseRef;
  }

  readSigned(text: string, resource: Resource, principal: string): { readonly token: FencingToken } | 'invalid' | 'forged' {
    const { signedTokens, table } = this.#deps;
    const parsed = signedTokens.parse(text);
    if (parsed === null) return 'invalid';
    const { token, leaseRef, mode } = parsed;
    // The text does not say which other resources a lease has; whoever forges one cannot choose them either.
    const resources = table.byRef(leaseRef)?.resources ?? [resource];
    if (!resources.some(({ key }) => key === resource.key)) return 'forged';
    return signedTokens.verifies(parsed.keyId, parsed.mac, { token, leaseRef, mode, resources, principal }) ? { token } : 'forged';
  }

  /** The common case needs no journal: a live exclusive lease of a client, whose token is the mark. */
  #factsInMemory(resource: Resource): TokenFacts | null {
    const look = this.#deps.coordinator.look(resource.key);
    const lease = look?.exclusiveHolder ?? null;
    if (look === null || lease === null || !lease.open || lease.terms.session === null || lease.told?.mode !== 'exclusive') return null;
    const { told, leaseRef, terms } = lease;
    if (look.mark !== told.token) return null;
    return { mark: told.token, live: heldLease(lease, told), atMark: { leaseRef, principal: terms.principal, ended: null }, everNamed: true };
  }

  /** Looks at memory again: things may have moved while the journal was read. */
  async #factsFrom(resource: Resource, presented: FencingToken | null, stored: Mark | null): Promise<TokenFacts> {
    const lease = presented === null ? null : this.#deps.table.liveByToken(presented);
    const told = lease?.open && lease.covers(resource.key) ? lease.told : null;
    const live = lease !== null && told !== null ? heldLease(lease, told) : null;
    const fresher = live !== null && (stored === null || live.token > stored.token);
    const mark = fresher ? live.token : (stored?.token ?? null);
    const holder =
      this.#deps.coordinator.look(resource.key)?.holders.some(({ terms, told: granted }) => terms.session !== null && granted !== null) === true;
    const everNamed = holder || stored?.everNamed === true;
    if (fresher) return { mark, live, atMark: { leaseRef: live.leaseRef, principal: live.principal, ended: null }, everNamed };
    return { mark, live, atMark: await this.#atMark(stored), everNamed };
  }

  async #atMark(stored: Mark | null): Promise<TokenFacts['atMark']> {
    if (stored === null || stored.leaseRef === null) return null;
    const { leaseRef, principal } = stored;
    const lease = this.#deps.table.byRef(leaseRef);
    if (lease !== null) {
      const decided = lease.decided;
      return { leaseRef, principal, ended: decided === null ? null : { reason: decided.end.reason, endedAt: decided.endedAt } };
    }
    const ended = await this.#deps.journal.endedLease(leaseRef);
    // The lease of a token-less write is stored nowhere: it ended with its write.
    return { leaseRef, principal, ended: { reason: ended?.reason ?? 'released', endedAt: ended?.endedAt ?? null } };
  }

  #implicit({ resources, caller }: ImplicitLeaseRequest): Lease {
    const { clock, leaseIds, desk, nextOrder } = this.#deps;
    const leaseId = leaseIds.next();
    return desk.make({
      leaseId,
      leaseRef: leaseRefOf(leaseId),
      resources: inCanonicalOrder(resources),
      mode: 'exclusive',
      principal: caller.principal.name,
      clientId: caller.clientId,
      priority: PRIORITY_DEFAULT,
      createdOrder: nextOrder(),
      createdMs: clock.monotonicMs(),
      createdAt: rfc3339(clock.wallMs()),
      ttlMs: 0,
      maxWaitMs: null,
      maxHoldMs: null,
      lockDelayMs: 0,
      metadata: null,
      session: null,
      caller,
    });
  }

  #whyNot(lease: Lease): GatewayError {
    const cycle = lease.decided?.end.cycle;
    if (cycle !== undefined)
      return new GatewayError('deadlock', {
        detail: 'These waits go round in a circle; this one gives way.',
        members: { cycle: cycleMembers(cycle) },
      });
    if (lease.decided?.end.state === 'lost') {
      return new GatewayError('draining', {
        detail: 'The gateway gave up everybody who waits: it is stopping, or starts its tokens anew.',
        retryAfterMs: 1_000,
      });
    }
    return lease.failure ?? this.#locked(lease);
  }

  #waitedOut(lease: Lease): GatewayError {
    const suspension = this.#deps.coordination.refusal();
    if (suspension !== null) return suspension;
    return lease.looked ? this.#locked(lease) : notLookedYet();
  }

  #locked(lease: Lease): GatewayError {
    const looks = lease.resources.map(({ key }) => this.#deps.coordinator.look(key));
    const busy = looks.find((look) => look !== null && !look.holders.includes(lease)) ?? null;
    const holder = busy?.holders[0] ?? null;
    const ownPlace = lease.phase === 'waiting' ? 1 : 0;
    const restMs = holder === null ? 1_000 : holder.deadlineMs - this.#deps.clock.monotonicMs();
    const queueLength = Math.max(0, (busy?.queueLength ?? ownPlace) - ownPlace);
    const foreign = foreignThere(this.#deps.coordinator, busy);
    return new GatewayError('resource_locked', {
      detail: foreignDetail(foreign) ?? 'Somebody else holds this resource.',
      members: { holder_client_id: holder?.clientId ?? null, queue_length: queueLength, ...foreignMembers(foreign) },
      retryAfterMs: Number.isFinite(restMs) ? Math.max(1_000, Math.min(restMs, 60_000)) : 1_000,
    });
  }
}

/** Contact comes back for everybody at once, so whoever waits looks again every so often instead of being told. */
function waitForContact(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = clock.after(delayMs, done);
    signal.addEventListener('abort', done);
  });
}

function heldLease(lease: Lease, told: NonNullable<Lease['told']>): HeldLease {
  const { leaseRef, resources, principal, clientId } = lease.terms;
  return { leaseRef, resources, mode: told.mode, token: told.token, principal, clientId };
}
