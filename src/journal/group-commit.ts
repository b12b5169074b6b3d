import type { Database, Statement } from 'better-sqlite3';
import type { JournalOp } from '../domain/journal.ts';
import { LIMITS } from '../domain/limits.ts';
import type { AuditAppender } from './audit-appender.ts';
import { InternalFacts } from './internal-facts.ts';
import type { OwnerSeat } from './owner-row.ts';
import { CommitInDoubt, commitFailure, failureKind, type GroupFailure } from './sqlite-failure.ts';
import type { UnitEffects, UnitWriter } from './unit-writer.ts';

export type Unit = readonly JournalOp[];

/** What the main thread knows to be settled; written along with the next units. */
export interface SettlementNote {
  readonly lowWater: number;
  /** Operations whose mark as undecided is over. */
  readonly closed: readonly string[];
}

export type UnitResult = { readonly ok: true; readonly effects: UnitEffects } | { readonly ok: false; readonly message: string };

export type GroupResult =
  | { readonly done: true; readonly units: readonly UnitResult[]; readonly head: { readonly seq: number; readonly hash: string } }
  | {
      readonly done: false;
      readonly failure: GroupFailure;
      readonly message: string;
      /** The next start may find the units. Otherwise nothing of them has reached the disk as a commit. */
      readonly inDoubt: boolean;
    };

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown);
}

function refusedAsBroken(message: string): Extract<GroupResult, { done: false }> {
  return { done: false, failure: 'broken', message, inDoubt: false };
}

/**
 * One disk commit for many units. Each transaction begins with the write lock and the owner row: a superseded process,
 * however late it wakes, commits nothing. Runs in the writer thread.
 */
export class GroupCommit {
  readonly #db: Database;
  readonly #seat: OwnerSeat;
  readonly #audit: AuditAppender;
  readonly #units: UnitWriter;
  readonly #facts: InternalFacts;
  readonly #begin: Statement;
  readonly #commit: Statement;
  #lowWater: number;
  #broken: string | null = null;

  constructor(db: Database, parts: { readonly seat: OwnerSeat; readonly audit: AuditAppender; readonly units: UnitWriter }) {
    this.#db = db;
    this.#seat = parts.seat;
    this.#audit = parts.audit;
    this.#units = parts.units;
    this.#facts = new InternalFacts(db);
    this.#begin = db.prepare('BEGIN IMMEDIATE');
    this.#commit = db.prepare('COMMIT');
    this.#lowWater = this.#facts.number('settled_low_water');
  }

  get broken(): boolean {
    return this.#broken !== null;
  }

  head(): { readonly seq: number; readonly hash: string } {
    const { seq, hash } = this.#audit.position();
    return { seq, hash: hash.toString('hex') };
  }

  /** All units together; when one of them is at fault, again with a savepoint around each, so that it fails alone. */
  run(units: readonly Unit[], settlement: SettlementNote): GroupResult {
    const together = this.#attempt(() => units.map((unit): UnitResult => ({ ok: true, effects: this.#units.write(unit) })), settlement);
    return together === 'bug' ? this.#separately(units, settlement) : together;
  }

  #separately(units: readonly Unit[], settlement: SettlementNote): GroupResult {
    const result = this.#attempt(() => units.map((unit) => this.#guarded(unit)), settlement);
    if (result !== 'bug') return result;
    throw new Error('a unit failed outside its savepoint');
  }

  #guarded(unit: Unit): UnitResult {
    const position = this.#audit.position();
    this.#db.exec('SAVEPOINT unit');
    try {
      const effects = this.#units.write(unit);
      this.#db.exec('RELEASE unit');
      return { ok: true, effects };
    } catch (thrown) {
      if (failureKind(thrown) !== 'bug') throw thrown;
      this.#db.exec('ROLLBACK TO unit; RELEASE unit');
      this.#audit.restore(position);
      return { ok: false, message: messageOf(thrown) };
    }
  }

  #attempt(write: () => UnitResult[], settlement: SettlementNote): GroupResult | 'bug' {
    if (this.#broken !== null) return refusedAsBroken(this.#broken);
    const position = this.#audit.position();
    try {
      const units = this.transaction(() => {
        const results = write();
        this.noteSettled(settlement);
        this.#seat.beat(LIMITS.ownerHeartbeatMs / 2);
        return results;
      });
      this.#lowWater = Math.max(this.#lowWater, settlement.lowWater);
      return { done: true, units, head: this.head() };
    } catch (thrown) {
      this.#audit.restore(position);
      return failureKind(thrown) === 'bug' ? 'bug' : this.failed(thrown);
    }
  }

  /** Inside a transaction. The mark never falls: what is settled stays settled. */
  noteSettled({ lowWater, closed }: SettlementNote): void {
    if (lowWater > this.#lowWater) this.#facts.put('settled_low_water', lowWater);
    this.#units.close(closed);
  }

  /** What a failed statement means from now on. Throws what is not the disk's fault. */
  failed(thrown: unknown): Extract<GroupResult, { done: false }> {
    const failure = failureKind(thrown);
    if (failure === 'bug') throw thrown;
    // After a failed write or sync the file's state is not known; a second try could report success for lost bytes.
    if (failure === 'broken') this.#broken = messageOf(thrown);
    return { done: false, failure, message: messageOf(thrown), inDoubt: thrown instanceof CommitInDoubt };
  }

  /** Runs `body` in a transaction of the owner. Throws `Superseded`, SQLite's error, or the body's, all rolled back; or `CommitInDoubt`. */
  transaction<T>(body: () => T): T {
    this.#begin.run();
    try {
      this.#seat.assertOurs();
      const result = body();
      this.#commitNow();
      return result;
    } finally {
      if (this.#db.inTransaction) this.#db.exec('ROLLBACK');
    }
  }

  #commitNow(): void {
    try {
      this.#commit.run();
    } catch (thrown) {
      throw commitFailure(thrown);
    }
  }

  /** The transactions around the units (heartbeat, upkeep), under the same rules. `null`: done. */
  upkeep(body: () => void): Extract<GroupResult, { done: false }> | null {
    if (this.#broken !== null) return refusedAsBroken(this.#broken);
    try {
      this.transaction(body);
      return null;
    } catch (thrown) {
      return this.failed(thrown);
    }
  }
}
