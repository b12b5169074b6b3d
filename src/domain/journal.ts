import type { AuditAction, AuditDraft, AuditFilter, AuditPage, AuditRecord, ChainReport, Outcome, StoredOutcome } from './audit-record.ts';
import type { MachineTime } from './clock.ts';
import type { ErrorCode } from './errors.ts';
import type { FencingToken } from './fencing-token.ts';
import type { Intent } from './intent.ts';
import type { LeaseEndState, LeaseMode } from './lease.ts';
import type { Resource } from './resource.ts';

/**
 * The journal as the core sees it: units of operations that become durable together, in the order of `commit` calls,
 * many units sharing one disk commit. Every unit begins by comparing the owner row, so a superseded process commits nothing.
 */

/** The high-water mark of a resource and the lease that holds it (invariant I6: keyed by token and lease). */
export interface Mark {
  readonly token: FencingToken;
  readonly leaseRef: string | null;
  readonly principal: string | null;
  /** True once the resource was ever leased by name (policy `require_token: once_leased`). */
  readonly everNamed: boolean;
}

/** A lease as it survives a restart. Implicit leases are never stored. */
export interface StoredLease {
  readonly leaseId: string;
  readonly leaseRef: string;
  readonly sessionId: string;
  readonly resources: readonly Resource[];
  readonly mode: LeaseMode;
  readonly token: FencingToken;
  readonly principal: string;
  readonly clientId: string | null;
  readonly ttlMs: number;
  readonly priority: number;
  readonly maxHoldMs: number | null;
  readonly lockDelayMs: number;
  readonly holds: readonly string[];
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly grantedAt: string;
  readonly acquiredZnodePath: string | null;
  /** It was answered that its upgrade waits. Absent: it does not, or an older program wrote it. */
  readonly upgrading?: true;
  /** How long it had been held when this was written. Absent: an older program wrote it. */
  readonly held?: HeldSoFar;
}

/** A wait whose lease was told to its client, so that a restart, which ends it, can say whose it was. */
export type StoredWait = Pick<
  StoredLease,
  'leaseId' | 'leaseRef' | 'sessionId' | 'resources' | 'mode' | 'principal' | 'clientId' | 'ttlMs' | 'priority' | 'metadata'
> & { readonly waiting: true; readonly token: null; readonly grantedAt: null; readonly acquiredZnodePath: null };

/** As of `at`. */
export interface HeldSoFar {
  readonly ms: number;
  readonly at: MachineTime;
}

export interface StoredSession {
  readonly sessionId: string;
  readonly sessionRef: string;
  readonly principal: string;
  readonly clientId: string | null;
  readonly ttlMs: number;
  readonly createdAt: string;
  /** Made for one lease because the caller named no session. */
  readonly implied: boolean;
}

/** Known for an hour. */
export interface EndedLease {
  readonly leaseRef: string;
  readonly state: LeaseEndState;
  readonly reason: string;
  readonly endedAt: string;
  /** As it was held, or waited; `null` when nobody was told of it, or it ended under an older program. */
  readonly lease: StoredLease | StoredWait | null;
}

/** Known for an hour, unless it was made for one lease. */
export type EndedSession = Pick<StoredSession, 'principal'>;

/** A lease that ended without its client's doing, or a wait that was lost. */
export type LostLease = Pick<StoredLease, 'leaseId' | 'sessionId'> & Pick<EndedLease, 'endedAt'>;

/** A break with a grace period, as it survives a restart: the grace goes on while no process runs. */
export interface AnnouncedBreak {
  readonly resource: Resource;
  readonly reason: string;
  readonly graceMs: number;
  /** When the grace is over, by the wall clock: what processes of two boots share. */
  readonly untilWallMs: number;
  /** When it was announced, by the machine's count. Absent: an older program wrote it. */
  readonly at?: MachineTime;
  readonly by: {
    readonly principal: string;
    readonly authenticated: boolean;
    readonly clientId: string | null;
    readonly remoteAddress: string | null;
    readonly requestId: string;
  };
  /** Whom it means; each has an operation of its own, which ends as `committed` or `aborted`. */
  readonly leases: readonly { readonly leaseRef: string; readonly operationId: string }[];
}

/** The stored answer of a request with an `Idempotency-Key`. */
export interface StoredAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}
export interface IdempotencyScope {
  readonly principal: string;
  readonly method: string;
  readonly path: string;
  readonly key: string;
}
export interface IdempotencyRow {
  readonly fingerprint: string;
  readonly operationId: string;
  readonly answer: StoredAnswer;
}

export type JournalOp =
  /** Raises only (I2); a lower or equal token of the same lease is a no-op. `named`: by a lease that a client asked for. */
  | {
      readonly op: 'raise_mark';
      readonly resource: Resource;
      readonly token: FencingToken;
      readonly leaseRef: string | null;
      readonly principal: string | null;
      readonly named: boolean;
    }
  /** `markOf`: the key of the resource whose mark the record names, as it is then, unless the record knows a higher one. */
  | { readonly op: 'audit'; readonly record: AuditDraft; readonly markOf?: string }
  | { readonly op: 'intent'; readonly intent: Intent }
  /** The last word on an operation after its intent: supersedes the record shown for it, and changes its idempotency row (aborted: removed). */
  | {
      readonly op: 'outcome';
      readonly operationId: string;
      readonly outcome: StoredOutcome;
      readonly record: AuditDraft;
      readonly markOf?: string;
      /** Stands in for the stored one until the last word; `null`: the stored one holds, again. */
      readonly answer: StoredAnswer | null;
      /** Of a break, whose word may travel with several units: nothing, when the journal has it. */
      readonly once?: true;
      /** The file got another tag than the stored answer names. */
      readonly retagged?: { readonly from: string; readonly to: string };
    }
  | { readonly op: 'lease_put'; readonly lease: StoredLease }
  /** Until the `lease_put` of its grant, or its end. */
  | { readonly op: 'wait_put'; readonly wait: StoredWait }
  | ({ readonly op: 'lease_end' } & Omit<EndedLease, 'lease'>)
  | { readonly op: 'session_put'; readonly session: StoredSession }
  | { readonly op: 'session_end'; readonly sessionRef: string }
  /** A hold-back after an unclean end; after a restart it is served again in full. `null`: over. */
  | { readonly op: 'lock_delay'; readonly resourceKey: string; readonly delayMs: number | null }
  /** One a resource; another takes its place. Its records are shown as pending until the `outcome` of their operations. */
  | { readonly op: 'break_put'; readonly announced: AnnouncedBreak; readonly records: readonly AuditDraft[] }
  | { readonly op: 'break_gone'; readonly resourceKey: string }
  | { readonly op: 'idempotency_put'; readonly scope: IdempotencyScope; readonly row: IdempotencyRow; readonly atMs: number }
  /** Incarnation directories that exist or may exist on a volume: published after they were made and synced, forgotten after they were removed and synced. */
  | { readonly op: 'incarnation_put'; readonly volume: string; readonly incarnation: string }
  | { readonly op: 'incarnation_gone'; readonly volume: string; readonly incarnation: string }
  /** Small named facts: token base, coordinator id, `backup` flag, volume floor ("floor:<volume>"), token ceiling ("ceiling:<volume uuid>"), last commit mtime ("mtime:<volume>"). `null` deletes. */
  | { readonly op: 'meta_put'; readonly name: string; readonly value: string | null };

export interface CommitReceipt {
  /** The `seq` of each audit record of the unit (from `audit`, `intent`, `outcome` and `break_put` ops), in order. */
  readonly seqs: readonly number[];
}

export interface OperationView {
  readonly operationId: string;
  readonly action: AuditAction;
  readonly resource: string;
  readonly outcome: Outcome;
  readonly code: ErrorCode | null;
  readonly at: string;
  readonly etag: string | null;
  readonly fencingToken: FencingToken | null;
}

export type OperationKey =
  | { readonly by: 'operation_id'; readonly operationId: string }
  | { readonly by: 'request_id'; readonly requestId: string }
  | { readonly by: 'idempotency_key'; readonly principal: string; readonly key: string };

export interface Journal {
  /**
   * Durable when it resolves. Nothing of the unit is durable, and never will be, when it rejects with `journal_unavailable` (also when this
   * process was superseded), `overloaded` (the queue is full), or `internal` (this unit alone is at fault). `outcome_unknown`: the commit was
   * tried and failed, so the next start may find all of the unit, or nothing; until then nothing more is taken.
   */
  commit(ops: readonly JournalOp[]): Promise<CommitReceipt>;
  /**
   * The intent of `operationId` needs no look at recovery any more, or its announced break is over. In memory; made durable with a later unit.
   * Of an operation in doubt: whatever the next start finds, nothing comes of it.
   */
  settled(operationId: string): void;
  /** False after a failed disk commit: refuse writes before the volume is touched. */
  readonly healthy: boolean;
  /** Why it is not healthy; `null` when it is. Names no path: `/readyz` says it to everybody. */
  readonly reason: string | null;
  /** Called once when the owner row is no longer ours: stop serving at once. */
  onSuperseded(listener: () => void): void;

  mark(resourceKey: string): Promise<Mark | null>;
  /** Rejects with `outcome_unknown` while a grant, a change or the end of the lease is in doubt. */
  endedLease(leaseRef: string): Promise<EndedLease | null>;
  endedSession(sessionRef: string): Promise<EndedSession | null>;
  idempotent(scope: IdempotencyScope): Promise<IdempotencyRow | null>;
  operation(key: OperationKey): Promise<OperationView | null>;
  audit(filter: AuditFilter, page: { readonly order: 'asc' | 'desc'; readonly limit: number; readonly cursor: string | null }): Promise<AuditPage>;
  /** Everything that matches, in pages of short transactions; a slow consumer holds none open. */
  auditStream(filter: AuditFilter, order: 'asc' | 'desc', signal: AbortSignal): AsyncIterable<AuditRecord>;
  verify(fromSeq: number | null, signal: AbortSignal): Promise<ChainReport>;
  head(): { readonly seq: number; readonly hash: string };
}

/** `never`: no intent and no record of it is here; it is another journal's, it was cut off before its intent, or it is long forgotten. */
export type OperationKnown = 'unsettled' | 'settled' | 'never';

/** What start and take-over read before anything is served. */
export interface JournalStart {
  readonly journalUuid: string;
  readonly gatewayUuid: string;
  readonly markedAsBackup: boolean;
  meta(name: string): string | null;
  incarnations(volume: string): readonly string[];
  /** Unsettled intents, the newest per resource only, oldest first. */
  unsettledIntents(volume: string): readonly Intent[];
  /** What was last written to a volume, as far as it is among the newest intents of all, oldest first. */
  newestIntents(volume: string): readonly Intent[];
  /** Whether the newest word on it is that nobody can tell what came of it. */
  saidUnknown(intent: Intent): boolean;
  /** Of what an operation left on a volume only an unsettled one needs anything; a settled one is known for as long as its audit records are. */
  knows(operationId: string): OperationKnown;
  leases(): readonly StoredLease[];
  waits(): readonly StoredWait[];
  sessions(): readonly StoredSession[];
  /** Ended within the hour without their clients' doing, oldest first. */
  lostLeases(): Iterable<LostLease>;
  lockDelays(): readonly { readonly resourceKey: string; readonly delayMs: number }[];
  /** Announced, and not known to be over. */
  announcedBreaks(): readonly AnnouncedBreak[];
  highestMark(): FencingToken | null;
}

/** Refusals are durable before their answer; equal ones within a second are counted (the one exemption from I4). */
export interface RefusalLog {
  refused(record: AuditDraft): Promise<void>;
  /** Requests refused before they had a principal, or for their number: one record per address, code and minute. */
  refusedEarly(record: AuditDraft): void;
  /** Makes every counted refusal durable; awaited before an audit query or a shutdown is answered. */
  flush(): Promise<void>;
}
