import type { Database } from 'better-sqlite3';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AuditDraft, AuditFilter, AuditRecord } from '../../../src/domain/audit-record.ts';
import { ChainKeys } from '../../../src/journal/audit-chain.ts';
import { auditConditions, conditionValues } from '../../../src/journal/audit-conditions.ts';
import { AuditReader } from '../../../src/journal/audit-reader.ts';
import { AuditSearch, searchSql } from '../../../src/journal/audit-search.ts';
import { ChainVerifier } from '../../../src/journal/chain-verifier.ts';
import { OperationsInFlight } from '../../../src/journal/operations-in-flight.ts';
import { testDatabase } from '../../support/journal-database.ts';
import { auditDraft, auditOp, outcomeOp, token } from '../../support/journal-samples.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

function readerOver(db: Database, head: () => number, inFlight = new OperationsInFlight()): AuditReader {
  const search = new AuditSearch(db);
  const verifier = new ChainVerifier(db, new ChainKeys([]));
  return new AuditReader({
    search: (step) => Promise.resolve(search.step(step)),
    verify: (step) => Promise.resolve(verifier.step(step)),
    head: () => ({ seq: head(), hash: '' }),
    inFlight,
    beforeQuery: () => Promise.resolve(),
  });
}

async function allPages(reader: AuditReader, filter: AuditFilter, order: 'asc' | 'desc', limit: number): Promise<AuditRecord[]> {
  const records: AuditRecord[] = [];
  let cursor: string | null = null;
  do {
    const page = await reader.page(filter, { order, limit, cursor });
    expect(page.records.length).toBeLessThanOrEqual(limit);
    records.push(...page.records);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return records;
}

/** The contract of the filters, in plain words. */
function matches(filter: AuditFilter, record: AuditDraft): boolean {
  const equal = (wanted: unknown, found: unknown): boolean => wanted === undefined || wanted === found;
  const at = Date.parse(record.at);
  return (
    equal(filter.volume, record.volume) &&
    equal(filter.path, record.path) &&
    equal(filter.principal, record.principal) &&
    equal(filter.clientId, record.clientId) &&
    equal(filter.leaseRef, record.leaseRef) &&
    equal(filter.token, record.fencingToken) &&
    equal(filter.action, record.action) &&
    equal(filter.outcome, record.outcome) &&
    equal(filter.code, record.code) &&
    equal(filter.requestId, record.requestId) &&
    equal(filter.operationId, record.operationId) &&
    (filter.pathPrefix === undefined || filter.pathPrefix === '' || (record.path ?? '').startsWith(filter.pathPrefix)) &&
    (filter.since === undefined || at >= Date.parse(filter.since)) &&
    (filter.until === undefined || at < Date.parse(filter.until))
  );
}

const second = (n: number): string => new Date(Date.UTC(2026, 0, 1) + n * 1_000).toISOString();
const oneOf = <T>(...values: T[]): fc.Arbitrary<T> => fc.constantFrom(...values);
/** Times jump back and forth, as a wall clock may. */
const drafts = fc.array(
  fc.record({
    at: fc.integer({ min: 0, max: 60 }).map(second),
    action: oneOf('put', 'delete', 'lease_grant'),
    volume: oneOf(null, 'v', 'w'),
    path: oneOf(null, 'a', 'a/b', 'ab', 'c', 'é'),
    outcome: oneOf('committed', 'rejected'),
    code: oneOf(null, 'stale_token'),
    principal: oneOf(null, 'anna', 'bert'),
    clientId: oneOf(null, 'k'),
    requestId: oneOf(null, 'r1', 'r2'),
    leaseRef: oneOf(null, 'l'),
    fencingToken: oneOf(null, token(1), token(2n ** 62n)),
  }) as fc.Arbitrary<Partial<AuditDraft>>,
  { minLength: 1, maxLength: 40, size: 'max' },
);
const filters = fc.record(
  {
    volume: oneOf('v', 'w'),
    path: oneOf('a', 'a/b'),
    pathPrefix: oneOf('', 'a', 'a/', 'é', 'zz'),
    principal: oneOf('anna', 'carl'),
    clientId: oneOf('k'),
    leaseRef: oneOf('l'),
    token: oneOf(token(1), token(2n ** 62n)),
    action: oneOf('put', 'delete'),
    outcome: oneOf('committed', 'rejected'),
    code: oneOf('stale_token'),
    requestId: oneOf('r1'),
    since: fc.integer({ min: 0, max: 60 }).map(second),
    until: fc.integer({ min: 0, max: 60 }).map(second),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<AuditFilter>;

describe('an audit query', () => {
  it('gives, page by page and in both orders, exactly the records that match all its filters', async () => {
    const { db, write } = testDatabase(temporaryDirectory());
    let written: Partial<AuditDraft>[] = [];
    const reader = readerOver(db, () => written.length);
    await fc.assert(
      fc.asyncProperty(drafts, fc.array(filters, { minLength: 1, maxLength: 6 }), fc.integer({ min: 1, max: 7 }), async (more, several, limit) => {
        // The log only grows, over all runs: so pages span more than one run.
        written = [...written, ...more];
        write(...more.map((changes) => auditOp(changes)));
        for (const filter of several) {
          const expected = written.flatMap((changes, index) => (matches(filter, auditDraft(changes)) ? [index + 1] : []));
          expect((await allPages(reader, filter, 'asc', limit)).map(({ seq }) => seq)).toEqual(expected);
          expect((await allPages(reader, filter, 'desc', limit)).map(({ seq }) => seq)).toEqual(expected.reverse());
        }
      }),
      { numRuns: 25 },
    );
  }, 60_000);

  it('finds few matches in a long log without walking it', () => {
    const { db, group } = testDatabase(temporaryDirectory());
    const ops = Array.from({ length: 20_000 }, (_, index) =>
      auditOp({ principal: 'anna', code: index === 7 ? 'stale_token' : null, path: index === 9 ? 'rare/x' : `p/${index}`, volume: 'v' }),
    );
    group.run([ops], { lowWater: 0, closed: [] });
    const search = new AuditSearch(db);
    const first = (filter: AuditFilter) => search.step({ filter, order: 'desc', limit: 10, snapshot: 20_000, after: null, window: 0, inFlight: [] });
    expect(first({ principal: 'anna', code: 'stale_token' })).toMatchObject({ records: [{ seq: 8 }], after: null });
    expect(first({ pathPrefix: 'rare/', volume: 'v' })).toMatchObject({ records: [{ seq: 10 }], after: null });
    expect(first({ pathPrefix: 'rare/' })).toMatchObject({ records: [{ seq: 10 }], after: null });
    expect(first({ principal: 'nobody' })).toMatchObject({ records: [], after: null });
  });

  it('looks at a bounded part of the log in each step, however rare its matches are', () => {
    const { db, group } = testDatabase(temporaryDirectory());
    group.run(
      [
        Array.from({ length: 20_000 }, (_, index) =>
          auditOp({ principal: 'anna', action: index % 2 === 0 ? 'put' : 'delete', at: second(index === 0 ? 9 : 1) }),
        ),
      ],
      { lowWater: 0, closed: [] },
    );
    const search = new AuditSearch(db);
    const both = search.step({
      filter: { principal: 'anna', action: 'put', since: second(3) },
      order: 'asc',
      limit: 10,
      snapshot: 20_000,
      after: null,
      window: 0,
      inFlight: [],
    });
    expect(both.after).toBe(4_096);
    expect(both.window).toBe(16_384);
  });

  it('keeps its snapshot over pages: what is appended or superseded later moves nothing', async () => {
    const { db, write } = testDatabase(temporaryDirectory());
    let head = 4;
    write(...[1, 2, 3, 4].map((n) => auditOp({ operationId: `op-${n}`, requestId: `r${n}` })));
    const reader = readerOver(db, () => head);
    for (const order of ['asc', 'desc'] as const) {
      head = order === 'asc' ? 4 : 5;
      const first = await reader.page({}, { order, limit: 2, cursor: null });
      write(outcomeOp(order === 'asc' ? 'op-3' : 'op-1', 'aborted'));
      const rest = await reader.page({}, { order, limit: 10, cursor: first.nextCursor });
      const seen = [...first.records, ...rest.records].map(({ seq }) => seq);
      expect(seen).toEqual(order === 'asc' ? [1, 2, 3, 4] : [5, 4, 2, 1]);
    }
  });

  it('refuses a cursor that it did not make, one of the other order, and a time that is none', async () => {
    const { db, write } = testDatabase(temporaryDirectory());
    write(auditOp(), auditOp());
    const reader = readerOver(db, () => 2);
    const { nextCursor } = await reader.page({}, { order: 'asc', limit: 1, cursor: null });
    for (const cursor of ['', 'x', '%', Buffer.from('1:asc:1').toString('base64url'), nextCursor]) {
      await expect(reader.page({}, { order: 'desc', limit: 1, cursor })).rejects.toMatchObject({ code: 'invalid_request' });
    }
    await expect(reader.page({ since: 'yesterday' }, { order: 'asc', limit: 1, cursor: null })).rejects.toMatchObject({ code: 'invalid_request' });
  });

  it('serves every filter by an index', () => {
    const { db } = testDatabase(temporaryDirectory());
    const values: AuditFilter = {
      volume: 'v',
      path: 'p',
      pathPrefix: 'p',
      principal: 'a',
      clientId: 'c',
      leaseRef: 'l',
      token: token(1),
      action: 'put',
      outcome: 'rejected',
      code: 'stale_token',
      requestId: 'r',
      operationId: 'o',
      since: second(1),
      until: second(2),
    };
    const planOf = (filter: AuditFilter, order: 'asc' | 'desc'): string => {
      const conditions = auditConditions(filter);
      const bound = { ...conditionValues(filter, { sinceMs: 1, untilMs: 2 }, []), low: 1, high: 2, snapshot: 2, limit: 1 };
      const plan = db
        .prepare<[object], { detail: string }>(`EXPLAIN QUERY PLAN ${searchSql(conditions, order, conditions.indexed[0] ?? null)}`)
        .all(bound);
      return plan.map(({ detail }) => detail).join('; ');
    };
    for (const [name, value] of Object.entries(values)) {
      const filter: AuditFilter = { [name]: value };
      for (const order of ['asc', 'desc'] as const) {
        const plan = planOf(filter, order);
        expect(plan, name).toMatch(/SEARCH audit USING (INDEX|INTEGER PRIMARY KEY)/);
        if (name !== 'pathPrefix') expect(plan, name).not.toContain('TEMP B-TREE');
      }
    }
    expect(planOf({ outcome: 'pending' }, 'asc')).toMatch(/SEARCH audit USING INDEX audit_operation/);
    expect(planOf({ outcome: 'committed' }, 'asc')).toMatch(/SEARCH audit USING INDEX audit_outcome/);
    const all = planOf(values, 'desc');
    expect(all).toMatch(/SEARCH audit USING INDEX audit_operation \(operation_id=\? AND rowid>\? AND rowid<\?\)/);
    expect(all).not.toContain('TEMP B-TREE');
  });
});
