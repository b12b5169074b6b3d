import type { CommittedWrites } from './audit-record.ts';
import type { FencingToken } from './fencing-token.ts';
import type { CoordinatorReadiness, VolumeReadiness } from './health.ts';
import type { LeaseMode } from './lease.ts';
import type { LockView, SessionView } from './lock-api.ts';
import type { MountFacts } from './mount-facts.ts';
import type { Caller } from './principal.ts';
import type { Resource } from './resource.ts';

/** What an administrator may do; every change is audited by whoever carries it out, before the answer. */

export interface BrokenLease {
  readonly leaseRef: string;
  readonly clientId: string | null;
  readonly mode: LeaseMode;
  /** `null`: it had been granted nothing yet, and held only the first of several names. */
  readonly fencingToken: FencingToken | null;
  /** Names its break in the audit log and among the operations; `null` when something else was ending it, or a token-less write has it. */
  readonly operationId: string | null;
  readonly committed: CommittedWrites;
}

export interface BreakRequest {
  readonly resource: Resource;
  readonly reason: string;
  /** 0: at once. */
  readonly graceMs: number;
  /**
   * Who is meant: nobody else is broken, however often it is asked, and of leases that a break has ended already the answer is what that one's was.
   * Absent: whoever holds it now.
   */
  readonly leaseRefs?: readonly string[];
}

export interface BreakReport {
  readonly resource: Resource;
  /** `breaking`: a grace period runs, or a commit section still pins the lease. */
  readonly state: 'broken' | 'breaking';
  /** The mark after the break; `null` while `breaking`. */
  readonly highWaterMark: FencingToken | null;
  /** When the grace period ends, RFC 3339; `null` once broken. */
  readonly deadline: string | null;
  readonly leases: readonly BrokenLease[];
}

export type FindingSeverity = 'info' | 'warning' | 'error';

export interface Finding {
  readonly id: string;
  readonly code: string;
  readonly severity: FindingSeverity;
  readonly resource: string | null;
  readonly evidence: Readonly<Record<string, unknown>>;
  /** What the fix would do, in one sentence; `null` when there is no safe one. */
  readonly fix: string | null;
}

export interface FixRequest {
  readonly findingId: string;
  readonly dryRun: boolean;
  /** Also what harms a client that may be alive: an administrator's decision, with its reason. */
  readonly force: boolean;
  readonly reason: string | null;
}

export interface WaitForEdge {
  readonly waiterLeaseRef: string;
  readonly holderLeaseRef: string;
  readonly resource: string;
}

/** Something in the coordinator that needs eyes. */
export interface CoordinatorNode {
  /** `orphan`: made by this gateway's session, and no lease stands behind it. `counter_high`: its sequence numbers come near their end. */
  readonly kind: 'orphan' | 'counter_high';
  readonly resource: Resource;
  /** Its path there. */
  readonly node: string;
  /** How often children of the resource's node were made or deleted. */
  readonly changes: number;
}

/** A live lease as a diagnosis sees it. */
export interface LeaseCondition {
  readonly leaseRef: string;
  readonly clientId: string | null;
  readonly principal: string;
  readonly resources: readonly Resource[];
  readonly state: 'waiting' | 'held' | 'ending';
  /** `null`: a token-less write, which has no session. */
  readonly sessionRef: string | null;
  /** How long it is held, or waits, ms. */
  readonly ageMs: number;
  /** How long nothing was heard of its client, ms; `null` for a token-less write, whose request is its sign of life. */
  readonly silentMs: number | null;
  readonly ttlMs: number;
  /** Why its client counts as gone for certain; `null` when that is not proven. */
  readonly gone: 'session_ended' | 'silent' | null;
}

export interface DoctorReport {
  readonly at: string;
  readonly healthy: boolean;
  readonly findings: readonly Finding[];
  readonly sessions: readonly SessionView[];
  readonly locks: readonly LockView[];
  readonly waitFor: readonly WaitForEdge[];
  readonly coordinator: CoordinatorReadiness;
  readonly volumes: readonly VolumeReadiness[];
}

export interface FenceView {
  readonly resource: Resource;
  readonly highWaterMark: FencingToken | null;
  readonly leaseRef: string | null;
  readonly principal: string | null;
  readonly everNamed: boolean;
  /** Every token up to this one is void on the volume; `null` when none was set. */
  readonly floor: FencingToken | null;
}

export interface RebaseReport {
  readonly base: FencingToken;
  readonly volumes: readonly string[];
}

export interface AdminVolume extends VolumeReadiness {
  /** Where it is mounted on the gateway's host; `null`: lock-only. */
  readonly path: string | null;
  readonly incarnation: string | null;
  readonly readOnly: boolean;
  /** `null`: lock-only, or it never answered. */
  readonly mount: MountFacts | null;
}

export interface Administration {
  /**
   * Fences first. Rejects with `not_found` when nobody holds the resource; of named leases `lease_not_held` when they ended otherwise,
   * `lease_not_found` when there are none on it.
   */
  breakLock(caller: Caller, request: BreakRequest): Promise<BreakReport>;
  doctor(): Promise<DoctorReport>;
  /** Rejects with `not_found` for a finding that is gone, has no fix, or needs force; `invalid_request` for force without a reason. */
  fix(caller: Caller, request: FixRequest): Promise<{ readonly dryRun: boolean; readonly steps: readonly string[] }>;
  fence(resource: Resource): Promise<FenceView>;
  rebase(caller: Caller, reason: string): Promise<RebaseReport>;
  /** Rejects with `volume_not_found`. */
  adopt(caller: Caller, volume: string, reason: string): Promise<VolumeReadiness>;
  volumes(): readonly AdminVolume[];
}
