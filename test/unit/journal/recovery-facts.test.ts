import { describe, expect, it } from 'vitest';
import type { JournalOp } from '../../../src/domain/journal.ts';
import { journalFile } from '../../../src/journal/data-directory.ts';
import { IntentReader } from '../../../src/journal/intent-rows.ts';
import { openReader } from '../../../src/journal/open-database.ts';
import { OperationsInFlight } from '../../../src/journal/operations-in-flight.ts';
import { StartFacts } from '../../../src/journal/start-facts.ts';
import { testDatabase } from '../../support/journal-database.ts';
import { auditOp, intent, intentOp, outcomeOp, resource } from '../../support/journal-samples.ts';
import { openTestJournal } from '../../support/open-journal.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

function move(operationId: string, from: string, to: string): JournalOp {
  return intentOp(operationId, to, { plan: { kind: 'move', from: resource(from), source: { ino: 1n, sizeBytes: 1, mtimeNs: 1n }, manifest: 'm' } });
}

function unsettledAfter(...units: JournalOp[]): string[] {
  const { db, write } = testDatabase(temporaryDirectory());
  for (const op of units) write(op);
  return new IntentReader(db).unsettled('demo', 0).map(({ intent: found }) => found.operationId);
}

describe('the intents that recovery looks at', () => {
  it('are the newest of each resource, oldest first', () => {
    expect(unsettledAfter(intentOp('1', 'demo/a'), intentOp('2', 'demo/b'), intentOp('3', 'demo/a'), intentOp('4', 'other/a'))).toEqual(['2', '3']);
  });

  it('of a move are the newest of both its resources', () => {
    expect(unsettledAfter(move('1', 'demo/a', 'demo/b'))).toEqual(['1']);
    expect(unsettledAfter(move('1', 'demo/a', 'demo/b'), intentOp('2', 'demo/a'))).toEqual(['2']);
    expect(unsettledAfter(move('1', 'demo/a', 'demo/b'), intentOp('2', 'demo/b'))).toEqual(['2']);
    expect(unsettledAfter(intentOp('1', 'demo/a'), move('2', 'demo/a', 'demo/b'))).toEqual(['2']);
    expect(unsettledAfter(move('1', 'demo/a', 'demo/b'), move('2', 'demo/a', 'demo/c'))).toEqual(['2']);
    expect(unsettledAfter(move('1', 'demo/a', 'demo/b'), move('2', 'demo/b', 'demo/c'))).toEqual(['2']);
  });

  it('never include an aborted one, so that what was reported as failed is not finished later', () => {
    const { db, write } = testDatabase(temporaryDirectory());
    write(intentOp('1', 'demo/a'), intentOp('2', 'demo/b'));
    write(outcomeOp('1', 'aborted', { path: 'a' }), outcomeOp('2', 'unknown', { path: 'b' }));
    const intents = new IntentReader(db);
    expect(intents.unsettled('demo', 0).map(({ intent: found }) => found.operationId)).toEqual(['2']);
    expect([intents.has('1'), intents.has('2')]).toEqual([false, true]);
  });

  it('say whether their newest word is that nobody can tell, each for its own resource', () => {
    const directory = temporaryDirectory();
    const { write } = testDatabase(directory);
    const several = (name: string): JournalOp => intentOp('op', name, { plan: { kind: 'several', manifest: 'm' } });
    write(several('demo/a'), several('demo/b'), outcomeOp('op', 'unknown', { path: 'a' }));
    const start = new StartFacts(openReader(journalFile(directory)), { gatewayUuid: 'g', inFlight: new OperationsInFlight(), lowWater: 1 });
    const found = start.unsettledIntents('demo');
    const said = (): boolean[] => found.map((one) => start.saidUnknown(one));
    expect(said()).toEqual([true, false]);
    write(outcomeOp('op', 'committed', { path: 'a' }));
    expect(said()).toEqual([false, false]);
    start.close();
  });

  it('and the newest ones of a volume are found among the newest of all, oldest first', () => {
    const { db, write } = testDatabase(temporaryDirectory());
    write(intentOp('1', 'demo/a'), intentOp('2', 'demo/b'), intentOp('3', 'other/a'), intentOp('4', 'demo/a'));
    const newest = (limit: number): string[] => new IntentReader(db).newest('demo', limit).map(({ operationId }) => operationId);
    expect([newest(10), newest(3)]).toEqual([
      ['1', '2', '4'],
      ['2', '4'],
    ]);
  });

  it('come back exactly as they were written', () => {
    const { db, write } = testDatabase(temporaryDirectory());
    const written = intent('op', 'demo/a', { plan: { kind: 'append', offset: 7, lengthBytes: 5, mtimeNs: 2n ** 61n }, before: null });
    write({ op: 'intent', intent: written });
    expect(new IntentReader(db).unsettled(null, 0)).toEqual([{ seq: 1, undecided: false, intent: written }]);
  });

  it('are those at or above the low-water mark that are not settled, also while the journal is open', () => {
    const directory = temporaryDirectory();
    const { write } = testDatabase(directory);
    for (const name of ['a', 'b', 'c']) write(intentOp(`op-${name}`, `demo/${name}`));
    const inFlight = new OperationsInFlight();
    const start = new StartFacts(openReader(journalFile(directory)), { gatewayUuid: 'g', inFlight, lowWater: 2 });
    expect(start.unsettledIntents('demo').map(({ operationId }) => operationId)).toEqual(['op-b', 'op-c']);
    expect(inFlight.lowWater(3)).toBe(2);
    inFlight.settled('op-b');
    expect(start.unsettledIntents('demo').map(({ operationId }) => operationId)).toEqual(['op-c']);
    expect(inFlight.lowWater(3)).toBe(3);
    inFlight.settled('op-c');
    expect(start.unsettledIntents('demo')).toEqual([]);
    expect(start.knows('op-a')).toBe('settled');
    expect(inFlight.lowWater(3)).toBe(4);
    start.close();
  });
});

describe('what the journal knows of an operation', () => {
  it('B0: is that it is settled, long after its intents were pruned; what it never heard of it says so', () => {
    const directory = temporaryDirectory();
    const { db, write } = testDatabase(directory);
    for (const name of ['a', 'b', 'c']) write(intentOp(`op-${name}`, `demo/${name}`));
    write(outcomeOp('op-b', 'aborted', { path: 'b' }), auditOp({ action: 'lease_grant', operationId: 'op-lease' }));
    db.exec(`DELETE FROM intents WHERE operation_id = 'op-a'`);
    const inFlight = new OperationsInFlight();
    const start = new StartFacts(openReader(journalFile(directory)), { gatewayUuid: 'g', inFlight, lowWater: 3 });
    const known = (): string[] => ['op-a', 'op-b', 'op-c', 'op-lease', 'op-x'].map((id) => start.knows(id));
    expect(known()).toEqual(['settled', 'settled', 'unsettled', 'never', 'never']);
    inFlight.settled('op-c');
    expect(start.knows('op-c')).toBe('settled');
    start.close();
  });
});

describe('the low-water mark', () => {
  it('goes to the disk with later units and at an orderly end', async () => {
    const directory = temporaryDirectory();
    const first = await openTestJournal(directory);
    await first.journal.commit([intentOp('op-1', 'demo/a')]);
    await first.journal.commit([intentOp('op-2', 'demo/b')]);
    first.journal.settled('op-1');
    await first.close();
    const second = await openTestJournal(directory);
    expect(second.start.unsettledIntents('demo').map(({ operationId }) => operationId)).toEqual(['op-2']);
    expect(await second.journal.operation({ by: 'operation_id', operationId: 'op-1' })).toMatchObject({ outcome: 'committed' });
    expect(await second.journal.operation({ by: 'operation_id', operationId: 'op-2' })).toMatchObject({ outcome: 'pending' });
    second.journal.settled('op-2');
    await second.journal.commit([intentOp('op-3', 'demo/c')]);
    second.journal.settled('op-3');
    await second.close();
    const third = await openTestJournal(directory);
    expect(third.start.unsettledIntents('demo')).toEqual([]);
    expect(third.start.knows('op-2')).toBe('settled');
  }, 60_000);
});

describe('an operation that nobody can judge', () => {
  it('stays open over restarts without holding down the low-water mark, until its last word', async () => {
    const directory = temporaryDirectory();
    const first = await openTestJournal(directory);
    await first.journal.commit([intentOp('op-1', 'demo/a')]);
    await first.journal.commit([outcomeOp('op-1', 'unknown', { path: 'a', code: 'outcome_unknown' })]);
    await first.journal.commit([intentOp('op-2', 'demo/b')]);
    first.journal.settled('op-2');
    await first.close();

    const second = await openTestJournal(directory);
    expect(second.start.unsettledIntents('demo').map(({ operationId }) => operationId)).toEqual(['op-1']);
    expect(await second.journal.operation({ by: 'operation_id', operationId: 'op-1' })).toMatchObject({ outcome: 'unknown' });
    second.journal.settled('op-1');
    await second.journal.commit([auditOp()]);
    await second.close();

    const third = await openTestJournal(directory);
    expect(third.start.unsettledIntents('demo')).toEqual([]);
    expect(third.start.knows('op-1')).toBe('settled');
  }, 60_000);

  it('is no longer open after a committed outcome', () => {
    const { db, write } = testDatabase(temporaryDirectory());
    write(intentOp('op-1', 'demo/a'), outcomeOp('op-1', 'unknown', { path: 'a' }));
    const open = (): number => new IntentReader(db).unsettled(null, 99).length;
    expect(open()).toBe(1);
    write(outcomeOp('op-1', 'committed', { path: 'a' }));
    expect(open()).toBe(0);
  });
});
