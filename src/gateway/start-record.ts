import { type AuditDraft, recordWith } from '../domain/audit-record.ts';
import { type Clock, rfc3339 } from '../domain/clock.ts';

/** The record of a start: `take_over` when a predecessor had not left by itself. */
export function startRecord(clock: Clock, action: 'start' | 'take_over'): AuditDraft {
  return recordWith({
    at: rfc3339(clock.wallMs()),
    action,
    outcome: 'committed',
  });
}
