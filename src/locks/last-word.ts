import type { AuditDraft } from '../domain/audit-record.ts';
import type { JournalOp } from '../domain/journal.ts';
import type { End } from './lease-end.ts';

export type RecordOp = Extract<JournalOp, { op: 'audit' }>;
export type OutcomeOp = Extract<JournalOp, { op: 'outcome' }>;

/**
 * The last word on a break that was announced for the resource, in the unit that ends its lease. When the end carries it out, that is the
 * record of the end; otherwise nothing came of the announcement: the holder let go, its time was up, or another break was faster.
 * @param announced the record of the announcement, if there was one.
 */
export function withLastWord(end: RecordOp, announced: AuditDraft | undefined, carriedOut: boolean): JournalOp[] {
  if (announced === undefined) return [end];
  if (carriedOut) return word(announced, 'committed', end.record, end.markOf);
  const nothing = abandoned(announced, end.record.at, end.markOf);
  return end.record.action === 'lease_break' ? [...nothing, end] : [end, ...nothing];
}

/** Nothing came of a break. */
export function abandoned(announced: AuditDraft, at: string, markOf: string | undefined): OutcomeOp[] {
  return word(announced, 'aborted', { ...announced, at }, markOf);
}

export function carriesOut({ announcedOn }: End, resourceKey: string): boolean {
  return announcedOn === resourceKey;
}

function word({ operationId }: AuditDraft, outcome: OutcomeOp['outcome'], record: AuditDraft, markOf: string | undefined): OutcomeOp[] {
  return operationId === null
    ? []
    : [{ op: 'outcome', operationId, outcome, record, answer: null, once: true, ...(markOf === undefined ? {} : { markOf }) }];
}
