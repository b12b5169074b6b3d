import type { AuditAction, AuditDraft } from '../domain/audit-record.ts';
import type { DeadlockStep } from '../domain/deadlock.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import type { ForeignContenders } from '../domain/foreign-contenders.ts';
import type { LeaseEndState } from '../domain/lease.ts';
import type { Caller } from '../domain/principal.ts';

/** Why and how a lease ends. */
export interface End {
  readonly state: LeaseEndState;
  readonly reason: string;
  readonly action: AuditAction;
  readonly code: ErrorCode | null;
  /** Who asked for it; `null` when time did. */
  readonly caller: Caller | null;
  /** False: the holder may not know, so the lock-delay applies and the session is told. */
  readonly clean: boolean;
  /** The mark is raised to a token that nobody gets, before the lease ends. */
  readonly fence: boolean;
  /** LOST is what ended it: nobody knows what became of the others, either. */
  readonly sessionLost?: true;
  readonly cycle?: readonly DeadlockStep[];
  /** Of a wait that ran out: who else stood where it waited. */
  readonly foreign?: ForeignContenders;
  /** For its record (`auditDetail`, `deadlockDetail`). */
  readonly detail?: string;
  /** The same, asked for when nothing pins the lease any more: until then a write that had entered its last step may be committed. */
  readonly lateDetail?: () => Promise<string>;
  /** Names a break among the operations. */
  readonly operationId?: string | null;
  /** The resource, by its key, whose announced break this end carries out. Every other end means that nothing came of the announcement. */
  readonly announcedOn?: string;
}

/** A break that an administrator has announced for one resource of a lease. */
export interface AnnouncedEnd {
  readonly record: AuditDraft;
  readonly untilMs: number;
}

/** An end that is decided. `durable` settles when it may be told; `endedAt` is set when it takes effect. */
export interface DecidedEnd {
  end: End;
  /** The break that `end` was until nobody could be fenced, and the `detail` for its record. */
  abandoned: { readonly end: End; readonly detail: string | undefined } | null;
  endedAt: string | null;
  fencedBy: FencingToken | null;
  /** For its record. */
  detail: string | undefined;
  /** Resolves when `fencedBy` is known, or cannot be. */
  fencing: Promise<void> | null;
  durable: Promise<void>;
}

export function decidedEnd(end: End): DecidedEnd {
  return { end, abandoned: null, endedAt: null, fencedBy: null, detail: end.detail, fencing: null, durable: Promise.resolve() };
}
