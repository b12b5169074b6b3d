import type { Migration } from './migration.ts';

/**
 * A move touches two resources. Only the newest intent of *each* of them can be unapplied, so recovery also has to find an
 * intent by the name that it moves away from.
 */
export const intentsOfTwoResources: Migration = {
  version: 2,
  sql: `
ALTER TABLE intents ADD COLUMN other_key TEXT;
UPDATE intents SET other_key = json_extract(body, '$.plan.from.key') WHERE json_extract(body, '$.plan.kind') = 'move';
CREATE INDEX intents_other ON intents (other_key) WHERE other_key IS NOT NULL;
`,
};
