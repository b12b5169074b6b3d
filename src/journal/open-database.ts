import Database from 'better-sqlite3';
import { refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';

/** Before this version two connections that write and checkpoint could lose an acknowledged commit (case B27). */
const SQLITE_VERSION_MIN = [3, 51, 3] as const;

/** True when `text` (like `3.53.2`) is at least the version without the WAL-reset bug. */
export function isSafeSqliteVersion(text: string): boolean {
  const parts = text.split('.').map(Number);
  for (const [index, min] of SQLITE_VERSION_MIN.entries()) {
    const part = parts[index] ?? 0;
    if (!(part >= 0)) return false;
    if (part !== min) return part > min;
  }
  return true;
}

function assertSafeVersion(db: Database.Database): void {
  const version = String(db.prepare('SELECT sqlite_version()').pluck().get());
  if (!isSafeSqliteVersion(version)) {
    throw refuse('journal_unavailable', `SQLite ${version} can lose acknowledged commits; ${SQLITE_VERSION_MIN.join('.')} or newer is needed.`);
  }
}

function assertPragma(db: Database.Database, name: string, expected: string | number): void {
  const found = db.pragma(name, { simple: true });
  if (found !== expected) throw refuse('journal_unavailable', `SQLite did not take ${name} = ${expected}; it says ${String(found)}.`);
}

/**
 * The one connection that writes. `synchronous` comes after `journal_mode`, and is read back by a statement of its own: the
 * library falls back to NORMAL otherwise, and a power cut would then lower a mark (I2).
 */
export function openWriter(file: string): Database.Database {
  const db = new Database(file, { fileMustExist: true, timeout: LIMITS.journalBusyMs });
  try {
    assertSafeVersion(db);
    db.pragma('journal_mode = WAL');
    assertPragma(db, 'journal_mode', 'wal');
    db.pragma('synchronous = FULL');
    assertPragma(db, 'synchronous', 2);
    db.pragma(`journal_size_limit = ${LIMITS.journalSizeLimitBytes}`);
    db.pragma('temp_store = MEMORY');
    return db;
  } catch (thrown) {
    db.close();
    throw thrown;
  }
}

/** A connection that cannot write; it sees every transaction that was committed before its statement began. */
export function openReader(file: string): Database.Database {
  const db = new Database(file, { readonly: true, fileMustExist: true, timeout: LIMITS.journalBusyMs });
  db.pragma('temp_store = MEMORY');
  return db;
}
