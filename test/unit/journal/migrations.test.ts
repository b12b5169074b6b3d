import { readFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { journalFile, prepareDataDirectory } from '../../../src/journal/data-directory.ts';
import { MIGRATIONS, migrate, SCHEMA_VERSION } from '../../../src/journal/migrations/migrate.ts';
import { openJournal } from '../../../src/journal/open-journal.ts';
import { journalOptions } from '../../support/journal-options.ts';
import { openTestJournal } from '../../support/open-journal.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const SIGNAL = AbortSignal.timeout(60_000);

function withSql(sql: string): string {
  const directory = temporaryDirectory();
  prepareDataDirectory(directory);
  const db = new Database(journalFile(directory));
  db.exec(sql);
  db.close();
  return directory;
}

describe('a journal of an older program', () => {
  it('is brought forward with all that it holds', async () => {
    const directory = withSql(readFileSync(new URL('../../../fixtures/journals/schema-1.sql', import.meta.url), 'utf8'));
    const { journal, start } = await openTestJournal(directory);
    expect(start.journalUuid).toBe('2b1f5a0e-3f52-4c7e-9d61-0c1b7f1f9a01');
    expect(start.highestMark()).toBe(2n ** 62n);
    expect(await journal.mark('demo/ledger/q3.csv')).toEqual({ token: 4103n, leaseRef: 'lease-a', principal: 'anna', everNamed: true });
    expect(await journal.verify(null, SIGNAL)).toMatchObject({ valid: true, records: 4, lastSeq: 4 });
    // The put is older than the move away from the same name, so only the move can be unapplied.
    expect(start.unsettledIntents('demo').map(({ operationId, plan }) => [operationId, plan.kind])).toEqual([['op-move', 'move']]);
    expect(start.lockDelays()).toEqual([{ resourceKey: 'demo/ledger/q3.csv', delayMs: 5_000 }]);
    const db = new Database(journalFile(directory), { readonly: true });
    expect(db.pragma('user_version', { simple: true })).toBe(SCHEMA_VERSION);
    db.close();
  }, 60_000);

  it('of version 3 knows of each ended lease how it ended, as far as its reason tells, and takes none for one that its client lost', async () => {
    const directory = temporaryDirectory();
    prepareDataDirectory(directory);
    const db = new Database(journalFile(directory));
    migrate(db, 3);
    const storedMs = Date.now();
    const insert = db.prepare('INSERT INTO ended_leases (lease_ref, reason, ended_at, stored_ms) VALUES (?, ?, ?, ?)');
    const states = {
      released: 'released',
      expired: 'expired',
      broken: 'broken',
      cancelled: 'cancelled',
      max_hold: 'expired',
      max_wait: 'cancelled',
      deadlock: 'cancelled',
      lost: 'lost',
      // Of a release, an expiry or a break: nobody can tell any more.
      session_ended: 'lost',
    };
    for (const reason of Object.keys(states)) insert.run(`lease-${reason}`, reason, '2026-01-01T00:00:00.000Z', storedMs);
    db.close();
    const { journal, start } = await openTestJournal(directory);
    for (const [reason, state] of Object.entries(states)) {
      const ended = { leaseRef: `lease-${reason}`, state, reason, endedAt: '2026-01-01T00:00:00.000Z', lease: null };
      expect(await journal.endedLease(`lease-${reason}`)).toEqual(ended);
    }
    expect([...start.lostLeases()]).toEqual([]);
  });

  it('has one step per version, in order', () => {
    expect(MIGRATIONS.map(({ version }) => version)).toEqual(MIGRATIONS.map((_, index) => index + 1));
  });
});

describe('a journal of a newer program', () => {
  it('is refused with one line and left as it is', async () => {
    const directory = withSql(`CREATE TABLE future (a); PRAGMA user_version = ${SCHEMA_VERSION + 1}`);
    await expect(openJournal(journalOptions(directory))).rejects.toMatchObject({
      code: 'journal_unavailable',
      message: expect.stringContaining('newer than this program'),
    });
    const db = new Database(journalFile(directory), { readonly: true });
    expect(db.pragma('user_version', { simple: true })).toBe(SCHEMA_VERSION + 1);
    expect(db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all()).toEqual(['future']);
    db.close();
  }, 60_000);
});
