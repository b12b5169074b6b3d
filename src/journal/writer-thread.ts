import { randomUUID } from 'node:crypto';
import { workerData } from 'node:worker_threads';
import type { Database } from 'better-sqlite3';
import { GatewayError, refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import { AuditAppender } from './audit-appender.ts';
import { ChainKeys } from './audit-chain.ts';
import { backupTo } from './backup.ts';
import { journalFile, prepareDataDirectory } from './data-directory.ts';
import { GroupCommit, type SettlementNote } from './group-commit.ts';
import { InternalFacts } from './internal-facts.ts';
import { keyedPartAtStart } from './keyed-part.ts';
import { assertSchemaKnown } from './migrations/migrate.ts';
import { openWriter } from './open-database.ts';
import { OwnerSeat } from './owner-row.ts';
import { Retention } from './retention.ts';
import { sendEvent, serveCalls } from './serve-calls.ts';
import { type GroupFailure, isBusy } from './sqlite-failure.ts';
import { lockHeld, type TakeOver, takeOwnership } from './take-ownership.ts';
import { UnitWriter } from './unit-writer.ts';
import type { WriterCalls, WriterData, WriterEvent, WriterReady } from './writer-calls.ts';

/**
 * The one thread that writes. It also keeps the heartbeat: a stopped process so falls silent, and a main thread that is merely
 * busy does not.
 */
class JournalWriter {
  readonly #db: Database;
  readonly #group: GroupCommit;
  readonly #seat: OwnerSeat;
  readonly #facts: InternalFacts;
  readonly #retention: Retention;
  readonly #keys: ChainKeys;
  readonly #timers: NodeJS.Timeout[] = [];
  #failing: GroupFailure | null = null;
  #superseded = false;
  #closed = false;

  constructor(db: Database, data: WriterData) {
    const keys = new ChainKeys(data.auditKeys);
    const audit = new AuditAppender(db, keys);
    this.#db = db;
    this.#keys = keys;
    this.#seat = new OwnerSeat(db, data.incarnation);
    this.#group = new GroupCommit(db, {
      seat: this.#seat,
      audit,
      units: new UnitWriter(db, audit, { idempotencyRowsMax: LIMITS.idempotencyRowsMax }),
    });
    this.#facts = new InternalFacts(db);
    this.#retention = new Retention(db, keys, data.retention);
  }

  start(takeOver: TakeOver | null): WriterReady {
    if (this.#facts.get('journal_uuid') === null) this.#group.transaction(() => this.#facts.put('journal_uuid', randomUUID()));
    const keyedPart = this.#group.transaction(() => keyedPartAtStart(this.#db, this.#facts, this.#keys));
    this.#every(LIMITS.ownerHeartbeatMs, () => this.#tick());
    this.#every(LIMITS.journalCheckpointEveryMs, () => this.#checkpoint());
    this.#every(LIMITS.journalMaintenanceEveryMs, () => this.maintain(Date.now()));
    return { takeOver, lowWater: this.#facts.number('settled_low_water'), head: this.#group.head(), keyedPart };
  }

  #every(ms: number, run: () => void): void {
    this.#timers.push(setInterval(run, ms));
  }

  commit(input: WriterCalls['commit']['input']): WriterCalls['commit']['output'] {
    const result = this.#group.run(input.units, input.settlement);
    // What fits into the last pages of a full disk says nothing of the next commit.
    if (!result.done) this.#note(result.failure);
    else if (this.#failing !== 'full') this.#failing = null;
    return result;
  }

  /** Heartbeat; after a failure that may pass, a trial of the disk. */
  #tick(): void {
    if (this.#superseded || this.#group.broken) return;
    const wasFailing = this.#failing !== null;
    const failed = this.#group.upkeep(() => {
      this.#seat.beat(LIMITS.ownerHeartbeatMs * 0.9);
      // As much as a large group needs is written, so that a disk with a page left does not count as healed.
      if (wasFailing) this.#db.prepare('INSERT OR REPLACE INTO probe (id, body) VALUES (1, zeroblob(262144))').run();
    });
    const after = failed ?? (wasFailing ? this.#group.upkeep(() => this.#db.prepare('DELETE FROM probe').run()) : null);
    if (after !== null) {
      this.#note(after.failure);
      if (after.failure !== 'superseded') this.#report({ kind: 'health', failure: after.failure });
    } else if (wasFailing) {
      this.#failing = null;
      this.#report({ kind: 'health', failure: null });
    }
  }

  #note(failure: GroupFailure): void {
    if (this.#failing !== 'full') this.#failing = failure;
    if (failure !== 'superseded' || this.#superseded) return;
    this.#superseded = true;
    this.#stopTimers();
    this.#report({ kind: 'superseded' });
  }

  #report(event: WriterEvent): void {
    sendEvent(event);
  }

  /** Empties the WAL. A reader in the middle of a page only delays it to the next time (B28). */
  #checkpoint(): void {
    if (this.#failing !== null || this.#superseded) return;
    try {
      const [row] = this.#db.pragma('wal_checkpoint(TRUNCATE)') as { busy: number; log: number }[];
      if (row !== undefined) this.#report({ kind: 'checkpoint', walFrames: row.log, complete: row.busy === 0 });
    } catch (thrown) {
      this.#report({ kind: 'checkpoint', walFrames: -1, complete: false });
      const failed = this.#group.failed(thrown);
      if (failed.failure === 'broken') this.#report({ kind: 'health', failure: 'broken' });
    }
  }

  /** Goes on in small transactions between which the commits get their turn. */
  maintain(nowMs: number): void {
    if (this.#failing !== null || this.#superseded || this.#closed) return;
    let more = false;
    const failed = this.#group.upkeep(() => {
      more = this.#retention.step(nowMs);
    });
    if (failed !== null) this.#note(failed.failure);
    else if (more) setImmediate(() => this.maintain(nowMs));
  }

  backup(destination: string): Promise<void> {
    return backupTo(this.#db, destination);
  }

  close(settlement: SettlementNote): void {
    this.#stopTimers();
    this.#closed = true;
    try {
      if (this.#superseded || this.#group.broken) return;
      this.#group.upkeep(() => {
        this.#group.noteSettled(settlement);
        this.#seat.release();
      });
      this.#checkpoint();
    } finally {
      this.#db.close();
    }
  }

  #stopTimers(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }
}

let writer: JournalWriter | null = null;

function opened(): JournalWriter {
  if (writer === null) throw new Error('the journal is not open');
  return writer;
}

async function open(data: WriterData): Promise<WriterReady> {
  const db = openWriterOrSayWhy(data.dataDirectory);
  try {
    assertSchemaKnown(db);
    const takeOver = await takeOwnership(db, data);
    writer = new JournalWriter(db, data);
    return writer.start(takeOver);
  } catch (thrown) {
    db.close();
    throw thrown;
  }
}

/** Whatever fails here is for the operator to read at the start, so the reason of the system goes into the line. */
function openWriterOrSayWhy(dataDirectory: string): Database {
  try {
    prepareDataDirectory(dataDirectory);
    return openWriter(journalFile(dataDirectory));
  } catch (thrown) {
    if (thrown instanceof GatewayError) throw thrown;
    if (isBusy(thrown)) throw lockHeld(null);
    throw refuse('journal_unavailable', `The journal cannot be opened: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
  }
}

serveCalls<WriterCalls>({
  open: () => open(workerData as WriterData),
  commit: (input) => opened().commit(input),
  maintain: ({ nowMs }) => {
    opened().maintain(nowMs);
    return null;
  },
  backup: async ({ destination }) => {
    await opened().backup(destination);
    return null;
  },
  close: (settlement) => {
    opened().close(settlement);
    writer = null;
    return null;
  },
});
