import type { Migration } from './migration.ts';

/**
 * For the hour in which an ended lease is known, what it was stays with its end: so that a poll, a refusal and the heartbeat's `lost` say
 * after a restart what they said before. Of older rows only the reason is known, and some reasons belong to several states.
 */
export const whatEndedLeasesWere: Migration = {
  version: 4,
  sql: `
ALTER TABLE ended_leases ADD COLUMN state TEXT NOT NULL DEFAULT 'lost';
ALTER TABLE ended_leases ADD COLUMN body TEXT;
UPDATE ended_leases SET state = CASE
  WHEN reason IN ('released', 'expired', 'broken', 'cancelled') THEN reason
  WHEN reason = 'max_hold' THEN 'expired'
  WHEN reason IN ('max_wait', 'deadlock') THEN 'cancelled'
  ELSE 'lost' END;
`,
};
