import type { Database, Statement } from 'better-sqlite3';
import { machineMonotonicMs, type ProcessIdentity } from './process-identity.ts';

/** The row that says which process this journal belongs to. Whoever is not in it commits nothing. */
export interface OwnerRow extends ProcessIdentity {
  readonly incarnation: string;
  readonly beat: number;
  readonly beatMonotonicMs: number;
  readonly beatWallMs: number;
}

/** This process is no longer in the owner row: another one took over. */
export class Superseded extends Error {
  constructor() {
    super('another process took over this journal');
    this.name = 'Superseded';
  }
}

const SELECT = `SELECT incarnation, host, pid, start_time AS startTime, boot_id AS bootId, pid_namespace AS pidNamespace,
  beat, beat_monotonic_ms AS beatMonotonicMs, beat_wall_ms AS beatWallMs FROM owner WHERE id = 1`;

/** `null` when nobody owns the journal. The schema must be there. */
export function readOwner(db: Database): OwnerRow | null {
  return db.prepare<[], OwnerRow>(SELECT).get() ?? null;
}

/** Puts a process into the row, over whoever was there. Inside the transaction in which the old row was judged. */
export function putOwner(db: Database, incarnation: string, identity: ProcessIdentity): void {
  db.prepare(`INSERT OR REPLACE INTO owner (id, incarnation, host, pid, start_time, boot_id, pid_namespace, beat, beat_monotonic_ms, beat_wall_ms)
    VALUES (1, ?, ?, ?, ?, ?, ?, 0, ?, ?)`).run(
    incarnation,
    identity.host,
    identity.pid,
    identity.startTime,
    identity.bootId,
    identity.pidNamespace,
    machineMonotonicMs(),
    Date.now(),
  );
}

/** Our seat in the row: compared at the beginning of every transaction, and kept warm. */
export class OwnerSeat {
  readonly #incarnation: string;
  readonly #select: Statement<[], string>;
  readonly #beat: Statement<[number, number, string]>;
  readonly #release: Statement<[string]>;
  #beatenAtMs = 0;

  constructor(db: Database, incarnation: string) {
    this.#incarnation = incarnation;
    this.#select = db.prepare<[], string>('SELECT incarnation FROM owner WHERE id = 1').pluck();
    this.#beat = db.prepare<[number, number, string]>(
      'UPDATE owner SET beat = beat + 1, beat_monotonic_ms = ?, beat_wall_ms = ? WHERE id = 1 AND incarnation = ?',
    );
    this.#release = db.prepare<[string]>('DELETE FROM owner WHERE id = 1 AND incarnation = ?');
  }

  /** Throws `Superseded`. Only inside a transaction does the answer stay true. */
  assertOurs(): void {
    if (this.#select.get() !== this.#incarnation) throw new Superseded();
  }

  /** Writes a heartbeat when the last one is older than `olderThanMs`; a busy writer so beats within its own commits. */
  beat(olderThanMs: number): boolean {
    const nowMs = machineMonotonicMs();
    if (nowMs - this.#beatenAtMs < olderThanMs) return false;
    this.#beat.run(nowMs, Date.now(), this.#incarnation);
    this.#beatenAtMs = nowMs;
    return true;
  }

  release(): void {
    this.#release.run(this.#incarnation);
  }
}
