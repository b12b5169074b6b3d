import { describe, expect, it } from 'vitest';
import { ChainKeys } from '../../../src/journal/audit-chain.ts';
import { ChainVerifier } from '../../../src/journal/chain-verifier.ts';
import { IntentReader } from '../../../src/journal/intent-rows.ts';
import { InternalFacts } from '../../../src/journal/internal-facts.ts';
import { Retention, type RetentionPolicy } from '../../../src/journal/retention.ts';
import { type TestDatabase, testDatabase } from '../../support/journal-database.ts';
import { auditDraft, auditOp, intent, intentOp, outcomeOp } from '../../support/journal-samples.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const KEY = Buffer.from('key');
const DAY_MS = 86_400_000;
const FIRST_MS = Date.UTC(2026, 0, 1);
const at = (day: number): string => new Date(FIRST_MS + day * DAY_MS).toISOString();

/** One record a day for 30 days; everything is settled unless `lowWater` says otherwise. */
function thirtyDays(lowWater = 31): TestDatabase {
  const database = testDatabase(temporaryDirectory(), { auditKeys: [KEY] });
  for (let day = 0; day < 30; day++) database.write(auditOp({ at: at(day), digest: 'x'.repeat(2_000) }));
  new InternalFacts(database.db).put('settled_low_water', lowWater);
  return database;
}

function keep({ db, keys, group }: TestDatabase, policy: RetentionPolicy, nowMs = FIRST_MS + 30 * DAY_MS): number[] {
  const retention = new Retention(db, keys, policy);
  let more = true;
  while (more) {
    group.transaction(() => {
      more = retention.step(nowMs);
    });
  }
  return db.prepare<[], number>('SELECT seq FROM audit ORDER BY seq').pluck().all();
}

const verified = ({ db, group }: TestDatabase) =>
  new ChainVerifier(db, new ChainKeys([KEY])).step({ from: null, previousHash: null, until: group.head().seq, limit: 100 });

describe('retention', () => {
  it('keeps the days it was told to, and what remains is still a chain', () => {
    const database = thirtyDays();
    const kept = keep(database, { keepDays: 10, keepBytes: null });
    expect(kept[0]).toBe(21);
    expect(verified(database)).toMatchObject({ firstBadSeq: null, firstSeq: 21, lastSeq: 30, records: 10 });
    database.write(auditOp({ at: at(30) }));
    expect(verified(database)).toMatchObject({ firstBadSeq: null, lastSeq: 31 });
  });

  it('never takes away the 7 days for which operations can be asked after', () => {
    expect(keep(thirtyDays(), { keepDays: 1, keepBytes: null })[0]).toBe(24);
    expect(keep(thirtyDays(), { keepDays: null, keepBytes: 1 })[0]).toBe(24);
  });

  it('keeps everything without a bound, or below it', () => {
    expect(keep(thirtyDays(), { keepDays: null, keepBytes: null })).toHaveLength(30);
    expect(keep(thirtyDays(), { keepDays: 60, keepBytes: 100_000_000 })).toHaveLength(30);
  });

  it('keeps the records of unsettled intents, and the last record of all', () => {
    expect(keep(thirtyDays(5), { keepDays: 10, keepBytes: null })[0]).toBe(5);
    const database = thirtyDays();
    expect(keep(database, { keepDays: 10, keepBytes: null }, FIRST_MS + 900 * DAY_MS)).toEqual([30]);
    expect(verified(database)).toMatchObject({ firstBadSeq: null, records: 1 });
  });

  it('is not held up by an intent that nobody can judge: its record is kept beside it', () => {
    const database = testDatabase(temporaryDirectory(), { auditKeys: [KEY] });
    const undecided = intent('op-1', 'demo/a', { audit: auditDraft({ operationId: 'op-1', path: 'a', at: at(0) }) });
    database.write({ op: 'intent', intent: undecided }, outcomeOp('op-1', 'unknown', { path: 'a', at: at(0) }));
    for (let day = 1; day < 30; day++) database.write(auditOp({ at: at(day) }));
    new InternalFacts(database.db).put('settled_low_water', 31);
    expect(keep(database, { keepDays: 10, keepBytes: null })[0]).toBeGreaterThan(10);
    expect(new IntentReader(database.db).unsettled('demo', 31)).toEqual([{ seq: 1, undecided: true, intent: undecided }]);
  });

  it('keeps every intent of an operation while one of them is undecided, and all that are above the low-water mark', () => {
    const database = testDatabase(temporaryDirectory(), { auditKeys: [KEY] });
    const { db, write } = database;
    const old = (operationId: string, path: string) => ({
      op: 'intent' as const,
      intent: intent(operationId, `demo/${path}`, { audit: auditDraft({ operationId, path, at: at(0) }) }),
    });
    write(old('op-1', 'a'), old('op-1', 'b'));
    write(outcomeOp('op-1', 'unknown', { path: 'b', at: at(0) }));
    write(old('op-2', 'c'));
    write(old('op-3', 'd'));
    write(auditOp({ at: at(29) }));
    const left = (): unknown[] => db.prepare('SELECT operation_id || path FROM intents ORDER BY seq').pluck().all();
    new InternalFacts(db).put('settled_low_water', 5);
    keep(database, { keepDays: null, keepBytes: null });
    expect(left()).toEqual(['op-1a', 'op-1b', 'op-3d']);
    write(outcomeOp('op-1', 'committed', { path: 'b', at: at(29) }));
    keep(database, { keepDays: null, keepBytes: null });
    expect(left()).toEqual(['op-3d']);
  });

  it('does not cut across a hole or behind a forged anchor, which are evidence', () => {
    const holed = thirtyDays();
    holed.db.exec('DELETE FROM audit WHERE seq = 10');
    expect(keep(holed, { keepDays: 10, keepBytes: null })[0]).toBe(1);
    const forged = thirtyDays();
    forged.db.exec(
      "DELETE FROM audit WHERE seq < 4; INSERT INTO internal VALUES ('anchor_seq', '3'), ('anchor_hash', (SELECT lower(hex(previous_hash)) FROM audit WHERE seq = 4))",
    );
    expect(keep(forged, { keepDays: 10, keepBytes: null })[0]).toBe(4);
    expect(verified(forged)).toMatchObject({ firstBadSeq: 4 });
  });

  it('forgets ended leases after an hour, keys after a day, settled intents after a day', () => {
    const database = testDatabase(temporaryDirectory());
    const { db, write } = database;
    const nowMs = Date.now();
    const row = { fingerprint: 'f', operationId: 'op', answer: { status: 200, headers: {}, body: null } };
    write({ op: 'lease_end', leaseRef: 'l', state: 'released', reason: 'released', endedAt: at(0) });
    write({ op: 'idempotency_put', scope: { principal: 'anna', method: 'PUT', path: '/a', key: 'k' }, row, atMs: nowMs });
    write(intentOp('op-1', 'demo/a'), auditOp({ at: new Date(nowMs).toISOString() }), intentOp('op-2', 'demo/b'));
    new InternalFacts(db).put('settled_low_water', 3);
    const left = (): unknown[] =>
      ['ended_leases', 'idempotency', 'intents'].map((table) => db.prepare(`SELECT count(*) FROM ${table}`).pluck().get());
    keep(database, { keepDays: null, keepBytes: null }, nowMs + 3_500_000);
    expect(left()).toEqual([1, 1, 1]);
    keep(database, { keepDays: null, keepBytes: null }, nowMs + 3_700_000);
    expect(left()).toEqual([0, 1, 1]);
    keep(database, { keepDays: null, keepBytes: null }, nowMs + DAY_MS + 1_000);
    expect(left()).toEqual([0, 0, 1]);
  });
});
