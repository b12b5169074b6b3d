import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ChainKeys, GENESIS_HASH, recordHash } from '../../../src/journal/audit-chain.ts';
import { type TestDatabase, testDatabase } from '../../support/journal-database.ts';
import { auditDraft, auditOp, outcomeOp, rejection } from '../../support/journal-samples.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';
import { verify } from '../../support/verify-chain.ts';

const KEY = Buffer.from('a secret of the auditor');

function filled(keys: readonly Uint8Array[] = []): TestDatabase {
  const database = testDatabase(temporaryDirectory(), { auditKeys: keys });
  for (let n = 1; n <= 20; n++) {
    if (n === 10) database.write(outcomeOp('op-5', 'aborted'));
    else database.write({ op: 'audit', record: rejection({ requestId: `r${n}`, operationId: `op-${n}` }) });
  }
  return database;
}

describe('the audit chain', () => {
  it('is valid as written, from its beginning and from anywhere', async () => {
    const database = filled();
    expect(await verify(database)).toEqual({
      valid: true,
      records: 20,
      firstSeq: 1,
      lastSeq: 20,
      headHash: database.group.head().hash,
      firstBadSeq: null,
      keyedFromSeq: null,
    });
    expect(await verify(database, [], 9)).toMatchObject({ valid: true, records: 12, firstSeq: 9, lastSeq: 20 });
    expect(await verify(database, [], 99)).toMatchObject({ valid: true, records: 0 });
    expect(await verify(testDatabase(temporaryDirectory()))).toMatchObject({ valid: true, records: 0, firstSeq: null, lastSeq: null });
  });

  const tamperings: readonly (readonly [what: string, sql: string, firstBadSeq: number])[] = [
    ['an altered outcome', "UPDATE audit SET outcome = 'committed' WHERE seq = 11", 11],
    ['an altered token', 'UPDATE audit SET fencing_token = -4 WHERE seq = 11', 11],
    ['an emptied field', 'UPDATE audit SET principal = NULL WHERE seq = 2', 2],
    ['an altered time of the index', 'UPDATE audit SET at_ms = 0 WHERE seq = 3', 3],
    ['a reason put into a record that has none', `UPDATE audit SET detail = '{"reason":"x"}' WHERE seq = 5`, 5],
    ['a record removed in the middle', 'DELETE FROM audit WHERE seq = 8', 8],
    ['the beginning cut off', 'DELETE FROM audit WHERE seq < 4', 1],
    ['the end cut off', 'DELETE FROM audit WHERE seq > 14', 15],
    ['the last record replaced by nothing', 'DELETE FROM audit WHERE seq = 20', 20],
    ['everything removed', 'DELETE FROM audit', 1],
    [
      'two records that changed places',
      'UPDATE audit SET seq = CASE seq WHEN 6 THEN -7 ELSE -6 END WHERE seq IN (6, 7); UPDATE audit SET seq = -seq WHERE seq < 0',
      6,
    ],
    ['a record hidden as superseded', 'UPDATE audit SET superseded_by = 12 WHERE seq = 4', 4],
    [
      'a forged anchor',
      "DELETE FROM audit WHERE seq < 4; INSERT INTO internal VALUES ('anchor_seq', '3'), ('anchor_hash', (SELECT lower(hex(previous_hash)) FROM audit WHERE seq = 4))",
      4,
    ],
  ];
  it.each(tamperings)('shows %s', async (_what, sql, firstBadSeq) => {
    const database = filled([KEY]);
    database.db.exec(sql);
    expect(await verify(database, [KEY])).toMatchObject({ valid: false, firstBadSeq });
  });

  it('cannot be recomputed without its key', async () => {
    const database = filled([KEY]);
    expect(await verify(database, [])).toMatchObject({ valid: false, firstBadSeq: 1 });
    expect(await verify(database, [Buffer.from('another')])).toMatchObject({ valid: false, firstBadSeq: 1 });
    expect(await verify(database, [Buffer.from('the next key'), KEY])).toMatchObject({ valid: true });
  });

  it('stays verifiable when a key comes into use, and cannot be continued without it afterwards', async () => {
    const directory = temporaryDirectory();
    const plain = testDatabase(directory);
    plain.write(auditOp(), auditOp());
    const keyed = testDatabase(directory, { auditKeys: [KEY] });
    keyed.write(auditOp(), auditOp());
    expect(await verify(keyed, [KEY])).toMatchObject({ valid: true, records: 4 });
    const forger = testDatabase(directory);
    forger.write(auditOp());
    expect(await verify(forger, [KEY])).toMatchObject({ valid: false, firstBadSeq: 5 });
  });

  it('hashes differ whenever a field differs', () => {
    const { signing } = new ChainKeys([]);
    const text = fc.option(fc.string({ maxLength: 3 }), { nil: null });
    const fields = fc.record({ volume: text, path: text, principal: text, clientId: text, requestId: text });
    fc.assert(
      fc.property(fields, fields, (a, b) => {
        const same = Object.keys(a).every((key) => a[key as keyof typeof a] === b[key as keyof typeof b]);
        const hash = (changes: typeof a): string => recordHash(signing, GENESIS_HASH, 1, auditDraft(changes)).toString('hex');
        expect(hash(a) === hash(b)).toBe(same);
      }),
    );
  });
});
