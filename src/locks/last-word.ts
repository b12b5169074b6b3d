import type { AuditDraft } from '../domain/audit-record.ts';
import type { JournalOp } from '../domain/journal.ts';
import type { Lease } from './lease-record.ts';

export type RecordOp = Extract<JournalOp, { op: 'audit' }>;
export type OutcomeOp = Extract<JournalOp, { op: 'outcome' }>;

/**
 * The last word on an announced break, in the unit that ends its lease: the end itself when it is a break, whoever's; otherwise the
 * break came to nothing, because its holder let go or its time was up.
 * @param announced the record of the announcement, if there was one.
 */
export function withLastWord(end: RecordOp, announced: AuditDraft | undefined): JournalOp[] {
  if (announced === undefined) return [end];
  return end.record.action === 'lease_break' ? word(announced, 'committed', end.record) : [end, ...abandoned(announced, end.record.at)];
}

/** Nothing came of a break. */
export function abandoned(announced: AuditDraft, at: string): OutcomeOp[] {
  return word(announced, 'aborted', { ...announced, at });
}

/** The same words on their own, for an end whose unit failed. */
export function lastWords({ announcedBreaks, decided }: Lease): OutcomeOp[] {
  if (decided === null) return [];
  const outcome = decided.end.action === 'lease_break' ? 'committed' : 'aborted';
  return [...announcedBreaks.values()].flatMap((announced) => word(announced, outcome, { ...announced, at: decided.endedAt ?? announced.at }));
}

function word({ operationId }: AuditDraft, outcome: OutcomeOp['outcome'], record: AuditDraft): OutcomeOp[] {
  return operationId === null ? [] : [{ op: 'outcome', operationId, outcome, record, answer: null }];
}
