import type { AuditAction, StoredOutcome } from '../domain/audit-record.ts';
import type { Clock } from '../domain/clock.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import type { JournalOp } from '../domain/journal.ts';
import type { Caller } from '../domain/principal.ts';
import type { Resource } from '../domain/resource.ts';
import { carriesOut, type RecordOp, withLastWord } from './last-word.ts';
import type { DecidedEnd, End } from './lease-end.ts';
import type { Lease } from './lease-record.ts';
import type { LockAudit } from './lock-audit.ts';

export interface LeaseRecordsDeps {
  readonly clock: Clock;
  readonly audit: LockAudit;
  /** The highest token that the resource has seen, as far as memory knows. */
  readonly markOf: (resource: Resource) => FencingToken | null;
}

/** What a record says beyond what every record of a lease says. `mark`: known before the journal knows it; absent: the token. */
export interface About {
  readonly outcome?: StoredOutcome;
  readonly code?: End['code'];
  readonly mark?: FencingToken | null;
  readonly detail?: string | undefined;
  readonly operationId?: End['operationId'];
}

/** What the audit log is told of a lease: a record for each of its resources. */
export class LeaseRecords {
  readonly #deps: LeaseRecordsDeps;

  constructor(deps: LeaseRecordsDeps) {
    this.#deps = deps;
  }

  record(
    lease: Lease,
    resource: Resource,
    action: AuditAction,
    token: FencingToken | null,
    caller: Caller | null,
    sinceMs: number,
    { outcome, code, mark, detail, operationId }: About = {},
  ): RecordOp {
    const { principal, clientId, leaseRef } = lease.terms;
    const durationMs = Math.round(this.#deps.clock.monotonicMs() - sinceMs);
    return {
      op: 'audit',
      markOf: resource.key,
      record: this.#deps.audit.draft({
        action,
        resource,
        outcome: outcome ?? 'committed',
        code: code ?? null,
        caller,
        owner: { principal, clientId, leaseRef },
        token,
        mark: mark === undefined ? token : mark,
        durationMs,
        detail,
        operationId,
      }),
    };
  }

  /** With the last word on each break that was announced; before them, that of the break which the end was to be, if nothing came of it. */
  ofEnd(lease: Lease, { end, fencedBy, detail, abandoned }: DecidedEnd): JournalOp[] {
    const { resources, session } = lease.terms;
    const broken = abandoned?.end;
    const undone =
      // One that was announced has its record.
      broken === undefined || broken.announcedOn !== undefined
        ? []
        : resources.map((resource) => this.#ofEnd(lease, resource, broken, { outcome: 'aborted', detail: abandoned?.detail }));
    // The lease of a token-less write is in the records of its write, unless an administrator ended it.
    if (session === null && end.action !== 'lease_break') return undone;
    const ends = resources.flatMap((resource) => {
      const record = this.#ofEnd(lease, resource, end, { mark: fencedBy, detail });
      return withLastWord(record, lease.announcedBreaks.get(resource.key)?.record, carriesOut(end, resource.key));
    });
    return [...undone, ...ends];
  }

  #ofEnd(lease: Lease, resource: Resource, { action, caller, code, operationId }: End, { mark, ...about }: About): RecordOp {
    const { told, terms } = lease;
    const token = told?.token ?? null;
    const sinceMs = told === null ? terms.createdMs : lease.grantedMs;
    const reached = mark ?? this.#deps.markOf(resource) ?? token;
    return this.record(lease, resource, action, token, caller, sinceMs, { ...about, code, mark: reached, operationId });
  }
}
