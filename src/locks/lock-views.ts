import { type Clock, rfc3339 } from '../domain/clock.ts';
import type { FenceLevel } from '../domain/fence-level.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import type { EndedLease, Journal } from '../domain/journal.ts';
import type { LeaseMode } from '../domain/lease.ts';
import { LIMITS } from '../domain/limits.ts';
import type { LeaseView, LockFilter, LockParty, LockView } from '../domain/lock-api.ts';
import type { WatchScope } from '../domain/lock-events.ts';
import type { Resource } from '../domain/resource.ts';
import type { VolumePolicy } from '../domain/volume.ts';
import type { Coordination } from './coordination.ts';
import type { Coordinator, ResourceLook } from './coordinator.ts';
import { endsSettled } from './ends-settled.ts';
import type { HoldTimes } from './hold-times.ts';
import type { Lease } from './lease-record.ts';
import type { LeaseTable } from './lease-table.ts';
import { placeAfter } from './place-cursor.ts';
import type { SignedTokens } from './signed-token.ts';

export interface LockViewsDeps {
  readonly clock: Clock;
  readonly coordinator: Coordinator<Lease>;
  readonly coordination: Pick<Coordination, 'remainderMs'>;
  readonly journal: Pick<Journal, 'mark'>;
  readonly holdTimes: HoldTimes;
  readonly table: LeaseTable;
  readonly signedTokens: SignedTokens;
  readonly policy: (volume: string) => VolumePolicy;
  readonly fenceLevel: (volume: string) => FenceLevel | null;
}

/** What people and clients see of leases and locks: from the authoritative state, never from a copy (R26). */
export class LockViews {
  readonly #deps: LockViewsDeps;

  constructor(deps: LockViewsDeps) {
    this.#deps = deps;
  }

  lease(lease: Lease, holdId: string | null): LeaseView {
    const { terms, told, state, decided } = lease;
    const granted = lease.phase === 'held' || lease.phase === 'over' ? told : null;
    const live = lease.phase !== 'over';
    const restMs = this.#restMs(lease);
    const expiresInMs = live ? Math.max(0, restMs) : 0;
    return {
      leaseId: terms.leaseId,
      leaseRef: terms.leaseRef,
      resources: terms.resources,
      mode: told?.mode ?? lease.mode,
      state,
      fencingToken: granted?.token ?? null,
      signedToken: state === 'held' || state === 'ending' ? this.#signed(lease) : null,
      clientId: terms.clientId,
      sessionId: terms.session?.terms.sessionId ?? null,
      priority: terms.priority,
      holdCount: live ? lease.holds.size : 0,
      holdId,
      ttlMs: lease.ttlMs,
      expiresInMs,
      holdExpiresInMs: live && Number.isFinite(lease.holdDeadlineMs) ? Math.max(0, lease.holdDeadlineMs - this.#deps.clock.monotonicMs()) : null,
      leaseExpiresAt: live && granted !== null ? rfc3339(this.#deps.clock.wallMs() + expiresInMs) : null,
      grantedAt: granted === null ? null : lease.grantedAt,
      queuePosition: this.#deps.coordinator.position(lease) ?? (lease.becomingExclusive || (lease.grantPutOff && lease.open) ? 1 : null),
      acquiredZnodePath: granted === null ? null : (lease.acquiredZnodePath ?? this.#deps.coordinator.nodePath(lease)),
      reason: decided?.end.reason ?? lease.failure?.code ?? openReason(lease),
      cycle: decided?.end.cycle ?? lease.cycle,
      metadata: terms.metadata,
    };
  }

  /** A lease that ended before a restart: as it was held or waited, as far as the journal knows. */
  forgotten(leaseId: string, { leaseRef, state, reason, lease }: EndedLease): LeaseView {
    return {
      leaseId,
      leaseRef,
      resources: lease?.resources ?? [],
      mode: lease?.mode ?? null,
      state,
      fencingToken: lease?.token ?? null,
      signedToken: null,
      clientId: lease?.clientId ?? null,
      sessionId: lease?.sessionId ?? null,
      priority: lease?.priority ?? null,
      holdCount: 0,
      holdId: null,
      ttlMs: lease?.ttlMs ?? null,
      expiresInMs: 0,
      holdExpiresInMs: null,
      leaseExpiresAt: null,
      grantedAt: lease?.grantedAt ?? null,
      queuePosition: null,
      acquiredZnodePath: lease?.acquiredZnodePath ?? null,
      reason,
      cycle: null,
      metadata: lease?.metadata ?? null,
    };
  }

  async lock(resource: Resource): Promise<LockView> {
    await endsSettled(this.#deps.table.untoldOn(resource.key), this.#deps.clock);
    const foreign = await this.#deps.coordinator.refresh(resource);
    const mark = await this.#deps.journal.mark(resource.key);
    const look = this.#deps.coordinator.look(resource.key);
    if (look !== null) return this.#lookView(look, mark?.token ?? null);
    const untold = this.#deps.table.untoldOn(resource.key);
    return {
      resource,
      mode: modeOf(untold),
      highWaterMark: mark?.token ?? null,
      holders: untold.map((lease) => this.#party(lease, resource)),
      waiters: [],
      queueLength: 0,
      waitEstimateMs: foreign.length > 0 ? null : 0,
      heldBackMs: 0,
      znodePath: this.#deps.coordinator.resourcePath(resource),
      foreign,
      fenceLevel: this.#fenceLevel(resource, foreign.length > 0),
    };
  }

  /** Who contends by another recipe holds as soon as nobody of ours does, and no token stands behind it. */
  #fenceLevel({ volume }: Resource, foreignHolds: boolean): FenceLevel | null {
    const level = this.#deps.fenceLevel(volume);
    return level !== null && foreignHolds ? 'token' : level;
  }

  /** In the order in which the locks came to be; the cursor is the place of the last one. Throws `invalid_request` for a bad cursor. */
  async locks(filter: LockFilter): Promise<{ readonly locks: readonly LockView[]; readonly nextCursor: string | null }> {
    const limit = Math.min(Math.max(1, filter.limit), LIMITS.lockPageMax);
    await endsSettled([...this.#deps.table.untoldHolders()], this.#deps.clock);
    const found: { readonly id: number; readonly look: ResourceLook<Lease> }[] = [];
    for (const entry of this.#deps.coordinator.entries(placeAfter(filter.cursor))) {
      if (!this.#matches(entry.look, filter)) continue;
      found.push(entry);
      if (found.length > limit) break;
    }
    const page = found.slice(0, limit);
    const gone = found.length > limit ? [] : this.#onlyUntold(filter);
    const locks = await Promise.all(
      page.map(async ({ look }) => this.#lookView(look, (await this.#deps.journal.mark(look.resource.key))?.token ?? null)),
    );
    locks.push(...(await Promise.all(gone.map((resource) => this.lock(resource)))));
    return { locks, nextCursor: found.length > limit ? String(page.at(-1)?.id ?? 0) : null };
  }

  /** Names of which the coordinator has nothing left, while the journal does not have the end of their holder: after the last page, up to as many again. */
  #onlyUntold({ volume, state, olderThanMs }: LockFilter): readonly Resource[] {
    const resources = new Map<string, Resource>();
    if (state === 'waiting') return [];
    const sinceMs = this.#deps.clock.monotonicMs() - (olderThanMs ?? 0);
    for (const lease of this.#deps.table.untoldHolders()) {
      if (resources.size >= LIMITS.lockPageMax) break;
      if (lease.grantedMs > sinceMs) continue;
      for (const resource of lease.resources) {
        const listed = this.#deps.coordinator.look(resource.key) !== null || (volume !== undefined && resource.volume !== volume);
        if (!listed) resources.set(resource.key, resource);
      }
    }
    return [...resources.values()];
  }

  /** The present state of what a watch is about, at most one page. */
  async present(scope: WatchScope, sessionRef: string | null): Promise<readonly LockView[]> {
    if (scope.of === 'resource') return [await this.lock(scope.resource)];
    const resources = new Map<string, Resource>();
    const wanted = (lease: Lease, resource: Resource): boolean => {
      if (scope.of === 'session') return lease.terms.session?.terms.sessionRef === sessionRef;
      return (scope.volume === null || resource.volume === scope.volume) && resource.path.startsWith(scope.pathPrefix);
    };
    for (const leases of [this.#deps.table.untoldHolders(), this.#deps.table.live()]) {
      for (const lease of leases) {
        for (const resource of lease.resources) if (wanted(lease, resource)) resources.set(resource.key, resource);
        if (resources.size >= LIMITS.lockPageMax) break;
      }
    }
    return Promise.all([...resources.values()].slice(0, LIMITS.lockPageMax).map((resource) => this.lock(resource)));
  }

  /** Only where the volumes of the lease ask for it. */
  #signed(lease: Lease): string | null {
    const { told, terms } = lease;
    if (told === null || !terms.resources.some(({ volume }) => this.#deps.policy(volume).tokens === 'signed')) return null;
    return this.#deps.signedTokens.sign({ ...told, leaseRef: terms.leaseRef, resources: terms.resources, principal: terms.principal });
  }

  #matches(look: ResourceLook<Lease>, filter: LockFilter): boolean {
    if (filter.volume !== undefined && look.resource.volume !== filter.volume) return false;
    if (filter.state === 'waiting' && look.queueLength === 0) return false;
    const { holders } = look;
    if (filter.state === 'held' && holders.length === 0) return false;
    const heldBack = filter.state === undefined && heldBackMs(look, this.#deps.clock) > 0;
    if (filter.olderThanMs === undefined) return holders.length > 0 || look.queueLength > 0 || heldBack;
    const sinceMs = this.#deps.clock.monotonicMs() - filter.olderThanMs;
    const heldLong = filter.state !== 'waiting' && holders.some((lease) => lease.phase === 'held' && lease.grantedMs <= sinceMs);
    return heldLong || (filter.state !== 'held' && waitsSince(look, sinceMs));
  }

  #lookView(look: ResourceLook<Lease>, durableMark: FencingToken | null): LockView {
    // As far as it may be told: whose end is not in the journal yet holds still, and whoever comes in with a unit under way waits still.
    const untold = this.#deps.table.untoldOn(look.resource.key);
    const comesIn = ({ phase, grantPutOff, told, terms }: Lease): boolean =>
      phase === 'granting' || (grantPutOff && phase === 'waiting') || (untold.length > 0 && (told === null || terms.session === null));
    const holders = [...new Set([...untold, ...look.holders.filter((lease) => !comesIn(lease))])];
    // One that is about to end waits for nothing more.
    const inLine = [...look.waiters()].filter((lease) => lease.phase === 'waiting' || lease.upgrading);
    const upgrader = look.holders.filter(({ upgrading }) => upgrading);
    const waiters = [...new Set([...upgrader, ...look.holders.filter(comesIn), ...inLine])];
    let mark = durableMark;
    for (const { told } of holders) if (told !== null && (mark === null || told.token > mark)) mark = told.token;
    const backMs = heldBackMs(look, this.#deps.clock);
    const estimateMs = this.#estimateMs(look, waiters);
    return {
      resource: look.resource,
      mode: modeOf(holders),
      highWaterMark: mark,
      holders: holders.map((lease) => this.#party(lease, look.resource)),
      waiters: waiters.map((lease) => this.#party(lease, look.resource, lease.upgrade?.askedAt)),
      queueLength: waiters.length,
      waitEstimateMs: estimateMs === null ? null : estimateMs + backMs,
      heldBackMs: backMs,
      znodePath: this.#deps.coordinator.resourcePath(look.resource),
      foreign: look.foreign,
      fenceLevel: this.#fenceLevel(look.resource, holders.length === 0 && look.foreign.length > 0),
    };
  }

  /** `null` also while somebody holds by another recipe: nothing is known of that one. */
  #estimateMs({ holders, foreign }: ResourceLook<Lease>, waiters: readonly Lease[]): number | null {
    if (foreign.length > 0) return null;
    const nowMs = this.#deps.clock.monotonicMs();
    const soFar = holders.map(({ phase, grantedMs, holdDeadlineMs, breaksAtMs }) => ({
      heldMs: phase === 'held' ? nowMs - grantedMs : 0,
      atMostMs: Math.min(holdDeadlineMs, breaksAtMs) - nowMs,
    }));
    return this.#deps.holdTimes.estimateMs(soFar, turnsOf(waiters));
  }

  /** What is held is held no longer than an administrator's grace, and the coordinator's proof, go. */
  #restMs(lease: Lease): number {
    const ownMs = lease.deadlineMs - this.#deps.clock.monotonicMs();
    if (lease.phase === 'waiting') return ownMs;
    return Math.min(ownMs, lease.breaksAtMs - this.#deps.clock.monotonicMs(), this.#deps.coordination.remainderMs());
  }

  #party(lease: Lease, resource: Resource, since = lease.grantedAt ?? lease.terms.createdAt): LockParty {
    const restMs = this.#restMs(lease);
    return {
      leaseRef: lease.leaseRef,
      clientId: lease.clientId,
      since,
      expiresInMs: Number.isFinite(restMs) ? Math.max(0, restMs) : 0,
      ttlMs: lease.ttlMs,
      lockDelayMs: lease.lockDelayMs,
      priority: lease.priority,
      znode: this.#deps.coordinator.nodePath(lease, resource).split('/').at(-1) ?? null,
      reason: purposeOf(lease.terms),
    };
  }
}

function purposeOf({ metadata }: Lease['terms']): string | null {
  const reason = metadata?.['reason'];
  if (typeof reason !== 'string' || reason === '') return null;
  // By whole characters: half of one could not be sent.
  return reason.length <= LIMITS.leaseReasonShownMax ? reason : [...reason].slice(0, LIMITS.leaseReasonShownMax).join('');
}

function modeOf([first]: readonly Lease[]): LeaseMode | null {
  return first?.told?.mode ?? null;
}

/** What is left of a lock-delay. */
function heldBackMs({ heldBackUntilMs }: ResourceLook<Lease>, clock: Clock): number {
  return Math.max(0, heldBackUntilMs - clock.monotonicMs());
}

function waitsSince(look: ResourceLook<Lease>, sinceMs: number): boolean {
  for (const { terms, upgrade } of look.waiters()) if ((upgrade?.askedMs ?? terms.createdMs) <= sinceMs) return true;
  return false;
}

/** What is to be known of a lease that is not over, beside its state. */
function openReason(lease: Lease): string | null {
  if (Number.isFinite(lease.breaksAtMs)) return 'breaking';
  return lease.upgradeLost ? 'upgrade_lost' : null;
}

/** Readers that stand side by side come in together; who becomes the writer does so alone. */
function turnsOf(waiters: readonly Lease[]): number {
  return waiters.filter((lease, i) => {
    const before = waiters[i - 1];
    return before === undefined || !reads(before) || !reads(lease);
  }).length;
}

function reads({ mode, upgrading }: Lease): boolean {
  return mode === 'shared' && !upgrading;
}
