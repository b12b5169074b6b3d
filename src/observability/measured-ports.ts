import type { Clock } from '../domain/clock.ts';
import { asGatewayError } from '../domain/errors.ts';
import type { Journal, JournalOp, RefusalLog } from '../domain/journal.ts';
import type { LeaseEndState } from '../domain/lease.ts';
import type { LockService } from '../domain/lock-api.ts';
import type { Metrics } from './metrics.ts';

/**
 * The ports of a gateway with measuring around them: the core and the adapters do not know that they are measured. What is counted
 * is what was decided, so that metrics and audit log tell the same story.
 */

/** Counts each refusal by its code. */
export function countingRefusals(refusals: RefusalLog, metrics: Metrics): RefusalLog {
  const count = ({ code }: { readonly code: string | null }): void => metrics.refused(code ?? 'none');
  return {
    refused: (record) => {
      count(record);
      return refusals.refused(record);
    },
    refusedEarly: (record) => {
      count(record);
      refusals.refusedEarly(record);
    },
    flush: () => refusals.flush(),
  };
}

/** How a lease that was held comes to its end. One that is cancelled was given back before anybody knew of it. */
const ENDINGS: ReadonlySet<LeaseEndState> = new Set(['released', 'expired', 'broken', 'lost']);

/** Measures how long a commit takes for whoever waits for it, and how long leases are held, from the record of the grant to what ends them. */
export function measuredJournal(journal: Journal, metrics: Metrics, clock: Clock): Journal {
  // Bounded by the leases that live: a lease that was granted before this start is in it never.
  const heldSince = new Map<string, number>();
  const note = (op: JournalOp, nowMs: number): void => {
    if (op.op === 'audit' && op.record.action === 'lease_grant') {
      const { leaseRef } = op.record;
      if (leaseRef !== null && !heldSince.has(leaseRef)) heldSince.set(leaseRef, nowMs);
    }
    // Not by the records of ends: a hold that is taken off has one, too, and its lease goes on.
    if (op.op !== 'lease_end') return;
    const since = heldSince.get(op.leaseRef);
    heldSince.delete(op.leaseRef);
    if (since !== undefined && ENDINGS.has(op.state)) metrics.held(op.state, (nowMs - since) / 1_000);
  };
  return withOwn(journal, {
    commit: async (ops) => {
      const startedMs = clock.monotonicMs();
      const receipt = await journal.commit(ops);
      const nowMs = clock.monotonicMs();
      metrics.journalCommit((nowMs - startedMs) / 1_000);
      for (const op of ops) note(op, nowMs);
      return receipt;
    },
  });
}

/** Measures how long an acquisition takes until it is granted, told to wait, or refused; counts renewals that failed. */
export function measuredLocks(locks: LockService, metrics: Metrics, clock: Clock): LockService {
  const renewing = async <T>(renewal: Promise<T>): Promise<T> => {
    try {
      return await renewal;
    } catch (thrown) {
      metrics.renewalFailed(asGatewayError(thrown).code);
      throw thrown;
    }
  };
  return withOwn(locks, {
    renew: (caller, leaseId, ttlMs) => renewing(locks.renew(caller, leaseId, ttlMs)),
    heartbeat: (caller, sessionId) => renewing(locks.heartbeat(caller, sessionId)),
    acquire: async (caller, request, signal) => {
      const startedMs = clock.monotonicMs();
      const done = (result: string): void => metrics.acquired(request.mode, result, (clock.monotonicMs() - startedMs) / 1_000);
      try {
        const answer = await locks.acquire(caller, request, signal);
        done(answer.lease.state);
        return answer;
      } catch (thrown) {
        done(asGatewayError(thrown).code);
        throw thrown;
      }
    },
  });
}

/** `port` with some methods of our own; everything else goes straight through, getters included. */
function withOwn<T extends object>(port: T, own: Partial<T>): T {
  const methods = new Map<PropertyKey, unknown>(Object.entries(own));
  return new Proxy(port, {
    get(target, key) {
      const known = methods.get(key);
      if (known !== undefined) return known;
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== 'function') return value;
      const bound: unknown = value.bind(target);
      methods.set(key, bound);
      return bound;
    },
  });
}
