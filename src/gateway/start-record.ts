import type { AuditDraft } from '../domain/audit-record.ts';
import { type Clock, rfc3339 } from '../domain/clock.ts';

/** The record of a start: `take_over` when a predecessor had not left by itself. */
export function startRecord(clock: Clock, action: 'start' | 'take_over'): AuditDraft {
  return {
    at: rfc3339(clock.wallMs()),
    action,
    volume: null,
    path: null,
    outcome: 'committed',
    code: null,
    status: null,
    principal: null,
    clientId: null,
    remoteAddress: null,
    requestId: null,
    operationId: null,
    leaseRef: null,
    fencingToken: null,
    highWaterMark: null,
    sizeBytes: null,
    digest: null,
    etagBefore: null,
    etagAfter: null,
    durationMs: null,
    fenceLevel: null,
    count: 1,
  };
}
