import type { Database, Statement } from 'better-sqlite3';
import { type FencingToken, fencingToken } from '../domain/fencing-token.ts';
import type { Intent } from '../domain/intent.ts';
import type { AnnouncedBreak, JournalStart, LostLease, OperationKnown, StoredLease, StoredSession, StoredWait } from '../domain/journal.ts';
import { LIMITS } from '../domain/limits.ts';
import { IntentReader } from './intent-rows.ts';
import { InternalFacts } from './internal-facts.ts';
import { fromJsonText } from './json-text.ts';
import { BREAK_PREFIX, BREAK_PREFIX_END } from './lease-writer.ts';
import type { OperationsInFlight } from './operations-in-flight.ts';

/**
 * What start, take-over and the restart of a volume read. A read-only connection of the main thread: each call sees what is
 * committed now, is served by an index (or reads a whole small table), and waits for no writer.
 */
export class StartFacts implements JournalStart {
  readonly gatewayUuid: string;
  readonly journalUuid: string;
  readonly #db: Database;
  readonly #inFlight: OperationsInFlight;
  readonly #intents: IntentReader;
  readonly #audited: Statement<[string], number>;
  readonly #meta: Statement<[string], string>;
  readonly #incarnations: Statement<[string], string>;
  readonly #leases: Statement<[], string>;
  readonly #waits: Statement<[], string>;
  readonly #sessions: Statement<[], string>;
  readonly #lost: Statement<[], LostLease>;
  readonly #delays: Statement<[], { resourceKey: string; delayMs: number }>;
  readonly #breaks: Statement<[string, string], string>;
  readonly #highest: Statement<[], bigint | null>;

  constructor(db: Database, parts: { readonly gatewayUuid: string; readonly inFlight: OperationsInFlight; readonly lowWater: number }) {
    this.gatewayUuid = parts.gatewayUuid;
    this.journalUuid = new InternalFacts(db).get('journal_uuid') ?? '';
    this.#db = db;
    this.#inFlight = parts.inFlight;
    this.#intents = new IntentReader(db);
    // Intents go after a day, their records stay for a week at least. Records of leases may name an operation that never had its intent.
    this.#audited = db
      .prepare<[string], number>(
        `SELECT 1 FROM audit INDEXED BY audit_operation WHERE operation_id = ? AND action NOT LIKE 'lease\\_%' ESCAPE '\\' LIMIT 1`,
      )
      .pluck();
    this.#meta = db.prepare<[string], string>('SELECT value FROM meta WHERE name = ?').pluck();
    this.#incarnations = db.prepare<[string], string>('SELECT incarnation FROM incarnations WHERE volume = ? ORDER BY incarnation').pluck();
    this.#leases = db.prepare<[], string>(`SELECT body FROM leases WHERE body ->> '$.waiting' IS NULL`).pluck();
    this.#waits = db.prepare<[], string>(`SELECT body FROM leases WHERE body ->> '$.waiting'`).pluck();
    this.#sessions = db.prepare<[], string>('SELECT body FROM sessions').pluck();
    this.#lost = db.prepare(
      `SELECT body ->> '$.leaseId' AS leaseId, body ->> '$.sessionId' AS sessionId, ended_at AS endedAt FROM ended_leases
       WHERE (state = 'lost' OR (state IN ('expired', 'broken') AND body ->> '$.waiting' IS NULL)) AND body IS NOT NULL ORDER BY stored_ms`,
    );
    this.#delays = db.prepare('SELECT resource_key AS resourceKey, delay_ms AS delayMs FROM lock_delays');
    this.#breaks = db.prepare<[string, string], string>('SELECT value FROM meta WHERE name >= ? AND name < ? ORDER BY name').pluck();
    this.#highest = db.prepare<[], bigint | null>('SELECT max(token) FROM marks').pluck().safeIntegers();
    // What the predecessor left unsettled is in flight again until recovery has looked at it.
    for (const { seq, undecided, intent } of this.#intents.unsettled(null, parts.lowWater)) {
      if (undecided) this.#inFlight.setAside(intent.operationId);
      else this.#inFlight.started(intent.operationId, seq);
    }
    // A break's last word is in the unit that ends its lease.
    const live = db.prepare('SELECT 1 FROM leases WHERE lease_ref = ?').pluck();
    for (const { leases } of this.announcedBreaks()) {
      for (const { leaseRef, operationId } of leases) if (live.get(leaseRef) !== undefined) this.#inFlight.announced(operationId);
    }
  }

  get markedAsBackup(): boolean {
    return this.meta('backup') !== null;
  }

  meta(name: string): string | null {
    return this.#meta.get(name) ?? null;
  }

  incarnations(volume: string): readonly string[] {
    return this.#incarnations.all(volume);
  }

  unsettledIntents(volume: string): readonly Intent[] {
    return this.#intents
      .unsettled(volume, this.#inFlight.lowWater(Number.MAX_SAFE_INTEGER - 1))
      .map(({ intent }) => intent)
      .filter(({ operationId }) => this.#inFlight.has(operationId));
  }

  newestIntents(volume: string): readonly Intent[] {
    return this.#intents.newest(volume, LIMITS.newestIntentsMax);
  }

  saidUnknown(intent: Intent): boolean {
    return this.#intents.isUndecided(intent);
  }

  knows(operationId: string): OperationKnown {
    if (this.#inFlight.has(operationId)) return 'unsettled';
    return this.#intents.has(operationId) || this.#audited.get(operationId) !== undefined ? 'settled' : 'never';
  }

  leases(): readonly StoredLease[] {
    return this.#leases.all().map((body) => fromJsonText(body) as StoredLease);
  }

  waits(): readonly StoredWait[] {
    return this.#waits.all().map((body) => fromJsonText(body) as StoredWait);
  }

  sessions(): readonly StoredSession[] {
    return this.#sessions.all().map((body) => fromJsonText(body) as StoredSession);
  }

  lostLeases(): Iterable<LostLease> {
    return this.#lost.iterate();
  }

  lockDelays(): readonly { readonly resourceKey: string; readonly delayMs: number }[] {
    return this.#delays.all();
  }

  announcedBreaks(): readonly AnnouncedBreak[] {
    return this.#breaks.all(BREAK_PREFIX, BREAK_PREFIX_END).map((value) => fromJsonText(value) as AnnouncedBreak);
  }

  highestMark(): FencingToken | null {
    const highest = this.#highest.get();
    return highest === undefined || highest === null ? null : fencingToken(highest);
  }

  close(): void {
    this.#db.close();
  }
}
