/**
 * Recovery as the journal sees it (`write-protocol.md`, "Recovery at start"): the verdicts that a volume finds about unsettled
 * intents become durable outcomes (I4), before anything of the volume is swept, granted or served. Looking at files is the
 * volume's; the words for it are here.
 */
import { type AuditDraft, auditDetail, recordWith, type StoredOutcome } from '../domain/audit-record.ts';
import { type Clock, rfc3339 } from '../domain/clock.ts';
import { asGatewayError, type ErrorCode, GatewayError } from '../domain/errors.ts';
import { fencingToken } from '../domain/fencing-token.ts';
import { etagFound, etagOf, type FileFacts } from '../domain/file-facts.ts';
import type { Intent } from '../domain/intent.ts';
import type { Journal, JournalOp, JournalStart, StoredAnswer } from '../domain/journal.ts';
import type { SettledIntent, StampVerdict, VolumeRecord, WriterState } from '../domain/recovery.ts';
import { ABORTED_UNSEEN, retagging, unknownAnswer } from './idempotency.ts';

export interface RecoverDeps {
  /** Each call sees what is committed now. */
  readonly start: Pick<JournalStart, 'incarnations' | 'meta' | 'unsettledIntents' | 'saidUnknown' | 'knows'>;
  readonly journal: Pick<Journal, 'commit' | 'settled'>;
  readonly clock: Clock;
  readonly statusOf: (code: ErrorCode) => number;
}

/** What one volume reads and writes in the journal while it starts, is taken over, or starts a new incarnation. */
export function volumeRecord(deps: RecoverDeps, volume: string): VolumeRecord {
  const { start, journal } = deps;
  return {
    // Every unit begins by comparing the owner row, so an empty one is that question and nothing else.
    assertOurs: async () => void (await journal.commit([])),
    incarnations: () => start.incarnations(volume),
    published: async (incarnation) => void (await journal.commit([{ op: 'incarnation_put', volume, incarnation }])),
    gone: async (incarnation) => void (await journal.commit([{ op: 'incarnation_gone', volume, incarnation }])),
    reservedCeiling: (volumeUuid) => reservedCeiling(start, volumeUuid),
    reserveCeiling: (volumeUuid, ceiling) => reserveCeiling(deps, volumeUuid, ceiling),
    unsettled: () => start.unsettledIntents(volume),
    knows: (operationId) => start.knows(operationId),
    takenOver: (from, floor) => recordTakeOver(deps, { volume, from, floor }),
    recovered: (settled) => recordVerdicts(deps, settled),
  };
}

function reservedCeiling(start: Pick<JournalStart, 'meta'>, volumeUuid: string): bigint | null {
  const stored = start.meta(ceilingName(volumeUuid));
  return stored === null ? null : BigInt(stored);
}

/**
 * Never lowered: a higher one may stand in a stamp already. By the volume's own uuid, because a configured name may go over to
 * another directory.
 */
async function reserveCeiling({ start, journal }: RecoverDeps, volumeUuid: string, ceiling: bigint): Promise<void> {
  const before = reservedCeiling(start, volumeUuid);
  if (before !== null && before >= ceiling) return;
  try {
    await journal.commit([{ op: 'meta_put', name: ceilingName(volumeUuid), value: ceiling.toString() }]);
  } catch (thrown) {
    const error = asGatewayError(thrown);
    if (error.code !== 'outcome_unknown') throw error;
    // Only the ceiling is in doubt, and one too many harms nobody. Whoever waits for a token got none.
    throw new GatewayError('journal_unavailable', { detail: 'No token was issued: the journal failed. Nothing was changed.', cause: error });
  }
}

/** The floor holds from here on; what came before is in the log of the journal that had the volume. */
async function recordTakeOver(
  { journal, clock }: RecoverDeps,
  { volume, from, floor }: { readonly volume: string; readonly from: string; readonly floor: bigint },
): Promise<void> {
  const detail = auditDetail(`The journal ${from} had the volume; its audit records and idempotency keys stay there.`);
  const record = recordWith({
    at: rfc3339(clock.wallMs()),
    action: 'take_over',
    volume,
    outcome: 'committed',
    highWaterMark: fencingToken(floor),
    detail,
  });
  await journal.commit([
    { op: 'meta_put', name: floorName(volume), value: floor.toString() },
    { op: 'meta_put', name: takenFromName(volume), value: from },
    { op: 'audit', record },
  ]);
}

/** One unit for all verdicts: either every outcome is durable, or the volume starts again from the beginning. */
async function recordVerdicts({ start, journal, clock, statusOf }: RecoverDeps, settled: readonly SettledIntent[]): Promise<void> {
  const at = rfc3339(clock.wallMs());
  const ops = settled.flatMap((verdict) => outcomeOps(verdict, { at, statusOf, saidUnknown: start.saidUnknown(verdict.intent) }));
  if (ops.length > 0) await journal.commit(ops);
  const undecided = new Set(settled.filter(({ settlement }) => settlement === 'unknown').map(({ intent }) => intent.operationId));
  for (const operationId of new Set(settled.map(({ intent }) => intent.operationId))) {
    // What nobody can tell stays open: the next start looks again.
    if (!undecided.has(operationId)) journal.settled(operationId);
  }
}

interface Verdict {
  readonly at: string;
  readonly statusOf: (code: ErrorCode) => number;
  readonly saidUnknown: boolean;
}

/** Presumed commit: a committed or finished write needs a record only when it was unknown, or its file got another ETag than was promised. */
function outcomeOps({ intent, settlement, after }: SettledIntent, { at, statusOf, saidUnknown }: Verdict): JournalOp[] {
  const failed = (outcome: 'aborted' | 'unknown', code: ErrorCode) => ({ at, outcome, code, status: statusOf(code) });
  switch (settlement) {
    case 'aborted':
      return recordsOf(intent).map((record) => outcomeOp(intent, { ...record, ...failed('aborted', ABORTED_UNSEEN), etagAfter: null }, null));
    case 'unknown':
      return recordsOf(intent).map((record) => outcomeOp(intent, { ...record, ...failed('unknown', 'outcome_unknown') }, unknownAnswer()));
    case 'committed':
    case 'finished':
      return lastWord(intent, after, at, saidUnknown);
  }
}

function lastWord(intent: Intent, after: FileFacts | null, at: string, saidUnknown: boolean): JournalOp[] {
  const promised = intent.audit.etagAfter;
  const found = etagFound(promised, after);
  if (found === promised && !saidUnknown) return [];
  return recordsOf(intent).map((record) => ({
    ...outcomeOp(intent, { ...record, at, etagAfter: record.etagAfter === null ? null : found }, null),
    ...retagging(promised, found),
  }));
}

/** A MOVE has a second record, of the name that it took away. */
function recordsOf({ audit, plan, resource }: Intent): AuditDraft[] {
  if (plan.kind !== 'move') return [audit];
  return [
    { ...audit, volume: resource.volume, path: resource.path },
    { ...audit, volume: plan.from.volume, path: plan.from.path, etagBefore: etagOf(plan.source), etagAfter: null },
  ];
}

function outcomeOp({ operationId }: Intent, record: AuditDraft, answer: StoredAnswer | null): JournalOp {
  const outcome: StoredOutcome = record.outcome;
  return { op: 'outcome', operationId, outcome, record, answer };
}

/**
 * Who wrote under an incarnation, for redo: a directory that was there when this process started is of a writer that has exited
 * when the predecessor's end was seen. Of everything younger (our own ended incarnations) nobody can tell what still hangs.
 */
export function writersBefore(
  start: Pick<JournalStart, 'incarnations'>,
  volumes: readonly string[],
  predecessorExited: boolean,
): (incarnation: string) => WriterState {
  const older = new Set(predecessorExited ? volumes.flatMap((volume) => start.incarnations(volume)) : []);
  return (incarnation) => (older.has(incarnation) ? 'exited' : 'unknown');
}

/** The highest token that the journal itself knows: a mark, a floor, or the base of a rebase; `null` on a new one. */
export function journalKnows(start: Pick<JournalStart, 'highestMark' | 'meta'>, volumes: readonly string[]): bigint | null {
  let highest: bigint | null = start.highestMark();
  for (const name of [TOKEN_BASE, ...volumes.map(floorName)]) {
    const stored = start.meta(name);
    if (stored !== null && (highest === null || BigInt(stored) > highest)) highest = BigInt(stored);
  }
  return highest;
}

/** Tokens go on above this: what the journal knows and every ceiling found on a volume (I6). */
export function tokensAbove(known: bigint | null, ceilings: readonly (bigint | null)[]): bigint {
  return [known, ...ceilings].reduce<bigint>((highest, one) => (one !== null && one > highest ? one : highest), 0n);
}

/** No lease comes back over a restored or lost journal. A volume that is not open yet (`null`) says nothing. */
export function leasesComeBack(start: Pick<JournalStart, 'markedAsBackup'>, verdicts: readonly (StampVerdict | null)[]): boolean {
  return !start.markedAsBackup && verdicts.every((verdict) => verdict === null || verdict === 'ok');
}

/** The meta fact that names the floor of a volume: every token up to it is void there. */
export function floorName(volume: string): string {
  return `floor:${volume}`;
}

/** The meta fact that is the highest token ceiling reserved on the volume of this uuid. */
function ceilingName(volumeUuid: string): string {
  return `ceiling:${volumeUuid}`;
}

/** The meta fact that names the journal which had the volume before this one. */
export function takenFromName(volume: string): string {
  return `taken_from:${volume}`;
}

export const TOKEN_BASE = 'token_base';
