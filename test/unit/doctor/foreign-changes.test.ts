import { expect, it } from 'vitest';
import type { ExaminedVolume } from '../../../src/doctor/doctor-deps.ts';
import { foreignChanges } from '../../../src/doctor/foreign-changes.ts';
import { type AuditDraft, type AuditRecord, recordWith } from '../../../src/domain/audit-record.ts';
import type { Journal } from '../../../src/domain/journal.ts';
import { policyOf } from '../../support/lock-lab.ts';

/** A file that a commit of ours left is not there any more: was it changed behind the gateway, or is the volume just not ours now? */

const AT = '2026-01-01T00:00:00.000Z';

function auditOf(...drafts: readonly Partial<AuditDraft>[]): Pick<Journal, 'audit'> {
  const records = drafts.map((draft, i) => ({
    ...recordWith({ at: AT, action: 'put', volume: 'v', path: 'a', outcome: 'committed', code: null, status: 201, etagAfter: '"1"', ...draft }),
    seq: i + 1,
    previousHash: '',
    hash: '',
  })) as readonly AuditRecord[];
  return {
    audit: async ({ action, path, outcome }) => ({
      records: records
        .filter((record) => (action === undefined || record.action === action) && (path === undefined || record.path === path))
        .filter((record) => outcome === undefined || record.outcome === outcome)
        .toReversed(),
      nextCursor: null,
    }),
  };
}

function volume(state: () => ReturnType<ExaminedVolume['state']>): ExaminedVolume {
  return {
    name: 'v',
    policy: policyOf('v', { path: '/srv/v' }),
    folds: false,
    findings: [],
    state,
    space: () => null,
    locate: async (resource) => ({ resource, parent: null, missing: [], close: () => undefined }),
    look: async () => null,
    removeUnknownDirectory: async () => false,
  };
}

const found = async (journal: Pick<Journal, 'audit'>, ...volumes: readonly ExaminedVolume[]): Promise<readonly string[]> =>
  (await foreignChanges(journal as Journal, volumes)).map(({ finding }) => `${finding.code} ${finding.resource}`);

it('is found on a volume that is ours', async () => {
  expect(
    await found(
      auditOf({}),
      volume(() => ({ state: 'open', reason: null })),
    ),
  ).toEqual(['file_changed_behind_gateway v/a']);
});

it('is not found on one that proved to be in doubt when it had answered', async () => {
  let asked = 0;
  const doubted = volume(() => {
    asked += 1;
    return { state: 'unavailable', reason: 'It is not known whose it is.' };
  });
  expect(await found(auditOf({}, { path: 'b' }), doubted)).toEqual([]);
  expect(asked).toBe(1);
});

it('is not found of what was committed before the volume was taken over from another journal: who had it meanwhile wrote to it', async () => {
  const ours = volume(() => ({ state: 'open', reason: null }));
  const takeOver = { action: 'take_over', path: null, etagAfter: null, status: null } as const;
  expect(await found(auditOf({}, takeOver), ours)).toEqual([]);
  expect(await found(auditOf({}, { ...takeOver, volume: 'other' }), ours)).toHaveLength(1);
  expect(await found(auditOf({}, takeOver, { path: 'b' }), ours)).toEqual(['file_changed_behind_gateway v/b']);
});
