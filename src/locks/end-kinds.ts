import { auditDetail, deadlockDetail } from '../domain/audit-record.ts';
import type { DeadlockStep } from '../domain/deadlock.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { ForeignContenders } from '../domain/foreign-contenders.ts';
import type { Caller } from '../domain/principal.ts';
import type { DecidedEnd, End } from './lease-end.ts';
import type { Lease } from './lease-record.ts';

/** A lease whose end is decided, and how it ends. */
export interface Ending {
  readonly lease: Lease;
  readonly end: End;
}

/** Every way in which a lease ends, in one place: its state, its reason, and the record it leaves. */
export const endKinds = {
  released: (caller: Caller | null): End => ({
    state: 'released',
    reason: 'released',
    action: 'lease_release',
    code: null,
    caller,
    clean: true,
    fence: false,
  }),
  cancelled: (caller: Caller | null): End => ({
    state: 'cancelled',
    reason: 'cancelled',
    action: 'lease_cancel',
    code: null,
    caller,
    clean: true,
    fence: false,
  }),
  /** By an administrator: it is in nobody's way, so there is nothing to break, and it has written nothing. */
  cancelledFor: (caller: Caller, reason: string): End => ({
    ...endKinds.cancelled(caller),
    detail: auditDetail(reason, { writes: [], truncated: false }),
  }),
  /** The whole wait ran out (`max_wait_ms`). */
  waitedOut: (foreign: ForeignContenders): End => ({
    state: 'cancelled',
    reason: 'max_wait',
    action: 'lease_cancel',
    code: 'lock_not_acquired',
    caller: null,
    clean: true,
    fence: false,
    detail: auditDetail('max_wait'),
    foreign,
  }),
  expired: (): End => ({ state: 'expired', reason: 'expired', action: 'lease_expire', code: null, caller: null, clean: false, fence: false }),
  /** Held for as long as is allowed: the holder may well be alive and writing, so the mark is raised first. */
  maxHold: (): End => ({ ...endKinds.expired(), reason: 'max_hold', fence: true, detail: auditDetail('max_hold') }),
  sessionExpired: (): End => ({ ...endKinds.expired(), reason: 'session_ended', detail: auditDetail('session_ended') }),
  sessionEnded: (caller: Caller): End => ({ ...endKinds.released(caller), reason: 'session_ended', detail: auditDetail('session_ended') }),
  /** An administrator ended the session: its client does not know. */
  sessionForced: (caller: Caller, lateDetail: () => Promise<string>, operationId: string): End => ({
    state: 'broken',
    reason: 'session_ended',
    action: 'lease_break',
    code: null,
    caller,
    clean: false,
    fence: true,
    lateDetail,
    operationId,
  }),
  broken: (caller: Caller, lateDetail: () => Promise<string>, operation: Pick<End, 'operationId' | 'announcedOn'>): End => ({
    state: 'broken',
    reason: 'broken',
    action: 'lease_break',
    code: null,
    caller,
    clean: false,
    fence: true,
    lateDetail,
    ...operation,
  }),
  lost: (): End => ({ state: 'lost', reason: 'lost', action: 'lease_lose', code: null, caller: null, clean: false, fence: false }),
  /** The session with the coordinator is over, and everything with it. */
  sessionLost: (): End => ({ ...endKinds.lost(), sessionLost: true }),
  /** Its turn came, and the gateway could not make it so. */
  notGranted: (code: ErrorCode): End => ({ state: 'lost', reason: code, action: 'lease_lose', code, caller: null, clean: true, fence: false }),
  deadlock: (cycle: readonly DeadlockStep[]): End => ({
    state: 'cancelled',
    reason: 'deadlock',
    action: 'deadlock',
    code: 'deadlock',
    caller: null,
    clean: true,
    fence: false,
    cycle,
    detail: deadlockDetail(cycle),
  }),
};

/** Why the time of a lease is up at `nowMs`, or `null`. A session that was made for it, and ends when it does, is not worth telling of. */
export function endByTime(lease: Lease, nowMs: number, foreignBefore: () => ForeignContenders): End | null {
  const { deadlineMs, waitDeadlineMs, holdDeadlineMs, ownDeadlineMs } = lease;
  const { session } = lease.terms;
  if (nowMs < deadlineMs) return nowMs < waitDeadlineMs ? null : endKinds.waitedOut(foreignBefore());
  if (nowMs >= holdDeadlineMs) return endKinds.maxHold();
  if (session === null || nowMs < session.deadlineMs) return endKinds.expired();
  return session.terms.implied && nowMs >= ownDeadlineMs ? endKinds.expired() : endKinds.sessionExpired();
}

/** No number was minted, because the session with the coordinator is over: the lease is lost with it, and nothing came of a break. */
export function abandonUnfenced(decided: DecidedEnd): void {
  const { end, detail } = decided;
  if (decided.fencedBy !== null || end.state !== 'broken') return;
  decided.abandoned = { end, detail };
  decided.end = endKinds.lost();
  decided.detail = undefined;
}
