import { closeSync, fsyncSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { refuse } from '../domain/errors.ts';
import { journalFile, syncDirectory } from './data-directory.ts';
import { assertSchemaKnown } from './migrations/migrate.ts';
import { openReader } from './open-database.ts';

/** Pages per step: between steps the writer's commits go on, and go into the copy as well. */
const PAGES_PER_STEP = 1_000;
const ALL_PAGES = 0x7fffffff;

/**
 * Copies a journal through SQLite's own backup to a new file (0600) and marks the copy, so that a gateway started on it hands out
 * nothing before a rebase. From the writer's own connection the copy follows commits made meanwhile.
 */
export async function backupTo(db: Database.Database, destination: string): Promise<void> {
  await copyTo(db, destination, PAGES_PER_STEP);
}

/**
 * The same from another process, beside a running gateway or without one. In one step, because a copy in several would begin anew
 * at every commit of the gateway.
 */
export async function backupJournal(dataDirectory: string, destination: string): Promise<void> {
  const db = openReader(journalFile(dataDirectory));
  try {
    assertSchemaKnown(db);
    await copyTo(db, destination, ALL_PAGES);
  } finally {
    db.close();
  }
}

async function copyTo(db: Database.Database, destination: string, pagesPerStep: number): Promise<void> {
  try {
    closeSync(openSync(destination, 'wx', 0o600));
  } catch (thrown) {
    if (thrown instanceof Error && 'code' in thrown && thrown.code === 'EEXIST')
      throw refuse('invalid_request', 'The file for the backup exists already; name a new one.');
    throw thrown;
  }
  await db.backup(destination, { progress: () => pagesPerStep });
  markCopy(destination);
  syncFile(destination);
  syncDirectory(dirname(destination));
}

function markCopy(file: string): void {
  const copy = new Database(file, { fileMustExist: true });
  try {
    // One plain file, to be moved about: the copy has no WAL beside it.
    copy.pragma('journal_mode = DELETE');
    copy.pragma('synchronous = FULL');
    copy.transaction(() => {
      copy.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES ('backup', '1')").run();
      copy.prepare('DELETE FROM owner').run();
    })();
  } finally {
    copy.close();
  }
}

function syncFile(file: string): void {
  const descriptor = openSync(file, 'r+');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
