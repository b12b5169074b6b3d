import type { Database } from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { InternalFacts } from '../../../src/journal/internal-facts.ts';
import { keyedPartAtStart } from '../../../src/journal/keyed-part.ts';
import { Retention } from '../../../src/journal/retention.ts';
import { asBeforeStatements, cutUnderAnchor, forgetKeyedPart, recomputePlain, unstatedKey } from '../../support/forge-journal.ts';
import { type TestDatabase, testDatabase } from '../../support/journal-database.ts';
import { auditOp } from '../../support/journal-samples.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';
import { verify } from '../../support/verify-chain.ts';

const KEY = Buffer.from('a secret of the auditor');
const NEXT_KEY = Buffer.from('the next secret');
const DAY_MS = 86_400_000;

/** A start of the gateway with these keys, and some records of it. */
function started(directory: string, keys: readonly Uint8Array[], records = 5): TestDatabase {
  const database = testDatabase(directory, { auditKeys: keys });
  for (let n = 0; n < records; n++) database.write(auditOp({ at: new Date(Date.UTC(2026, 0, 1)).toISOString() }));
  return database;
}

/** Five plain records, five keyed ones, a forgery, and another start with the key. */
function forged(forge: (db: Database) => void): TestDatabase {
  const directory = temporaryDirectory();
  started(directory, []);
  forge(started(directory, [KEY]).db);
  return started(directory, [KEY], 1);
}

function rewritePlainly(db: Database): void {
  db.exec("UPDATE audit SET principal = 'x' WHERE seq = 2");
  recomputePlain(db);
}

function cutWithTheStatement(db: Database): void {
  cutUnderAnchor(db, 3);
  forgetKeyedPart(db);
}

/** What nothing in the journal can tell from a key that is new. */
function takeEverythingKeyed(db: Database): void {
  rewritePlainly(db);
  forgetKeyedPart(db);
}

function exchangePlainPart(db: Database): void {
  db.exec("UPDATE audit SET principal = 'x' WHERE seq = 2");
  recomputePlain(db, 1, 5);
}

const atStart = ({ db, keys }: TestDatabase) => keyedPartAtStart(db, new InternalFacts(db), keys);

/** @returns how many records are left when everything that may go has gone. */
function retain({ db, keys, group }: TestDatabase): number {
  new InternalFacts(db).put('settled_low_water', group.head().seq + 1);
  const retention = new Retention(db, keys, { keepDays: 8, keepBytes: null });
  group.transaction(() => retention.step(Date.UTC(2026, 0, 1) + 30 * DAY_MS));
  return Number(db.prepare('SELECT count(*) FROM audit').pluck().get());
}

describe('the statement of where the keyed part of the chain begins', () => {
  it('is made with the first use of a key, and then stays', async () => {
    const directory = temporaryDirectory();
    expect(await verify(started(directory, []))).toMatchObject({ valid: true, keyedFromSeq: null });
    for (const records of [10, 15]) expect(await verify(started(directory, [KEY]), [KEY])).toMatchObject({ valid: true, records, keyedFromSeq: 6 });
    const fresh = started(temporaryDirectory(), [KEY]);
    expect(await verify(fresh, [KEY])).toMatchObject({ valid: true, keyedFromSeq: 1 });
    expect(atStart(fresh)).toEqual({ fromSeq: 1, genuine: true, stated: false });
  });

  it('is told wherever the check begins, also behind the head', async () => {
    const database = forged(() => undefined);
    for (const fromSeq of [1, 6, 9, 99]) expect(await verify(database, [KEY], fromSeq)).toMatchObject({ valid: true, keyedFromSeq: 6 });
    forgetKeyedPart(database.db);
    for (const fromSeq of [1, 6, 9, 99]) expect(await verify(database, [KEY], fromSeq)).toMatchObject({ valid: false, keyedFromSeq: null });
  });

  const forgeries: readonly (readonly [what: string, forge: (db: Database) => void, firstBadSeq: number])[] = [
    ['plain records in the place of keyed ones', (db) => recomputePlain(db, 6), 6],
    ['a history rewritten with plain hashes', rewritePlainly, 5],
    ['the plain part computed anew', exchangePlainPart, 5],
    ['a beginning cut off under a plain anchor', (db) => cutUnderAnchor(db, 3), 4],
    ['the plain part and more cut off under a plain anchor', (db) => cutUnderAnchor(db, 8), 9],
    ['a statement that was moved', (db) => db.exec("UPDATE internal SET value = '9' WHERE name = 'keyed_after_seq'"), 1],
    ['a statement that is gone while its records are there', forgetKeyedPart, 1],
    ['a beginning cut off together with the statement', cutWithTheStatement, 4],
  ];
  it.each(forgeries)('shows %s, which needs no key', async (_what, forge, firstBadSeq) => {
    expect(await verify(forged(forge), [KEY])).toMatchObject({ valid: false, firstBadSeq });
  });

  it('is another one when everything keyed was taken away with it', async () => {
    const database = forged(takeEverythingKeyed);
    expect(await verify(database, [KEY])).toMatchObject({ valid: true, keyedFromSeq: 11 });
  });

  it('counts while the key that sealed it is known', async () => {
    const database = started(temporaryDirectory(), [KEY]);
    expect(await verify(database, [NEXT_KEY, KEY])).toMatchObject({ valid: true, keyedFromSeq: 1 });
    for (const keys of [[], [NEXT_KEY]]) expect(await verify(database, keys)).toMatchObject({ valid: false, keyedFromSeq: null });
  });

  it('is not made anew by a start with another key', async () => {
    const directory = temporaryDirectory();
    started(directory, [KEY]);
    const other = started(directory, [NEXT_KEY]);
    expect(atStart(other)).toEqual({ fromSeq: null, genuine: false, stated: false });
    expect(await verify(other, [NEXT_KEY])).toMatchObject({ valid: false, firstBadSeq: 1 });
  });

  it('lets no record count that was written while the key was away, nor is anything removed meanwhile', async () => {
    const directory = temporaryDirectory();
    started(directory, []);
    started(directory, [KEY]);
    const away = started(directory, []);
    expect(await verify(away)).toMatchObject({ valid: false, keyedFromSeq: null });
    expect(retain(away)).toBe(15);
    expect(await verify(started(directory, [KEY]), [KEY])).toMatchObject({ valid: false, firstBadSeq: 11, keyedFromSeq: 6 });
  });
});

describe('an anchor of retention', () => {
  it('from before the first use of a key is sealed with it then, and counts', async () => {
    const directory = temporaryDirectory();
    expect(retain(started(directory, []))).toBe(1);
    const keyed = started(directory, [KEY]);
    expect(await verify(keyed, [KEY])).toMatchObject({ valid: true, firstSeq: 5, keyedFromSeq: 6 });
    expect(retain(keyed)).toBe(1);
    expect(await verify(keyed, [KEY])).toMatchObject({ valid: true, firstSeq: 10, keyedFromSeq: 6 });
    expect(await verify(started(directory, [KEY]), [KEY])).toMatchObject({ valid: true, keyedFromSeq: 6 });
  });

  it('that does not fit is not sealed', async () => {
    const directory = temporaryDirectory();
    const plain = started(directory, []);
    cutUnderAnchor(plain.db, 3);
    plain.db.exec("UPDATE internal SET value = '2' WHERE name = 'anchor_seq'");
    expect(await verify(started(directory, [KEY]), [KEY])).toMatchObject({ valid: false, firstBadSeq: 4 });
  });
});

describe('a keyed journal from before there were statements', () => {
  function older(change: (db: Database) => void = () => undefined): TestDatabase {
    return forged((db) => {
      asBeforeStatements(db, KEY, 6);
      change(db);
    });
  }

  it('gets its statement from its own first keyed record', async () => {
    expect(await verify(older(), [KEY])).toMatchObject({ valid: true, records: 11, keyedFromSeq: 6 });
  });

  it('keeps the place where retention had cut it, before the key and after', async () => {
    expect(
      await verify(
        older((db) => cutUnderAnchor(db, 3)),
        [KEY],
      ),
    ).toMatchObject({ valid: true, firstSeq: 4, keyedFromSeq: 6 });
    const later = older((db) => cutUnderAnchor(db, 7, unstatedKey(KEY)));
    expect(await verify(later, [KEY])).toMatchObject({ valid: true, firstSeq: 8, keyedFromSeq: 8 });
  });

  const refused: readonly (readonly [what: string, change: (db: Database) => void])[] = [
    ['whose plain anchor stands directly before a keyed record', (db) => cutUnderAnchor(db, 7)],
    ['whose first keyed record was altered', (db) => void db.exec("UPDATE audit SET principal = 'x' WHERE seq = 6")],
  ];
  it.each(refused)('gets none %s', async (_what, change) => {
    const database = older(change);
    expect(atStart(database)).toEqual({ fromSeq: null, genuine: false, stated: false });
    expect(await verify(database, [KEY])).toMatchObject({ valid: false });
  });

  it('shows that the records before its first keyed one were exchanged', async () => {
    expect(await verify(older(exchangePlainPart), [KEY])).toMatchObject({ valid: false, firstBadSeq: 5, keyedFromSeq: 6 });
  });
});
