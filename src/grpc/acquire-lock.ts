import { outOfBounds } from '../domain/bounds.ts';
import { asGatewayError, ERROR_CODES, type ErrorCode, GatewayError, refuse } from '../domain/errors.ts';
import type { LeaseMode } from '../domain/lease.ts';
import { LIMITS } from '../domain/limits.ts';
import type { AcquireRequest } from '../domain/lock-api.ts';
import type { Caller } from '../domain/principal.ts';
import type { Resource } from '../domain/resource.ts';
import { label } from './call-metadata.ts';
import type { GrpcDeps } from './grpc-deps.ts';
import type { RecordLockRequest, RecordLockResponse } from './messages.ts';
import type { OpenCall } from './open-call.ts';
import { leaseMessage, notAcquired } from './views.ts';

const PRIORITY_DEFAULT = 5;
/** Words that say why a wait is over, and are codes of errors as well. */
const ENDS_OF_WAITS: ReadonlySet<ErrorCode> = new Set(['lock_not_acquired', 'session_ended']);

/**
 * `AcquireLock`: try, or wait in line (R3). Resolves also when the lock was not acquired; rejects with what is an error of the contract.
 * @param hasDeadline whether the call ends by itself; if not, and without a limit, the wait is bounded by `leaseWaitMsMax`.
 */
export async function acquireLock(deps: GrpcDeps, call: OpenCall, message: RecordLockRequest, hasDeadline: boolean): Promise<RecordLockResponse> {
  const resource = call.resource(message.resource_path, 'write');
  const caller = call.caller(label('client_id', message.client_id, LIMITS.clientIdBytesMax));
  const limitMs = waitLimit(message, hasDeadline);
  const request = acquireRequest(message, resource, caller, limitMs);
  call.handedOver = true;
  try {
    const { lease } = await deps.locks.acquire(caller, request, call.signal);
    const { holdId } = lease;
    if (lease.state === 'held' && holdId !== null) call.undelivered = () => deps.locks.undelivered(caller, lease.leaseId, holdId);
    return lease.state === 'held' ? leaseMessage(lease) : notHeld(deps, lease.state, lease.reason);
  } catch (thrown) {
    const error = inOwnNames(asGatewayError(thrown));
    if (error.code !== 'lock_not_acquired') throw error;
    return notHeld(deps, textOf(error.members['state']), textOf(error.members['reason']));
  }
}

/** The lock service knows the time to live by its name over HTTP. */
function inOwnNames(error: GatewayError): GatewayError {
  if (error.code !== 'ttl_out_of_range') return error;
  return new GatewayError(error.code, { detail: error.message.replace('ttl_ms', 'session_timeout_ms'), members: error.members, cause: error });
}

/** `null`: until the call ends. Throws `invalid_request`. */
function waitLimit(message: RecordLockRequest, hasDeadline: boolean): number | null {
  if (!message.wait_blocking) return 0;
  const { wait_limit_ms: text } = message;
  if (text !== undefined) {
    const limitMs = Number(text);
    if (Number.isSafeInteger(limitMs) && limitMs >= 0) return limitMs;
    throw outOfBounds('wait_limit_ms', { min: 0, max: Number.MAX_SAFE_INTEGER });
  }
  return hasDeadline ? null : LIMITS.leaseWaitMsMax;
}

function acquireRequest(message: RecordLockRequest, resource: Resource, caller: Caller, limitMs: number | null): AcquireRequest {
  const ttlMs = message.session_timeout_ms === '0' ? null : Number(message.session_timeout_ms);
  return {
    resources: [resource],
    mode: modeOf(message.mode),
    ttlMs,
    // The open call is the waiter.
    waitMs: limitMs === 0 ? 0 : null,
    maxWaitMs: limitMs === 0 ? null : limitMs,
    maxHoldMs: optionalMs(message.max_hold_ms),
    priority: message.priority ?? PRIORITY_DEFAULT,
    clientId: caller.clientId,
    sessionId: label('session_id', message.session_id, LIMITS.leaseIdBytesMax),
    holdId: label('hold_id', message.hold_id, LIMITS.holdIdBytesMax),
    lockDelayMs: optionalMs(message.lock_delay_ms),
    metadata: null,
  };
}

/** Unsafe numbers stay unsafe, and are refused as out of bounds by the lock service. */
function optionalMs(text: string | undefined): number | null {
  return text === undefined ? null : Number(text);
}

function modeOf(mode: RecordLockRequest['mode']): LeaseMode {
  if (mode === 'LOCK_MODE_SHARED') return 'shared';
  if (mode === 'LOCK_MODE_EXCLUSIVE' || mode === 'LOCK_MODE_UNSPECIFIED') return 'exclusive';
  throw refuse('invalid_request', 'mode is not one of this contract.', { field: 'mode' });
}

/** A wait that ended otherwise than by its limit may be an error: the codes are those that `acquire` itself would have given. */
function notHeld(deps: GrpcDeps, state: string | null, reason: string | null): RecordLockResponse {
  if (state === 'lost' && deps.isDraining()) throw draining();
  if (reason === 'deadlock') throw refuse('deadlock', 'These waits go round in a circle; this one gives way.');
  if (reason !== null && isErrorCode(reason) && !ENDS_OF_WAITS.has(reason)) throw refuse(reason, 'The lock could not be granted.');
  return notAcquired(state, reason ?? 'lock_not_acquired');
}

function draining(): GatewayError {
  return refuse('draining', 'The gateway is stopping; who waited is in line no more.');
}

function isErrorCode(text: string): text is ErrorCode {
  return (ERROR_CODES as readonly string[]).includes(text);
}

function textOf(member: unknown): string | null {
  return typeof member === 'string' ? member : null;
}
