import type { Migration } from './migration.ts';

/**
 * Every audit filter has an index; `seq` is the rowid, so each of them also yields the order of the log.
 * Partial indexes leave out what most records do not have. `at_high_ms` is the highest `at_ms` so far: it never falls,
 * so a time range becomes a range of `seq` by bisection even when the wall clock jumped.
 */
export const firstSchema: Migration = {
  version: 1,
  sql: `
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  at_high_ms INTEGER NOT NULL,
  action TEXT NOT NULL,
  volume TEXT,
  path TEXT,
  outcome TEXT NOT NULL,
  code TEXT,
  status INTEGER,
  principal TEXT,
  client_id TEXT,
  remote_address TEXT,
  request_id TEXT,
  operation_id TEXT,
  lease_ref TEXT,
  fencing_token INTEGER,
  high_water_mark INTEGER,
  size_bytes INTEGER,
  digest TEXT,
  etag_before TEXT,
  etag_after TEXT,
  duration_ms REAL,
  fence_level TEXT,
  count INTEGER NOT NULL,
  superseded_by INTEGER,
  chain_key TEXT NOT NULL,
  previous_hash BLOB NOT NULL,
  hash BLOB NOT NULL
) STRICT;
CREATE INDEX audit_volume ON audit (volume) WHERE volume IS NOT NULL;
CREATE INDEX audit_path ON audit (path) WHERE path IS NOT NULL;
CREATE INDEX audit_principal ON audit (principal) WHERE principal IS NOT NULL;
CREATE INDEX audit_client ON audit (client_id) WHERE client_id IS NOT NULL;
CREATE INDEX audit_lease ON audit (lease_ref) WHERE lease_ref IS NOT NULL;
CREATE INDEX audit_token ON audit (fencing_token) WHERE fencing_token IS NOT NULL;
CREATE INDEX audit_action ON audit (action);
CREATE INDEX audit_outcome ON audit (outcome);
CREATE INDEX audit_code ON audit (code) WHERE code IS NOT NULL;
CREATE INDEX audit_request ON audit (request_id) WHERE request_id IS NOT NULL;
CREATE INDEX audit_operation ON audit (operation_id) WHERE operation_id IS NOT NULL;

CREATE TABLE intents (
  seq INTEGER PRIMARY KEY,
  operation_id TEXT NOT NULL,
  volume TEXT NOT NULL,
  path TEXT NOT NULL,
  resource_key TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  body TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX intents_operation ON intents (operation_id, resource_key);
CREATE INDEX intents_resource ON intents (resource_key);

CREATE TABLE marks (
  resource_key TEXT PRIMARY KEY,
  token INTEGER NOT NULL,
  lease_ref TEXT,
  principal TEXT,
  ever_named INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE leases (lease_ref TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE ended_leases (lease_ref TEXT PRIMARY KEY, reason TEXT NOT NULL, ended_at TEXT NOT NULL, stored_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX ended_leases_age ON ended_leases (stored_ms);
CREATE TABLE sessions (session_ref TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE lock_delays (resource_key TEXT PRIMARY KEY, delay_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
  principal TEXT NOT NULL,
  key TEXT NOT NULL,
  method TEXT NOT NULL,
  path TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  operation_id TEXT NOT NULL,
  answer TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  PRIMARY KEY (principal, key, method, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_operation ON idempotency (operation_id);
CREATE INDEX idempotency_age ON idempotency (at_ms);

CREATE TABLE incarnations (volume TEXT NOT NULL, incarnation TEXT NOT NULL, PRIMARY KEY (volume, incarnation)) STRICT, WITHOUT ROWID;
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE internal (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE probe (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;

CREATE TABLE owner (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  incarnation TEXT NOT NULL,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  start_time TEXT NOT NULL,
  boot_id TEXT NOT NULL,
  pid_namespace TEXT NOT NULL,
  beat INTEGER NOT NULL,
  beat_monotonic_ms INTEGER NOT NULL,
  beat_wall_ms INTEGER NOT NULL
) STRICT;
`,
};
