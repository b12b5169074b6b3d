import { describe, expect, it } from 'vitest';
import type { IdempotencyScope, JournalOp } from '../../../src/domain/journal.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { Lookups } from '../../../src/journal/lookups.ts';
import { testDatabase } from '../../support/journal-database.ts';
import { intentOp, outcomeOp } from '../../support/journal-samples.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const NOW_MS = 1_800_000_000_000;
const scope = (key: string, changes: Partial<IdempotencyScope> = {}): IdempotencyScope => ({
  principal: 'anna',
  method: 'PUT',
  path: '/v1/files/demo/a.txt',
  key,
  ...changes,
});
const answer = (status: number) => ({ status, headers: { etag: '"1-2-3"' }, body: { size_bytes: 5 } });
const put = (key: string, operationId: string, atMs = NOW_MS): JournalOp => ({
  op: 'idempotency_put',
  scope: scope(key),
  row: { fingerprint: 'f', operationId, answer: answer(200) },
  atMs,
});

describe('the answer under an Idempotency-Key', () => {
  it('is kept for a day, for its principal, method and path only', () => {
    const { db, write } = testDatabase(temporaryDirectory());
    const lookups = new Lookups(db);
    write(intentOp('op-1'), put('k', 'op-1'));
    expect(lookups.idempotent(scope('k'), NOW_MS + LIMITS.idempotencyKeptMs - 1)).toEqual({
      fingerprint: 'f',
      operationId: 'op-1',
      answer: answer(200),
    });
    expect(lookups.idempotent(scope('k'), NOW_MS + LIMITS.idempotencyKeptMs)).toBeNull();
    for (const changes of [{ principal: 'bert' }, { method: 'DELETE' }, { path: '/other' }])
      expect(lookups.idempotent(scope('k', changes), NOW_MS)).toBeNull();
  });

  it('is removed by an aborted outcome, replaced by the answer of any other, and kept without one', () => {
    const { db, write } = testDatabase(temporaryDirectory());
    const lookups = new Lookups(db);
    const status = (key: string): number | undefined => lookups.idempotent(scope(key), NOW_MS)?.answer.status;
    for (const n of [1, 2, 3]) write(intentOp(`op-${n}`, `demo/${n}`), put(`k${n}`, `op-${n}`));
    write(
      outcomeOp('op-1', 'aborted', { path: '1' }, answer(507)),
      outcomeOp('op-2', 'unknown', { path: '2' }, answer(503)),
      outcomeOp('op-3', 'committed', { path: '3' }),
    );
    expect([status('k1'), status('k2'), status('k3')]).toEqual([undefined, 503, 200]);
  });

  it('stands behind that of an unknown outcome, and is back with the last word, under the tag that the file got', () => {
    const { db, write } = testDatabase(temporaryDirectory());
    const lookups = new Lookups(db);
    const stored = (): unknown => lookups.idempotent(scope('k'), NOW_MS)?.answer;
    const promised = { status: 201, headers: { etag: '"1-2-3"' }, body: { files: [{ etag: '"1-2-3"' }, { etag: '"9-2-3"' }], token: 2n ** 60n } };
    write(intentOp('op'), { ...put('k', 'op'), row: { fingerprint: 'f', operationId: 'op', answer: promised } } as JournalOp);
    for (const _again of [1, 2]) {
      write(outcomeOp('op', 'unknown', {}, { status: 503, headers: {}, body: null }));
      expect(stored()).toMatchObject({ status: 503, headers: {}, body: null });
    }
    write({ ...outcomeOp('op', 'committed'), retagged: { from: '"1-2-3"', to: '"4-2-3"' } } as JournalOp);
    expect(stored()).toEqual({
      ...promised,
      headers: { etag: '"4-2-3"' },
      body: { files: [{ etag: '"4-2-3"' }, { etag: '"9-2-3"' }], token: 2n ** 60n },
    });
  });

  it('leads to its operation', () => {
    const { db, write } = testDatabase(temporaryDirectory());
    const lookups = new Lookups(db);
    write(intentOp('op-1'), put('k', 'op-1'));
    expect(lookups.operation({ by: 'idempotency_key', principal: 'anna', key: 'k' }, NOW_MS)).toMatchObject([{ operationId: 'op-1' }]);
    expect(lookups.operation({ by: 'idempotency_key', principal: 'bert', key: 'k' }, NOW_MS)).toEqual([]);
  });

  it('is one of a bounded number: the oldest go', () => {
    const { db, write } = testDatabase(temporaryDirectory(), { idempotencyRowsMax: 10 });
    const lookups = new Lookups(db);
    for (let n = 0; n < 25; n++) write(put(`k${n}`, `op-${n}`, NOW_MS + n), put('same', 'op-same', NOW_MS + n));
    expect(db.prepare('SELECT count(*) FROM idempotency').pluck().get()).toBe(10);
    expect(lookups.idempotent(scope('k24'), NOW_MS)).not.toBeNull();
    expect(lookups.idempotent(scope('same'), NOW_MS)).not.toBeNull();
    expect(lookups.idempotent(scope('k3'), NOW_MS)).toBeNull();
  });
});
