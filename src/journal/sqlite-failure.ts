import Database from 'better-sqlite3';
import { Superseded } from './owner-row.ts';

/**
 * What a failed transaction means. `superseded`: another process owns the journal. `full`, `busy`: may pass.
 * `broken`: the disk or the file failed; a failed fsync is never retried (trap F3). `bug`: one of its units is at fault.
 */
export type FailureKind = 'superseded' | 'full' | 'busy' | 'broken' | 'bug';

/** Of these nothing was committed. */
export type GroupFailure = Exclude<FailureKind, 'bug'>;

/** Of these the disk of the journal is at fault. */
export type DiskFailure = Extract<FailureKind, 'full' | 'busy' | 'broken'>;

/** Codes that come from what was asked, not from the disk. */
const FAULT_OF_A_UNIT = /^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG|RANGE|ERROR|MISUSE)/;

function sqliteCode(thrown: unknown): string | undefined {
  return thrown instanceof Database.SqliteError ? thrown.code : undefined;
}

export function isBusy(thrown: unknown): boolean {
  return /^SQLITE_(BUSY|LOCKED)/.test(sqliteCode(thrown) ?? '');
}

/** COMMIT itself failed, and not before the disk had all of it for certain: the next start may find the whole transaction. */
export class CommitInDoubt extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause });
    this.name = 'CommitInDoubt';
  }
}

/**
 * What COMMIT threw, as what it means. When a frame finds no room (SQLITE_FULL) the last frame, which makes the transaction valid, is not
 * written. After any other failure of the disk all frames may be there: the sync comes after them, and the shared memory after the sync.
 */
export function commitFailure(thrown: unknown): unknown {
  const isCertain = sqliteCode(thrown) === 'SQLITE_FULL' || failureKind(thrown) === 'bug';
  return isCertain || !(thrown instanceof Error) ? thrown : new CommitInDoubt(thrown);
}

export function failureKind(thrown: unknown): FailureKind {
  if (thrown instanceof Superseded) return 'superseded';
  // Also where the failure by itself might pass: a second try would write over what may be the only trace of the first.
  if (thrown instanceof CommitInDoubt) return 'broken';
  const code = sqliteCode(thrown);
  if (code === undefined || FAULT_OF_A_UNIT.test(code)) return 'bug';
  // The shared-memory file could not grow: nothing was written yet, it is a full disk by another name.
  if (code === 'SQLITE_FULL' || code === 'SQLITE_IOERR_SHMSIZE') return 'full';
  return isBusy(thrown) || code === 'SQLITE_NOMEM' ? 'busy' : 'broken';
}
