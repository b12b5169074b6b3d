import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from 'better-sqlite3';
import { type GatewayError, refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import { judgeOwner } from './judge-owner.ts';
import { migrate, schemaVersion } from './migrations/migrate.ts';
import { type OwnerRow, putOwner, readOwner } from './owner-row.ts';
import { endProcess, isProcessGone, machineMonotonicMs, ownIdentity } from './process-identity.ts';
import { isBusy } from './sqlite-failure.ts';

/** Who was in the owner row without having left it. */
export interface TakeOver {
  readonly incarnation: string;
  readonly host: string;
  readonly pid: number;
  /** `gone`: it had crashed. `killed`: it was silent and we ended it. `silent`: it was silent and is not ours to end, or did not die. */
  readonly how: 'gone' | 'killed' | 'silent';
  /** Its process is certainly over: nothing of it can reach a volume any more. */
  readonly seenToExit: boolean;
}

export interface OwnershipRequest {
  readonly incarnation: string;
  readonly takeoverAfterMs: number;
}

/**
 * Puts this process into the owner row, migrating the schema in the same transaction.
 * @returns who was there before, `null` after a clean end or for a new journal.
 * @throws GatewayError `journal_unavailable` with one line for the operator: the owner lives, or somebody still holds SQLite's lock.
 */
export async function takeOwnership(db: Database, request: OwnershipRequest): Promise<TakeOver | null> {
  for (let judgement = 0; judgement < LIMITS.ownerJudgementsMax; judgement++) {
    const row = schemaVersion(db) === 0 ? null : readOwner(db);
    const takeOver = row === null ? null : await pastOwner(db, row, request.takeoverAfterMs);
    if (await claim(db, row, request.incarnation)) return takeOver;
  }
  throw refuse('journal_unavailable', 'Other processes keep taking this data directory; start only one.');
}

function livingOwner(row: OwnerRow, silentMs: number): GatewayError {
  return refuse(
    'journal_unavailable',
    `The data directory is in use by process ${row.pid} on ${row.host} (last heartbeat ${Math.round(silentMs)} ms ago); another gateway needs a FENCEGATE_DATA_DIR of its own.`,
  );
}

/** Resolves once the owner may be passed over; rejects while it lives. */
async function pastOwner(db: Database, row: OwnerRow, takeoverAfterMs: number): Promise<TakeOver> {
  const identity = ownIdentity();
  const gone = (): boolean => isProcessGone(row.pid, row.startTime);
  const verdict = judgeOwner(row, { identity, monotonicMs: machineMonotonicMs(), wallMs: Date.now(), takeoverAfterMs }, gone);
  const past = { incarnation: row.incarnation, host: row.host, pid: row.pid };
  switch (verdict.kind) {
    case 'gone':
      return { ...past, how: 'gone', seenToExit: true };
    case 'living':
      throw livingOwner(row, verdict.silentMs);
    case 'unjudged':
      await watch(db, row, verdict.watchMs);
      return { ...past, how: 'silent', seenToExit: false };
    case 'silent': {
      // A writer thread of this very process that died without leaving the row: there is nobody to kill.
      if (row.pid === identity.pid) return { ...past, how: 'silent', seenToExit: false };
      endProcess(row.pid, row.startTime);
      const seenToExit = await until(gone, LIMITS.ownerKillWaitMs);
      return { ...past, how: seenToExit ? 'killed' : 'silent', seenToExit };
    }
  }
}

/** Listens for heartbeats; rejects at the first one. */
async function watch(db: Database, row: OwnerRow, watchMs: number): Promise<void> {
  const changed = (): boolean => {
    const now = readOwner(db);
    return now !== null && now.incarnation === row.incarnation && now.beat !== row.beat;
  };
  if (await until(changed, watchMs)) throw livingOwner(row, 0);
}

async function until(condition: () => boolean, limitMs: number): Promise<boolean> {
  const endMs = machineMonotonicMs() + limitMs;
  for (;;) {
    if (condition()) return true;
    if (machineMonotonicMs() >= endMs) return false;
    await sleep(50);
  }
}

/** False when the row is not the judged one any more: somebody else was quicker, or the owner spoke after all. */
async function claim(db: Database, judged: OwnerRow | null, incarnation: string): Promise<boolean> {
  await beginImmediate(db, judged);
  try {
    const found = schemaVersion(db) === 0 ? null : readOwner(db);
    const same = found === null || (found.incarnation === judged?.incarnation && found.beat === judged.beat);
    if (same) {
      migrate(db);
      putOwner(db, incarnation, ownIdentity());
    }
    db.exec('COMMIT');
    return same;
  } finally {
    if (db.inTransaction) db.exec('ROLLBACK');
  }
}

async function beginImmediate(db: Database, judged: OwnerRow | null): Promise<void> {
  const endMs = machineMonotonicMs() + LIMITS.ownerLockWaitMs;
  for (;;) {
    try {
      db.exec('BEGIN IMMEDIATE');
      return;
    } catch (thrown) {
      if (!isBusy(thrown)) throw thrown;
      if (machineMonotonicMs() >= endMs) throw lockHeld(judged);
      await sleep(50);
    }
  }
}

export function lockHeld(judged: OwnerRow | null): GatewayError {
  const who =
    judged === null ? 'Another process' : `The owner (process ${judged.pid} of ${judged.host}, as it counts them), which is silent or ending,`;
  return refuse('journal_unavailable', `${who} still holds the journal's lock. End it, or wait until it is gone, and start again.`);
}
