import Sqlite, { type Database } from 'better-sqlite3';
import { onTestFinished } from 'vitest';
import type { JournalOp } from '../../src/domain/journal.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { AuditAppender } from '../../src/journal/audit-appender.ts';
import { ChainKeys } from '../../src/journal/audit-chain.ts';
import { journalFile, prepareDataDirectory } from '../../src/journal/data-directory.ts';
import { GroupCommit, type GroupResult } from '../../src/journal/group-commit.ts';
import { InternalFacts } from '../../src/journal/internal-facts.ts';
import { stateKeyedPart } from '../../src/journal/keyed-part.ts';
import { migrate } from '../../src/journal/migrations/migrate.ts';
import { openWriter } from '../../src/journal/open-database.ts';
import { OwnerSeat, putOwner } from '../../src/journal/owner-row.ts';
import { ownIdentity } from '../../src/journal/process-identity.ts';
import { UnitWriter } from '../../src/journal/unit-writer.ts';

export interface TestDatabase {
  readonly db: Database;
  readonly keys: ChainKeys;
  readonly group: GroupCommit;
  failCommits(fault: CommitFault): void;
  /** Commits one unit; throws when it failed. */
  write(...ops: JournalOp[]): GroupResult;
}

/** What a COMMIT does whose frames reach the file and whose sync fails (`kept`), or whose frames do not. */
export interface CommitFault {
  readonly code: string;
  readonly kept: boolean;
}

/** From the returned call on COMMIT fails as it says; to be called before the database is used. */
function failingCommits(db: Database): (fault: CommitFault) => void {
  let fault: CommitFault | null = null;
  const prepare = db.prepare.bind(db);
  db.prepare = ((sql: string) => {
    const statement = prepare(sql);
    if (sql !== 'COMMIT') return statement;
    return {
      run: () => {
        if (fault === null || fault.kept) statement.run();
        if (fault !== null) throw new Sqlite.SqliteError('disk I/O error', fault.code);
      },
    };
  }) as typeof db.prepare;
  return (next) => {
    fault = next;
  };
}

/** The writer's side of a journal without its thread: a real database, migrated and owned. */
export function testDatabase(
  directory: string,
  changes: { readonly auditKeys?: readonly Uint8Array[]; readonly idempotencyRowsMax?: number } = {},
): TestDatabase {
  prepareDataDirectory(directory);
  const db = openWriter(journalFile(directory));
  onTestFinished(() => void db.close());
  const failCommits = failingCommits(db);
  migrate(db);
  putOwner(db, 'test', ownIdentity());
  const keys = new ChainKeys(changes.auditKeys ?? []);
  db.transaction(() => stateKeyedPart(db, new InternalFacts(db), keys))();
  const audit = new AuditAppender(db, keys);
  const units = new UnitWriter(db, audit, { idempotencyRowsMax: changes.idempotencyRowsMax ?? LIMITS.idempotencyRowsMax });
  const group = new GroupCommit(db, { seat: new OwnerSeat(db, 'test'), audit, units });
  const write = (...ops: JournalOp[]): GroupResult => {
    const result = group.run([ops], { lowWater: 0, closed: [] });
    const failed = result.done ? result.units.find(({ ok }) => !ok) : result;
    if (failed !== undefined) throw new Error(JSON.stringify(failed));
    return result;
  };
  return { db, keys, group, write, failCommits };
}
