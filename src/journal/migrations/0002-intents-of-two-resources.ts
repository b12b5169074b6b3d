import type { Migration } from './migration.ts';

/**
 * A move touches two resources. Only the newest intent of *each* of them can be unapplied, so recovery also has to find an
 * intent by the name that it moves away from. And an intent whose outcome is unknown stays open for as long as nobody can tell:
 * it is marked itself, so that it does not hold down the low-water mark of all the others.
 */
export const intentsOfTwoResources: Migration = {
  version: 2,
  sql: `
ALTER TABLE intents ADD COLUMN other_key TEXT;
UPDATE intents SET other_key = json_extract(body, '$.plan.from.key') WHERE json_extract(body, '$.plan.kind') = 'move';
CREATE INDEX intents_other ON intents (other_key) WHERE other_key IS NOT NULL;
ALTER TABLE intents ADD COLUMN undecided INTEGER NOT NULL DEFAULT 0;
CREATE INDEX intents_undecided ON intents (operation_id) WHERE undecided = 1;
`,
};
