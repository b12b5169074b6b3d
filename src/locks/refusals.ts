import type { AuditAction } from '../domain/audit-record.ts';
import type { Clock } from '../domain/clock.ts';
import { asGatewayError, type ErrorCode, GatewayError } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import type { RefusalLog } from '../domain/journal.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Caller } from '../domain/principal.ts';
import type { Resource } from '../domain/resource.ts';
import { within } from '../domain/within.ts';
import type { LockAudit } from './lock-audit.ts';

/**
 * Refusals without a record: the journal does not take it, or not yet (`overloaded` is its full queue, or a turn that a session of before a
 * restart was given); what is in doubt, and a deadlock, have records of their own; nobody is left to be refused; and what is a fault of ours
 * decided nothing. What could not be decided without the coordinator or the volume was refused all the same, as a write is (I4).
 */
const UNRECORDED: ReadonlySet<ErrorCode> = new Set([
  'journal_unavailable',
  'overloaded',
  'outcome_unknown',
  'deadlock',
  'incomplete_body',
  'internal',
]);

export interface RefusedSubject {
  readonly resource: Resource | null;
  readonly leaseRef: string | null;
  /** Of the lease that is known: stands in for the label that the request itself does not have. */
  readonly clientId?: string | null;
}

export interface RefusalsDeps {
  readonly clock: Clock;
  readonly log: RefusalLog;
  readonly audit: LockAudit;
  readonly statusOf: (code: ErrorCode) => number;
  readonly markOf: (resourceKey: string) => FencingToken | null;
}

/** Makes the record of a refusal durable before its answer (I4). */
export class Refusals {
  readonly #deps: RefusalsDeps;

  constructor(deps: RefusalsDeps) {
    this.#deps = deps;
  }

  /** Runs `work`; a refusal that it throws is recorded, then thrown on. `subject` is asked afterwards: the lease may be known by then. */
  async recorded<T>(caller: Caller, signal: AbortSignal | null, subject: () => RefusedSubject, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (thrown) {
      // The client is gone: there is nobody to refuse, and the end of its wait has a record of its own.
      if (signal?.aborted === true) throw thrown;
      const error = asGatewayError(thrown);
      if (!UNRECORDED.has(error.code)) await this.record(caller, error.code, subject());
      throw error;
    }
  }

  /** The same for one who may be answered together with others: they do not wait for a journal that is slow. */
  async recordedSoon<T>(caller: Caller, work: () => Promise<T>): Promise<T> {
    const late = (): GatewayError =>
      new GatewayError('journal_unavailable', {
        detail: 'The refusal is not recorded yet; nothing was changed.',
        retryAfterMs: LIMITS.journalRetryAfterMs,
      });
    try {
      return await work();
    } catch (thrown) {
      const error = asGatewayError(thrown);
      if (UNRECORDED.has(error.code)) throw error;
      const recorded = this.record(caller, error.code, { resource: null, leaseRef: null });
      throw (await within(this.#deps.clock, LIMITS.endsAwaitedMs, recorded)) === 'late' ? late() : error;
    }
  }

  async record(caller: Caller, code: ErrorCode, { resource, leaseRef, clientId = null }: RefusedSubject): Promise<void> {
    const action: AuditAction = 'lease_refuse';
    const owner = leaseRef === null ? {} : { owner: { principal: caller.principal.name, clientId: caller.clientId ?? clientId, leaseRef } };
    const mark = resource === null ? null : this.#deps.markOf(resource.key);
    const record = this.#deps.audit.draft({ action, resource, outcome: 'rejected', code, status: this.#deps.statusOf(code), caller, mark, ...owner });
    await this.#deps.log.refused(record);
  }
}
