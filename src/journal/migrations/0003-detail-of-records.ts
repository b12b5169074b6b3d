import type { Migration } from './migration.ts';

/** The reason that an administrator gave, and what a broken lease had written: JSON text. Older records have none, and their hashes stay. */
export const detailOfRecords: Migration = {
  version: 3,
  sql: 'ALTER TABLE audit ADD COLUMN detail TEXT;',
};
