import type { Database, Statement } from 'better-sqlite3';
import type { AnnouncedBreak, EndedLease, StoredLease, StoredSession, StoredWait } from '../domain/journal.ts';
import { toJsonText } from './json-text.ts';

/** Before the key of the resource, in the names of `meta`. */
export const BREAK_PREFIX = 'break:';
/** The first name after them. */
export const BREAK_PREFIX_END = 'break;';

/** Leases, waits, sessions, hold-backs and announced breaks: what must be found again after a restart. */
export class LeaseWriter {
  readonly #putLease: Statement<[string, string]>;
  readonly #removeLease: Statement<[string]>;
  readonly #putEnded: Statement<[string, string, string, string, number, string]>;
  readonly #putSession: Statement<[string, string]>;
  readonly #removeSession: Statement<[string]>;
  readonly #putEndedSession: Statement<[number, string]>;
  readonly #putDelay: Statement<[string, number]>;
  readonly #removeDelay: Statement<[string]>;
  readonly #putBreak: Statement<[string, string]>;
  readonly #removeBreak: Statement<[string]>;

  constructor(db: Database) {
    this.#putLease = db.prepare('INSERT OR REPLACE INTO leases (lease_ref, body) VALUES (?, ?)');
    this.#removeLease = db.prepare('DELETE FROM leases WHERE lease_ref = ?');
    // An end may be written twice (it travels again with the next grant); the second time the lease is not there any more.
    this.#putEnded = db.prepare(
      `INSERT INTO ended_leases (lease_ref, state, reason, ended_at, stored_ms, body)
       VALUES (?, ?, ?, ?, ?, (SELECT body FROM leases WHERE lease_ref = ?))
       ON CONFLICT (lease_ref) DO UPDATE SET state = excluded.state, reason = excluded.reason, ended_at = excluded.ended_at,
         stored_ms = excluded.stored_ms, body = coalesce(excluded.body, body)`,
    );
    this.#putSession = db.prepare('INSERT OR REPLACE INTO sessions (session_ref, body) VALUES (?, ?)');
    this.#removeSession = db.prepare('DELETE FROM sessions WHERE session_ref = ?');
    // One that was made for a lease alone is known by its lease.
    this.#putEndedSession = db.prepare(
      `INSERT OR REPLACE INTO ended_sessions (session_ref, principal, stored_ms)
       SELECT session_ref, body ->> '$.principal', ? FROM sessions WHERE session_ref = ? AND body ->> '$.implied' = 0`,
    );
    this.#putDelay = db.prepare('INSERT OR REPLACE INTO lock_delays (resource_key, delay_ms) VALUES (?, ?)');
    this.#removeDelay = db.prepare('DELETE FROM lock_delays WHERE resource_key = ?');
    this.#putBreak = db.prepare('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)');
    this.#removeBreak = db.prepare('DELETE FROM meta WHERE name = ?');
  }

  put(lease: StoredLease | StoredWait): void {
    this.#putLease.run(lease.leaseRef, toJsonText(lease));
  }

  /** What it was moves to its end. */
  end({ leaseRef, state, reason, endedAt }: Omit<EndedLease, 'lease'>): void {
    this.#putEnded.run(leaseRef, state, reason, endedAt, Date.now(), leaseRef);
    this.#removeLease.run(leaseRef);
  }

  putSession(session: StoredSession): void {
    this.#putSession.run(session.sessionRef, toJsonText(session));
  }

  endSession(sessionRef: string): void {
    this.#putEndedSession.run(Date.now(), sessionRef);
    this.#removeSession.run(sessionRef);
  }

  delay(resourceKey: string, delayMs: number | null): void {
    if (delayMs === null) this.#removeDelay.run(resourceKey);
    else this.#putDelay.run(resourceKey, Math.ceil(delayMs));
  }

  putBreak(announced: AnnouncedBreak): void {
    this.#putBreak.run(`${BREAK_PREFIX}${announced.resource.key}`, toJsonText(announced));
  }

  removeBreak(resourceKey: string): void {
    this.#removeBreak.run(`${BREAK_PREFIX}${resourceKey}`);
  }
}
