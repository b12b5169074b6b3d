import type { BreakReport, BreakRequest, CoordinatorNode, LeaseCondition, WaitForEdge } from '../domain/administration.ts';
import type { Clock, Random } from '../domain/clock.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { FenceLevel } from '../domain/fence-level.ts';
import type { CoordinatorReadiness } from '../domain/health.ts';
import type { Journal, JournalStart, RefusalLog } from '../domain/journal.ts';
import type { WriteLeases } from '../domain/lease.ts';
import { LIMITS } from '../domain/limits.ts';
import type { LockService, LockView } from '../domain/lock-api.ts';
import type { LockEvents, WatchScope } from '../domain/lock-events.ts';
import type { Caller } from '../domain/principal.ts';
import type { Resource } from '../domain/resource.ts';
import type { TokenCeilings } from '../domain/token-ceilings.ts';
import type { VolumePolicy } from '../domain/volume.ts';
import { Acquiring } from './acquiring.ts';
import { BreakDesk } from './break-desk.ts';
import { BrokenWrites } from './broken-writes.ts';
import { Converting } from './converting.ts';
import type { Coordination } from './coordination.ts';
import { embeddedCoordination } from './embedded/embedded-coordination.ts';
import { endKinds } from './end-kinds.ts';
import { type EndsNotStored, endsAtStop } from './ends-at-stop.ts';
import { EndsTold } from './ends-told.ts';
import { EventRing } from './event-ring.ts';
import { Graces, interruptedBreaks } from './graces.ts';
import { Granting } from './granting.ts';
import { HoldTimes } from './hold-times.ts';
import { Holding } from './holding.ts';
import { LeaseConditions } from './lease-conditions.ts';
import { LeaseDesk } from './lease-desk.ts';
import { LeaseIds } from './lease-ids.ts';
import { LeaseLedger } from './lease-ledger.ts';
import type { Lease } from './lease-record.ts';
import { LeaseTable } from './lease-table.ts';
import { LockAudit } from './lock-audit.ts';
import { LockFigureBoard, type LockFigures } from './lock-figures.ts';
import { LeaseService } from './lock-service.ts';
import { LockViews } from './lock-views.ts';
import { LockWatch } from './lock-watch.ts';
import { Pinnable } from './pinnable.ts';
import { ReconnectGate } from './reconnect-gate.ts';
import { Refusals } from './refusals.ts';
import { RefusedTokens } from './refused-tokens.ts';
import { Renewing } from './renewing.ts';
import { restoreLocks } from './restore.ts';
import { SessionDesk } from './session-desk.ts';
import { Sessions } from './sessions.ts';
import { SignedTokens, type SigningKey } from './signed-token.ts';
import { WaitersContact } from './waiters-contact.ts';
import { LocksForWrites } from './write-leases.ts';

export interface LockServiceDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly journal: Journal;
  readonly refusals: RefusalLog;
  readonly ceilings: TokenCeilings;
  /** Throws `volume_not_found`. */
  readonly policy: (volume: string) => VolumePolicy;
  /** For the records of refusals: what a code is answered with. */
  readonly statusOf: (code: ErrorCode) => number;
  /** For audit records; `null` for a lock-only volume. */
  readonly fenceLevel: (volume: string) => FenceLevel | null;
  /** `null`: the embedded one. */
  readonly coordination?: ((queueMax: (volume: string) => number) => Coordination) | null;
  /** Signed tokens are signed over the coordinator's id: with the embedded one, this. */
  readonly gatewayUuid: string;
  /** The first signs, all verify; empty: no volume has `tokens: signed`. */
  readonly signingKeys: readonly SigningKey[];
}

export interface Locks {
  readonly service: LockService;
  readonly writeLeases: WriteLeases;
  readonly events: LockEvents;
  breakLock(caller: Caller, request: BreakRequest): Promise<BreakReport>;
  waitFor(): readonly WaitForEdge[];
  /** Every live lease as a diagnosis sees it, in no order. */
  conditions(): Iterable<LeaseCondition>;
  /** Fenced first. Rejects with `not_found` when it has ended, or unless its client is proven gone or a `reason` is given. */
  endLease(caller: Caller, leaseRef: string, reason: string | null): Promise<'ended' | 'pending'>;
  /** See `Coordination`. */
  nodes(): Promise<readonly CoordinatorNode[]>;
  removeOrphan(node: CoordinatorNode): Promise<boolean>;
  /** By volume; a volume without locks is not in it. */
  figures(): ReadonlyMap<string, LockFigures>;
  readiness(): CoordinatorReadiness;
  /**
   * Before anything is granted. `above`: the highest number that may ever have been issued, in tokens as clients see them (stamp
   * ceilings, floors, the base of a rebase). `comeBack` false: nothing of before is valid any more.
   */
  restore(start: JournalStart, options: { readonly above: bigint; readonly comeBack: boolean }): Promise<void>;
  /** A volume opened later and carries a higher ceiling: tokens go on above it (I6). */
  raiseAbove(token: bigint): void;
  /** `fence rebase`: tokens go on above `base`; every lease is lost. */
  rebase(base: bigint): Promise<void>;
  /**
   * `shutdown`: waiters are answered, holders keep their leases. `stop`: who holds through a session that ends with this process is told, others keep
   * theirs over the restart. `lost`: everything ends, of one volume or of all.
   */
  endAll(how: 'shutdown' | 'stop' | 'lost', volume: string | null): Promise<void>;
  /** Before `stop`: what the journal refused is tried once more. Resolves with what it does not have. */
  endsAtStop(): Promise<EndsNotStored>;
  /** Cancels every timer. */
  stop(): void;
}

/** Builds the lock service over one coordinator: the whole wiring of this room. */
export function createLockService(deps: LockServiceDeps): Locks {
  const { clock, random, journal, policy } = deps;
  const parts = buildParts(deps);
  const { coordination, pinnable, coordinator, leaseIds, events, audit, ledger, table, desk, sessions, signedTokens, views, writes } = parts;
  const { acquiring, converting, sessionDesk, service } = leaseService(deps, parts);
  const nextOrder = (): number => acquiring.nextOrder();
  const writeLeases = new LocksForWrites({
    clock,
    leaseIds,
    journal,
    coordinator,
    coordination,
    pinnable,
    table,
    desk,
    refusedTokens: parts.refusedTokens,
    ledger,
    signedTokens,
    nextOrder,
  });
  const graces = new Graces({ clock, random, coordinator, table, desk, journal, writes, events, audit });
  const breaking = new BreakDesk({ clock, coordinator, desk, table, writes, graces });
  const conditions = new LeaseConditions({ clock, random, table, desk, writes });
  const figures = new LockFigureBoard(coordinator, clock);
  const ownSessionRef = (caller: Caller, sessionId: string): Promise<string> => service.sessionWatched(caller, sessionId);
  const present = (scope: WatchScope, sessionRef: string | null): Promise<readonly LockView[]> => views.present(scope, sessionRef);
  const endAll: Locks['endAll'] = async (how, volume) => {
    if (how === 'stop' && coordination.seating !== null) return;
    if (how === 'shutdown') acquiring.drain();
    const over = endEvery(parts, how === 'stop' ? 'lost' : how, volume);
    // When nobody is left who waits, so nobody comes in beside a reader that asked to be alone.
    if (how === 'shutdown') converting.drain(table.live());
    await over;
  };
  followContact(coordination, events, () => void endEvery(parts, 'session_lost', null));
  return {
    service,
    writeLeases,
    events: new LockWatch({ clock, ring: events, ownSessionRef, present }),
    breakLock: (caller, request) => breaking.breakLock(caller, request),
    waitFor: () =>
      coordinator
        .waitFor(LIMITS.waitForLinksMax)
        .map(({ waiter, blocker, resource }) => ({ waiterLeaseRef: waiter.leaseRef, holderLeaseRef: blocker.leaseRef, resource: resource.name })),
    conditions: () => conditions.all(),
    endLease: (caller, leaseRef, reason) => conditions.end(caller, leaseRef, reason),
    ...contactWith(coordination),
    figures: () => figures.read(),
    async restore(start, { above, comeBack }) {
      await leaseIds.begin(start, journal);
      coordination.raiseAbove(above);
      coordination.raiseAbove(start.highestMark() ?? 0n);
      const interrupted = interruptedBreaks(start);
      await restoreLocks(
        { clock, journal, coordinator: coordination.seating, table, desk, ledger, audit, sessions, nextOrder, isVolume: isVolumeOf(policy) },
        start,
        comeBack,
      );
      await graces.restore(interrupted);
    },
    async rebase(base) {
      await coordination.rebase(base);
      await endAll('lost', null);
    },
    endAll,
    endsAtStop: () => endsAtStop({ clock, table, ends: parts.ends, sessionDesk }),
    stop() {
      desk.stop();
      sessionDesk.stop();
      coordinator.stop();
      graces.stop();
    },
  };
}

type Parts = ReturnType<typeof buildParts>;

/** What clients ask, over the parts. */
function leaseService({ clock, random, journal, policy }: LockServiceDeps, parts: Parts) {
  const { coordination, coordinator, leaseIds, ledger, table, desk, sessions, views, refusals, events } = parts;
  const contact = new WaitersContact(coordination, table);
  const converting = new Converting({ clock, coordinator, desk, table, ledger, events, assertContact: () => contact.assert() });
  const gate = new ReconnectGate(clock, random);
  const holding = new Holding({ desk, ledger, converting });
  const acquiring = new Acquiring({
    clock,
    random,
    leaseIds,
    contact,
    policy,
    coordinator,
    desk,
    sessions,
    views,
    converting,
    holding,
    ledger,
  });
  const renewing = new Renewing({ clock, table, ledger, gate, policy });
  const sessionDesk = new SessionDesk({ ...parts, clock, random, gate });
  const asked = { acquiring, converting, renewing, holding, sessionDesk };
  const service = new LeaseService({ clock, journal, table, desk, views, refusals, sessions, leaseIds, ...asked });
  return { acquiring, converting, sessionDesk, service };
}

/** Ends what waits, or all; what is pinned by a commit section is not waited for. */
async function endEvery({ table, desk }: Parts, how: 'shutdown' | 'lost' | 'session_lost', volume: string | null): Promise<void> {
  const concerned = (lease: Lease): boolean => volume === null || lease.resources.some((resource) => resource.volume === volume);
  const over = [...table.live()].filter((lease) => (how !== 'shutdown' || lease.phase !== 'held') && concerned(lease));
  const end = how === 'session_lost' ? endKinds.sessionLost() : endKinds.lost();
  desk.decide(over.map((lease) => ({ lease, end })));
  await Promise.allSettled(over.filter((lease) => lease.pins === 0).map((lease) => desk.endTold(lease)));
}

function isVolumeOf(policy: LockServiceDeps['policy']): (name: string) => boolean {
  return (name) => {
    try {
      return policy(name).name === name;
    } catch {
      return false;
    }
  };
}

/** Watches hear of it; a lost session voids everything that is held or waited for. */
function followContact(coordination: Coordination, events: EventRing, onLost: () => void): void {
  coordination.onState((state) => {
    if (state === 'suspended' || state === 'reconnected') events.contact(state);
    if (state === 'lost') onLost();
  });
}

/** What others may ask the coordination itself. */
function contactWith(coordination: Coordination): Pick<Locks, 'nodes' | 'removeOrphan' | 'readiness' | 'raiseAbove'> {
  return {
    nodes: () => coordination.nodes(),
    removeOrphan: (node) => coordination.removeOrphan(node),
    readiness: () => coordination.readiness(),
    raiseAbove: (token) => coordination.raiseAbove(token),
  };
}

/** The parts that need nothing but each other. */
function buildParts(deps: LockServiceDeps) {
  const { clock, random, journal, policy } = deps;
  const queueMax = (volume: string): number => Math.min(policy(volume).limits.queueLength, LIMITS.contendersPerResourceMax);
  const coordination = deps.coordination?.(queueMax) ?? embeddedCoordination(clock, queueMax);
  const { coordinator } = coordination;
  const shared = coordinator.kind !== 'embedded';
  const leaseIds = new LeaseIds({ clock, random, marks: () => marksOf(coordination, deps.gatewayUuid), shared });
  const events = new EventRing(clock);
  const holdTimes = new HoldTimes();
  const audit = new LockAudit(clock, deps.fenceLevel);
  const markOf = ({ key }: Pick<Resource, 'key'>) => coordinator.look(key)?.markTold ?? null;
  const ledger = new LeaseLedger({ journal, clock, audit, nodePath: (lease) => coordinator.nodePath(lease), markOf });
  const table = new LeaseTable(clock, () => void desk.now());
  const pinnable = new Pinnable({ table, coordination, finishesHeld: (volume) => policy(volume).onCoordinatorLoss === 'finish_held' });
  const granting = new Granting({ clock, coordinator, table, ledger, ceilings: deps.ceilings, events });
  const ends = new EndsTold({ clock, table, ledger, events });
  const desk: LeaseDesk = new LeaseDesk({ clock, coordinator, pinnable, table, granting, ends, events, holdTimes, ledger });
  const refusedTokens = new RefusedTokens({ clock, table, ends });
  const sessions = new Sessions({ clock, random });
  const signedTokens = new SignedTokens(() => coordination.coordinatorId() ?? deps.gatewayUuid, deps.signingKeys);
  const views = new LockViews({ clock, coordinator, coordination, table, journal, holdTimes, signedTokens, policy, fenceLevel: deps.fenceLevel });
  const refusals = new Refusals({ clock, log: deps.refusals, audit, statusOf: deps.statusOf, markOf: (key) => markOf({ key }) });
  return {
    ends,
    writes: new BrokenWrites(journal),
    coordination,
    pinnable,
    coordinator,
    leaseIds,
    events,
    audit,
    ledger,
    table,
    desk,
    sessions,
    signedTokens,
    views,
    refusals,
    refusedTokens,
  };
}

/** Of an ensemble everybody who takes over has the id; without one the gateway has its own. */
function marksOf(coordination: Coordination, gatewayUuid: string): readonly string[] {
  if (coordination.coordinator.kind === 'embedded') return [gatewayUuid];
  const coordinatorId = coordination.coordinatorId();
  return coordinatorId === null ? [] : [coordinatorId];
}
