import { describe, expect, test } from 'vitest';
import type { AuditDraft } from '../../../src/domain/audit-record.ts';
import { type ErrorCode, GatewayError } from '../../../src/domain/errors.ts';
import { fencingToken } from '../../../src/domain/fencing-token.ts';
import { etagOf, type FileFacts } from '../../../src/domain/file-facts.ts';
import type { ApplyPlan, Intent, Settlement } from '../../../src/domain/intent.ts';
import type { JournalOp } from '../../../src/domain/journal.ts';
import { resourceOf } from '../../../src/domain/resource.ts';
import { journalKnows, leasesComeBack, tokensAbove, volumeRecord, writersBefore } from '../../../src/gateway/recover.ts';
import { statusOf } from '../../../src/http/status.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const facts: FileFacts = { ino: 7n, sizeBytes: 3, mtimeNs: 9_000n };
const audit: AuditDraft = {
  at: '2025-01-01T00:00:00.000Z',
  action: 'put',
  volume: 'vol',
  path: 'a',
  outcome: 'committed',
  code: null,
  status: 200,
  principal: 'ann',
  clientId: null,
  remoteAddress: null,
  requestId: 'r',
  operationId: 'op-1',
  leaseRef: 'l',
  fencingToken: fencingToken(4n),
  highWaterMark: null,
  sizeBytes: 3,
  digest: null,
  etagBefore: null,
  etagAfter: etagOf(facts),
  durationMs: 1,
  fenceLevel: 'incarnation',
  count: 1,
};

function intent(operationId: string, path: string, plan: ApplyPlan = { kind: 'replace' }): Intent {
  return {
    operationId,
    resource: resourceOf('vol', [path], false),
    before: null,
    staged: null,
    plan,
    incarnation: 'i',
    audit: { ...audit, operationId, path },
  };
}

interface RecordingOptions {
  readonly refuse?: ErrorCode;
  readonly unknown?: boolean;
  readonly meta?: Readonly<Record<string, string>>;
}

function recording(options: RecordingOptions = {}) {
  const units: JournalOp[][] = [];
  const settled: string[] = [];
  const record = volumeRecord(
    {
      clock: new FakeClock(),
      statusOf,
      start: {
        incarnations: () => ['old'],
        meta: (name) => options.meta?.[name] ?? null,
        unsettledIntents: () => [],
        saidUnknown: () => options.unknown === true,
        knows: (id) => (id === 'op-1' ? 'settled' : 'never'),
      },
      journal: {
        commit: async (ops) => {
          if (options.refuse !== undefined) throw new GatewayError(options.refuse, { detail: 'superseded' });
          units.push([...ops]);
          return { seqs: [] };
        },
        settled: (id) => void settled.push(id),
      },
    },
    'vol',
  );
  return { record, units, settled };
}

const verdict = (one: Intent, settlement: Settlement, after: FileFacts | null = null) => ({ intent: one, settlement, after });

describe('the outcomes of recovery', () => {
  test('presumed commit: a committed or finished write needs no record of its own', async () => {
    const { record, units, settled } = recording();
    await record.recovered([verdict(intent('op-1', 'a'), 'committed', facts), verdict(intent('op-2', 'b'), 'finished', facts)]);
    expect(units).toEqual([]);
    expect(settled).toEqual(['op-1', 'op-2']);
  });

  test('a file that was published from a copy has its true ETag recorded', async () => {
    const { record, units } = recording();
    const after = { ...facts, ino: 8n };
    await record.recovered([verdict(intent('op-1', 'a'), 'finished', after)]);
    expect(units).toMatchObject([
      [
        {
          op: 'outcome',
          operationId: 'op-1',
          outcome: 'committed',
          record: { etagAfter: etagOf(after) },
          answer: null,
          retagged: { from: etagOf(facts), to: etagOf(after) },
        },
      ],
    ]);
  });

  test('what was said to be unknown gets its last word, though all is as it was promised', async () => {
    const { record, units, settled } = recording({ unknown: true });
    await record.recovered([verdict(intent('op-1', 'a'), 'committed', facts), verdict(intent('op-2', 'b', { kind: 'rmdir' }), 'finished')]);
    expect(units).toMatchObject([
      [
        {
          op: 'outcome',
          operationId: 'op-1',
          outcome: 'committed',
          record: { outcome: 'committed', code: null, etagAfter: etagOf(facts) },
          answer: null,
        },
        { op: 'outcome', operationId: 'op-2', outcome: 'committed', record: { path: 'b' }, answer: null },
      ],
    ]);
    expect(units[0]?.every((op) => !('retagged' in op))).toBe(true);
    expect(settled).toEqual(['op-1', 'op-2']);
  });

  test('I4: an aborted write has its record, and only then counts as settled', async () => {
    const { record, units, settled } = recording();
    await record.recovered([verdict(intent('op-1', 'a'), 'aborted')]);
    expect(units).toMatchObject([
      [
        {
          op: 'outcome',
          operationId: 'op-1',
          outcome: 'aborted',
          record: { outcome: 'aborted', code: 'volume_unavailable', status: 503, etagAfter: null, at: '2026-01-01T00:00:00.000Z' },
          answer: null,
        },
      ],
    ]);
    expect(settled).toEqual(['op-1']);
  });

  test('an unknown write is recorded, answered 503 under its key, and stays open for the next look', async () => {
    const { record, units, settled } = recording();
    await record.recovered([verdict(intent('op-1', 'a'), 'unknown', facts), verdict(intent('op-1', 'b'), 'committed', facts)]);
    expect(units).toMatchObject([
      [{ op: 'outcome', outcome: 'unknown', record: { path: 'a', code: 'outcome_unknown', status: 503 }, answer: { status: 503 } }],
    ]);
    expect(settled).toEqual([]);
  });

  test('an aborted move is recorded for both of its names', async () => {
    const { record, units } = recording();
    await record.recovered([
      verdict(intent('op-1', 'b', { kind: 'move', from: resourceOf('vol', ['a'], false), source: facts, manifest: 'm' }), 'aborted'),
    ]);
    expect(units[0]?.map((op) => op.op === 'outcome' && [op.record.path, op.record.code, op.record.status])).toEqual([
      ['b', 'volume_unavailable', 503],
      ['a', 'volume_unavailable', 503],
    ]);
  });

  test('all outcomes of a volume are one unit, and a journal that refuses it settles nothing', async () => {
    const { record, settled } = recording({ refuse: 'journal_unavailable' });
    await expect(record.recovered([verdict(intent('op-1', 'a'), 'aborted'), verdict(intent('op-2', 'b'), 'unknown')])).rejects.toMatchObject({
      code: 'journal_unavailable',
    });
    expect(settled).toEqual([]);
  });

  test('a directory is published and forgotten by the journal alone', async () => {
    const { record, units } = recording();
    await record.published('new');
    await record.gone('old');
    expect(units).toEqual([
      [{ op: 'incarnation_put', volume: 'vol', incarnation: 'new' }],
      [{ op: 'incarnation_gone', volume: 'vol', incarnation: 'old' }],
    ]);
  });
});

describe('the token ceiling of a volume in the journal', () => {
  test('is kept by the uuid of the volume, and never lowered', async () => {
    const { record, units } = recording({ meta: { 'ceiling:uuid-1': '30' } });
    expect([record.reservedCeiling('uuid-1'), record.reservedCeiling('uuid-2')]).toEqual([30n, null]);
    for (const ceiling of [29n, 30n]) await record.reserveCeiling('uuid-1', ceiling);
    expect(units).toEqual([]);
    await record.reserveCeiling('uuid-1', 31n);
    await record.reserveCeiling('uuid-2', 1n);
    expect(units).toEqual([[{ op: 'meta_put', name: 'ceiling:uuid-1', value: '31' }], [{ op: 'meta_put', name: 'ceiling:uuid-2', value: '1' }]]);
  });

  test.each([
    ['journal_unavailable', 'journal_unavailable'],
    ['overloaded', 'overloaded'],
    ['outcome_unknown', 'journal_unavailable'],
  ] as const)('that ends in %s is %s for whoever waits for a token: none was issued', async (refuse, code) => {
    await expect(recording({ refuse }).record.reserveCeiling('uuid-1', 1n)).rejects.toMatchObject({ code });
  });
});

describe('what a start may conclude', () => {
  test('a writer has exited only when the end of the process before was seen', () => {
    const start = { incarnations: () => ['old'] };
    expect(writersBefore(start, ['vol'], true)('old')).toBe('exited');
    expect(writersBefore(start, ['vol'], true)('younger')).toBe('unknown');
    expect(writersBefore(start, ['vol'], false)('old')).toBe('unknown');
  });

  test('I6: tokens go on above every mark, floor, base and ceiling', () => {
    const meta: Record<string, string> = { 'floor:b': '30', token_base: '20' };
    const start = { highestMark: () => fencingToken(10n), meta: (name: string) => meta[name] ?? null };
    expect(journalKnows(start, ['a', 'b'])).toBe(30n);
    expect(journalKnows({ highestMark: () => null, meta: () => null }, ['a'])).toBeNull();
    expect(tokensAbove(30n, [null, 40n, 35n])).toBe(40n);
    expect(tokensAbove(null, [])).toBe(0n);
  });

  test('no lease comes back over a journal that is not the one the volumes know', () => {
    expect(leasesComeBack({ markedAsBackup: false }, ['ok', null])).toBe(true);
    expect(leasesComeBack({ markedAsBackup: true }, ['ok'])).toBe(false);
    expect(leasesComeBack({ markedAsBackup: false }, ['ok', 'other_journal'])).toBe(false);
    for (const verdict of ['ahead_of_journal', 'unreserved_ceiling', 'unknown_files'] as const)
      expect(leasesComeBack({ markedAsBackup: false }, [verdict])).toBe(false);
  });
});
