import type { Migration } from './migration.ts';

/** For an hour, as with leases: so that the end of a session may be asked for again, also after a restart. */
export const endedSessions: Migration = {
  version: 5,
  sql: `
CREATE TABLE ended_sessions (session_ref TEXT PRIMARY KEY, principal TEXT NOT NULL, stored_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX ended_sessions_age ON ended_sessions (stored_ms);
`,
};
