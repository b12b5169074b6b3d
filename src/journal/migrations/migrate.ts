import type { Database } from 'better-sqlite3';
import { refuse } from '../../domain/errors.ts';
import { firstSchema } from './0001-first-schema.ts';
import { intentsOfTwoResources } from './0002-intents-of-two-resources.ts';
import { detailOfRecords } from './0003-detail-of-records.ts';
import { whatEndedLeasesWere } from './0004-what-ended-leases-were.ts';
import { endedSessions } from './0005-ended-sessions.ts';
import type { Migration } from './migration.ts';

/** All steps, in order; the version of the last one is what this program reads and writes. */
export const MIGRATIONS: readonly Migration[] = [firstSchema, intentsOfTwoResources, detailOfRecords, whatEndedLeasesWere, endedSessions];

export const SCHEMA_VERSION = MIGRATIONS.length;

/** 0 for a new, empty database. */
export function schemaVersion(db: Database): number {
  return Number(db.pragma('user_version', { simple: true }));
}

/** Throws when the journal was written by a newer program: reading it with older rules could lower a mark. */
export function assertSchemaKnown(db: Database): void {
  const found = schemaVersion(db);
  if (found > SCHEMA_VERSION) {
    throw refuse(
      'journal_unavailable',
      `The journal has schema version ${found}, which is newer than this program (${SCHEMA_VERSION}). Start the newer program again.`,
    );
  }
}

/** Brings the schema up to `target`. Called inside the transaction that takes the owner row, so a failed step leaves nothing behind. */
export function migrate(db: Database, target = SCHEMA_VERSION): void {
  assertSchemaKnown(db);
  for (const step of MIGRATIONS) {
    if (step.version <= schemaVersion(db) || step.version > target) continue;
    db.exec(step.sql);
    db.pragma(`user_version = ${step.version}`);
  }
}
