import type { FastifyRequest } from 'fastify';
import { type AuditAction, type AuditDraft, recordWith } from '../domain/audit-record.ts';
import { rfc3339 } from '../domain/clock.ts';
import type { ErrorCode, GatewayError } from '../domain/errors.ts';
import { parseFencingToken } from '../domain/fencing-token.ts';
import { LIMITS } from '../domain/limits.ts';
import type { EarlyRefusal } from './client-error.ts';
import type { HttpDeps } from './http-deps.ts';
import { addressOf } from './request-state.ts';
import { statusOf } from './status.ts';

/**
 * I4 for refusals that never reach the write gateway or the lock service: durable before the answer. Requests without a principal,
 * or over its rate, are only counted (one record per address and minute); a principal always has a record of its own. Rejects with `journal_unavailable`, which is then the answer.
 */
export async function recordRefusal(deps: HttpDeps, request: FastifyRequest, error: GatewayError): Promise<void> {
  const { action } = request.routeOptions.config;
  const { state } = request;
  if (action === undefined || state.handedOver || error.code === 'journal_unavailable' || error.code === 'outcome_unknown') return;
  const { principal, subject } = state;
  const draft: AuditDraft = {
    ...blank(deps, action, error.code),
    volume: subject?.volume ?? null,
    path: subject?.path ?? null,
    principal: principal?.name ?? null,
    clientId: labelOf(request),
    remoteAddress: addressOf(request),
    requestId: request.id,
    fencingToken: parseFencingToken(String(request.headers['x-fencing-token'] ?? '')) ?? null,
    durationMs: Math.round(deps.clock.monotonicMs() - state.startedMs),
  };
  if (principal === null || error.code === 'rate_limited') deps.refusals.refusedEarly(draft);
  else await deps.refusals.refused(draft);
}

/** The writing methods; a request that broke before its route was known can be told apart only by them. */
const ACTION_OF_METHOD: Readonly<Record<string, AuditAction>> = { PUT: 'put', PATCH: 'patch', POST: 'upload', DELETE: 'delete' };

/** Broken framing: neither principal nor resource. Reads are not audited. */
export function recordBrokenRequest(deps: HttpDeps, refusal: EarlyRefusal): void {
  const action = refusal.method === null ? undefined : ACTION_OF_METHOD[refusal.method];
  if (action === undefined) return;
  deps.refusals.refusedEarly({ ...blank(deps, action, refusal.code), remoteAddress: refusal.remoteAddress, requestId: refusal.requestId });
}

/** A label that is itself malformed is left out of the record. */
function labelOf(request: FastifyRequest): string | null {
  const value = request.headers['x-client-id'];
  return typeof value === 'string' && /^[\x20-\x7e]+$/.test(value) && value.length <= LIMITS.clientIdBytesMax ? value : null;
}

function blank(deps: HttpDeps, action: AuditAction, code: ErrorCode): AuditDraft {
  return recordWith({
    at: rfc3339(deps.clock.wallMs()),
    action,
    outcome: 'rejected',
    code,
    status: statusOf(code),
  });
}
