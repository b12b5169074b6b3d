import { describe, expect, it } from 'vitest';
import type { CommitReceipt, Journal, JournalOp } from '../../../src/domain/journal.ts';
import type { GroupResult } from '../../../src/journal/group-commit.ts';
import { Lookups } from '../../../src/journal/lookups.ts';
import { OperationsInFlight } from '../../../src/journal/operations-in-flight.ts';
import { CountingRefusalLog } from '../../../src/journal/refusal-log.ts';
import { SqliteJournal, type SqliteJournalParts } from '../../../src/journal/sqlite-journal.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { testDatabase } from '../../support/journal-database.ts';
import { auditOp, intentOp, raise, rejection, resource, token } from '../../support/journal-samples.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

/** A commit that was tried and failed is another thing than one that was refused: the next start may find it. */

const NOTHING_SETTLED = { lowWater: 0, closed: [] };

describe('a commit that fails', () => {
  it.each(['SQLITE_IOERR_FSYNC', 'SQLITE_IOERR_WRITE', 'SQLITE_IOERR', 'SQLITE_IOERR_SHMSIZE', 'SQLITE_NOMEM'])(
    'with %s leaves its units in doubt, and nothing is tried after it: what a later unit is refused for is certain',
    (code) => {
      const { group, failCommits } = testDatabase(temporaryDirectory());
      failCommits({ code, kept: true });
      expect(group.run([[auditOp()]], NOTHING_SETTLED)).toMatchObject({ done: false, failure: 'broken', inDoubt: true });
      expect(group.run([[auditOp()]], NOTHING_SETTLED)).toMatchObject({ done: false, failure: 'broken', inDoubt: false });
    },
  );

  it('because a frame found no room leaves nothing, and the journal goes on', () => {
    const { db, group, failCommits } = testDatabase(temporaryDirectory());
    failCommits({ code: 'SQLITE_FULL', kept: false });
    expect(group.run([[raise('demo/a', 1), auditOp()]], NOTHING_SETTLED)).toMatchObject({ done: false, failure: 'full', inDoubt: false });
    expect(group.broken).toBe(false);
    expect(new Lookups(db).mark('demo/a')).toBeNull();
  });

  it('is not what a statement before it is: then nothing can be found', () => {
    const { db, group } = testDatabase(temporaryDirectory());
    const unwell: JournalOp[] = [auditOp()];
    db.exec("CREATE TRIGGER unwell BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'unwell'); END");
    expect(group.run([unwell], NOTHING_SETTLED)).toMatchObject({ done: true, units: [{ ok: false }] });
    db.pragma('query_only = true');
    const refused = group.run([unwell], NOTHING_SETTLED);
    expect(refused).toMatchObject({ done: false, inDoubt: false });
  });
});

interface Lab {
  readonly journal: SqliteJournal;
  /** The writer's answer to the commit that waits. */
  answer(result: GroupResult): void;
  die(): void;
}

/** A journal whose two threads are the test. Its reader finds nothing. */
function lab(): Lab {
  let settle: { resolve: (result: GroupResult) => void; reject: (reason: Error) => void } | null = null;
  const writer = {
    isDead: false,
    call: () =>
      new Promise<GroupResult>((resolve, reject) => {
        settle = { resolve, reject };
      }),
  };
  const reader = { waiting: 0, call: async (name: string) => (name === 'operation' ? [] : null) };
  const parts = {
    writer,
    reader,
    clock: new FakeClock(),
    inFlight: new OperationsInFlight(),
    head: { seq: 0, hash: '' },
    beforeQuery: async () => undefined,
  };
  const journal = new SqliteJournal(parts as unknown as SqliteJournalParts);
  return {
    journal,
    answer: (result) => settle?.resolve(result),
    die: () => {
      writer.isDead = true;
      settle?.reject(new Error('a thread of the journal failed'));
      journal.onWriterDeath();
    },
  };
}

const IN_DOUBT: GroupResult = { done: false, failure: 'broken', message: 'disk I/O error', inDoubt: true };
const REFUSED: GroupResult = { ...IN_DOUBT, inDoubt: false };
const scope = { principal: 'anna', method: 'DELETE', path: '/v1/files/demo/a.txt', key: 'k1' };

const UNIT: readonly JournalOp[] = [
  intentOp('op-1', 'demo/a.txt', { plan: { kind: 'remove', trash: 'trash-op-1' }, staged: null }),
  { op: 'idempotency_put', scope, row: { fingerprint: 'f', operationId: 'op-1', answer: { status: 204, headers: {}, body: null } }, atMs: 0 },
];

async function afterTurn<T>(then: () => T): Promise<T> {
  await new Promise((resolve) => setImmediate(resolve));
  return then();
}

/** The commit's rejection once the writer did as `then` says. */
async function rejected(journal: Journal, ops: readonly JournalOp[], then: () => void): Promise<unknown> {
  const committing: Promise<CommitReceipt | Error> = journal.commit(ops).catch((thrown: Error) => thrown);
  await afterTurn(then);
  return committing;
}

describe('a unit in doubt', () => {
  it('rejects as outcome_unknown; one that was refused before the disk was asked as journal_unavailable', async () => {
    const { journal, answer } = lab();
    expect(await rejected(journal, UNIT, () => answer(IN_DOUBT))).toMatchObject({ code: 'outcome_unknown', retryAfterMs: expect.any(Number) });
    expect(journal.healthy).toBe(false);
    expect(await rejected(journal, UNIT, () => undefined)).toMatchObject({ code: 'journal_unavailable' });
    const other = lab();
    expect(await rejected(other.journal, UNIT, () => other.answer(REFUSED))).toMatchObject({ code: 'journal_unavailable' });
  });

  it('is one whose writer died with it, too; what comes after that is refused', async () => {
    const { journal, die } = lab();
    expect(await rejected(journal, UNIT, die)).toMatchObject({ code: 'outcome_unknown' });
    expect(await journal.operation({ by: 'operation_id', operationId: 'op-1' })).toMatchObject({ outcome: 'unknown' });
    expect(await rejected(journal, UNIT, () => undefined)).toMatchObject({ code: 'journal_unavailable' });
  });

  it('is told as unknown by every name of its operation, and its key gives no other answer', async () => {
    const { journal, answer } = lab();
    expect(await journal.operation({ by: 'operation_id', operationId: 'op-1' })).toBeNull();
    await rejected(journal, UNIT, () => answer(IN_DOUBT));
    const unknown = { operationId: 'op-1', resource: 'demo/a.txt', outcome: 'unknown', code: 'outcome_unknown' };
    expect(await journal.operation({ by: 'operation_id', operationId: 'op-1' })).toMatchObject(unknown);
    expect(await journal.operation({ by: 'request_id', requestId: 'req-1' })).toMatchObject(unknown);
    expect(await journal.operation({ by: 'idempotency_key', principal: 'anna', key: 'k1' })).toMatchObject(unknown);
    expect(await journal.operation({ by: 'idempotency_key', principal: 'ben', key: 'k1' })).toBeNull();
    expect(await journal.operation({ by: 'operation_id', operationId: 'op-2' })).toBeNull();
    expect(await journal.idempotent(scope)).toMatchObject({ operationId: 'op-1', answer: { status: 503 } });
    expect(await journal.idempotent({ ...scope, method: 'PUT' })).toBeNull();
  });

  it('is forgotten once nothing can come of its operation', async () => {
    const { journal, answer } = lab();
    await rejected(journal, UNIT, () => answer(IN_DOUBT));
    journal.settled('op-2');
    expect(await journal.operation({ by: 'operation_id', operationId: 'op-1' })).not.toBeNull();
    journal.settled('op-1');
    expect(await journal.operation({ by: 'operation_id', operationId: 'op-1' })).toBeNull();
    expect(await journal.idempotent(scope)).toBeNull();
  });

  it('has leases of which nobody is told that there is no such one', async () => {
    const { journal, answer } = lab();
    const lease = {
      leaseId: 'secret',
      leaseRef: 'ref',
      sessionId: 's',
      resources: [resource('demo/a.txt')],
      mode: 'exclusive',
      token: token(7),
      principal: 'anna',
      clientId: null,
      ttlMs: 30_000,
      priority: 5,
      maxHoldMs: null,
      lockDelayMs: 0,
      holds: ['h'],
      metadata: null,
      grantedAt: '2026-01-01T00:00:00.000Z',
      acquiredZnodePath: null,
    } as const;
    await rejected(journal, [{ op: 'lease_put', lease }], () => answer(IN_DOUBT));
    await expect(journal.endedLease('ref')).rejects.toMatchObject({ code: 'outcome_unknown' });
    expect(await journal.endedLease('another')).toBeNull();
  });

  it('that is the record of a refusal leaves no doubt of what was refused: nothing was changed', async () => {
    const { journal, answer } = lab();
    const log = new CountingRefusalLog(journal, new FakeClock());
    const refusing = log.refused(rejection()).catch((thrown: unknown) => thrown);
    await afterTurn(() => answer(IN_DOUBT));
    expect(await refusing).toMatchObject({ code: 'journal_unavailable' });
  });
});
