import { recordWith } from '../domain/audit-record.ts';
import { rfc3339 } from '../domain/clock.ts';
import type { GatewayError } from '../domain/errors.ts';
import type { GrpcDeps } from './grpc-deps.ts';
import type { OpenCall } from './open-call.ts';

/**
 * I4 for calls that never reach the lock service: the record is durable before the answer. Calls without a principal, or over its
 * rate, are only counted (one record per address and minute); a principal always has a record of its own. Rejects with `journal_unavailable`, which is then the answer.
 */
export async function recordRefusal(deps: GrpcDeps, call: OpenCall, error: GatewayError): Promise<void> {
  if (!call.rules.audited || call.handedOver || error.code === 'journal_unavailable' || error.code === 'outcome_unknown') return;
  const { principal, subject } = call;
  const draft = recordWith({
    at: rfc3339(deps.clock.wallMs()),
    action: 'lease_refuse',
    volume: subject?.volume ?? null,
    path: subject?.path ?? null,
    outcome: 'rejected',
    code: error.code,
    status: deps.statusOf(error.code),
    principal: principal?.name ?? null,
    clientId: call.clientId,
    remoteAddress: call.remoteAddress,
    requestId: call.requestId,
    fencingToken: call.presentedToken,
    durationMs: Math.round(deps.clock.monotonicMs() - call.startedMs),
  });
  if (principal === null || error.code === 'rate_limited') deps.refusals.refusedEarly(draft);
  else await deps.refusals.refused(draft);
}
