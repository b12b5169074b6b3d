import { statSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { journalFile } from '../../../src/journal/data-directory.ts';
import type { GroupCommit } from '../../../src/journal/group-commit.ts';
import { Lookups } from '../../../src/journal/lookups.ts';
import type { OpenedJournal } from '../../../src/journal/open-journal.ts';
import { failureKind } from '../../../src/journal/sqlite-failure.ts';
import { testDatabase } from '../../support/journal-database.ts';
import { auditOp, raise } from '../../support/journal-samples.ts';
import { cannotMount, mountTmpfs } from '../../support/mounted.ts';
import { openTestJournal } from '../../support/open-journal.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const PAGE = { order: 'desc', limit: 10, cursor: null } as const;
const filler = 'x'.repeat(20_000);

/** A file system of its own with `megabytes` of room. */
function smallDisk(megabytes: number): string {
  const disk = mountTmpfs(`size=${megabytes}m`);
  onTestFinished(() => disk.unmount());
  return disk.path;
}

async function until(condition: () => boolean): Promise<void> {
  const endMs = performance.now() + 20_000;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error('it did not happen in time');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function fill({ journal }: OpenedJournal): Promise<number> {
  for (let n = 1; ; n++) {
    try {
      await journal.commit([raise('demo/a.txt', n), auditOp({ etagAfter: filler })]);
    } catch (thrown) {
      expect(thrown).toMatchObject({ code: 'journal_unavailable', retryAfterMs: expect.any(Number) });
      return n - 1;
    }
  }
}

describe.skipIf(cannotMount !== null)('B29: with the disk full', () => {
  it('units are refused whole, reads are served, and the journal heals when there is room again', async () => {
    const disk = smallDisk(4);
    const ballast = join(disk, 'ballast');
    writeFileSync(ballast, Buffer.alloc(2_000_000));
    const opened = await openTestJournal(join(disk, 'data'));
    const { journal } = opened;
    const last = await fill(opened);
    expect(last).toBeGreaterThan(3);
    expect([journal.healthy, journal.reason]).toEqual([false, expect.stringContaining('its disk is full')]);
    expect(await journal.mark('demo/a.txt')).toMatchObject({ token: BigInt(last) });
    expect((await journal.audit({}, PAGE)).records[0]?.seq).toBe(last);
    expect(await journal.verify(null, AbortSignal.timeout(10_000))).toMatchObject({ valid: true, lastSeq: last });
    unlinkSync(ballast);
    await until(() => journal.healthy);
    expect(journal.reason).toBeNull();
    expect((await journal.commit([raise('demo/a.txt', last + 1), auditOp()])).seqs).toEqual([last + 1]);
    expect(await journal.verify(null, AbortSignal.timeout(10_000))).toMatchObject({ valid: true, lastSeq: last + 1 });
  }, 60_000);
});

describe('a database that may not grow', () => {
  it('B29: refuses the unit, keeps the chain whole, and goes on when it may', () => {
    const { db, group, write } = testDatabase(temporaryDirectory());
    write(raise('demo/a', 1), auditOp());
    db.pragma(`max_page_count = ${Number(db.pragma('page_count', { simple: true })) + 2}`);
    const big = Array.from({ length: 20 }, () => auditOp({ etagAfter: filler }));
    expect(group.run([[raise('demo/a', 2), ...big]], { lowWater: 0, closed: [] })).toMatchObject({ done: false, failure: 'full' });
    expect(new Lookups(db).mark('demo/a')?.token).toBe(1n);
    expect(group.head().seq).toBe(1);
    db.pragma('max_page_count = 100000');
    expect(group.run([[raise('demo/a', 3), ...big]], { lowWater: 0, closed: [] })).toMatchObject({ done: true, head: { seq: 21 } });
  });

  it('is never tried again after a failed sync', () => {
    const failed = (group: GroupCommit, code: string): string => group.failed(new Database.SqliteError('disk I/O error', code)).failure;
    for (const code of ['SQLITE_IOERR_FSYNC', 'SQLITE_IOERR', 'SQLITE_IOERR_WRITE', 'SQLITE_CORRUPT', 'SQLITE_READONLY']) {
      const { group } = testDatabase(temporaryDirectory());
      expect(failed(group, code)).toBe('broken');
      expect(group.run([[auditOp()]], { lowWater: 0, closed: [] })).toMatchObject({ done: false, failure: 'broken' });
      expect(group.upkeep(() => undefined)).toMatchObject({ failure: 'broken' });
    }
    const { group } = testDatabase(temporaryDirectory());
    for (const code of ['SQLITE_FULL', 'SQLITE_BUSY', 'SQLITE_BUSY_SNAPSHOT', 'SQLITE_IOERR_SHMSIZE']) failed(group, code);
    expect(group.run([[auditOp()]], { lowWater: 0, closed: [] })).toMatchObject({ done: true });
    expect(failureKind(new TypeError('a bug'))).toBe('bug');
  });
});

describe("B26: with another process in SQLite's lock", () => {
  it('a unit is refused in a moment while the event loop goes on, and the journal heals when the lock is free', async () => {
    const directory = temporaryDirectory();
    const { journal } = await openTestJournal(directory);
    await journal.commit([raise('demo/a', 1)]);
    const other = new Database(journalFile(directory));
    other.exec('BEGIN IMMEDIATE');
    let turns = 0;
    const ticking = setInterval(() => {
      turns += 1;
    }, 5);
    await expect(journal.commit([raise('demo/a', 2)])).rejects.toMatchObject({ code: 'journal_unavailable' });
    clearInterval(ticking);
    expect(turns).toBeGreaterThan(2);
    expect([journal.healthy, journal.reason]).toEqual([false, expect.stringContaining('locked by another program')]);
    expect(await journal.mark('demo/a')).toMatchObject({ token: 1n });
    other.exec('ROLLBACK');
    other.close();
    await until(() => journal.healthy);
    await journal.commit([raise('demo/a', 2)]);
  }, 60_000);
});

describe('B28: while an export takes its time', () => {
  it('the WAL does not grow with what is written meanwhile', async () => {
    const directory = temporaryDirectory();
    const { journal } = await openTestJournal(directory);
    const many = (count: number) => Promise.all(Array.from({ length: count }, () => journal.commit([auditOp({ etagAfter: 'y'.repeat(1_000) })])));
    await many(3_000);
    const seen: number[] = [];
    let walBytesMost = 0;
    for await (const record of journal.auditStream({}, 'asc', AbortSignal.timeout(50_000))) {
      seen.push(record.seq);
      // A consumer that is slower than the writers, by far.
      if (record.seq % 500 === 0) {
        await many(2_000);
        walBytesMost = Math.max(walBytesMost, statSync(`${journalFile(directory)}-wal`).size);
      }
    }
    expect(seen).toEqual(Array.from({ length: 3_000 }, (_, index) => index + 1));
    expect(statSync(journalFile(directory)).size).toBeGreaterThan(20_000_000);
    // Automatic checkpoints start the WAL over every 1,000 pages, unless a reader sits on it.
    expect(walBytesMost).toBeLessThan(16_000_000);
  }, 60_000);
});
