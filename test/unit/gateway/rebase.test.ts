import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../../src/domain/errors.ts';
import { fencingToken } from '../../../src/domain/fencing-token.ts';
import type { JournalOp } from '../../../src/domain/journal.ts';
import { adoptVolume, type RebasableVolume, rebaseFences } from '../../../src/gateway/rebase.ts';
import { FakeClock } from '../../support/fake-clock.ts';

interface Setting {
  readonly mark?: bigint;
  readonly meta?: Record<string, string>;
  readonly ceilings?: Record<string, bigint>;
  readonly failing?: string;
  readonly owned?: string;
  readonly journalFails?: boolean;
}

function gateway({ mark, meta = {}, ceilings = { a: 100n, b: 50n }, failing, owned, journalFails }: Setting = {}) {
  const log: string[] = [];
  const ops: JournalOp[] = [];
  const volumes = Object.entries(ceilings).map(
    ([name, ceilingFound]): RebasableVolume => ({
      name,
      ceilingFound,
      ownedByAnother: name === owned,
      policy: { path: name === 'locks' ? null : `/${name}`, readOnly: false },
      restart: async (mode) => {
        if (name === failing) throw new GatewayError('volume_unavailable', { detail: 'gone' });
        log.push(`${mode} ${name}`);
      },
      rebase: async (base) => void log.push(`stamp ${name} ${base}`),
    }),
  );
  const deps = {
    volumes,
    clock: new FakeClock(),
    start: {
      highestMark: () => (mark === undefined ? null : fencingToken(mark)),
      meta: (name: string) => meta[name] ?? null,
    },
    journal: {
      commit: async (unit: readonly JournalOp[]) => {
        if (journalFails === true) throw new GatewayError('journal_unavailable', { detail: 'full' });
        log.push('journal');
        ops.push(...unit);
        return { seqs: [] };
      },
    },
    locks: { rebase: async (base: bigint) => void log.push(`locks ${base}`) },
  };
  return { deps, log, ops };
}

describe('fence rebase', () => {
  test('I6: the base is one above the highest mark, floor and ceiling, and the stamps come last', async () => {
    const { deps, log, ops } = gateway({ mark: 70n, meta: { 'floor:a': '90' } });
    expect(await rebaseFences(deps, null, 'restored')).toEqual({ base: 101n, volumes: ['a', 'b'] });
    expect(log).toEqual(['rebase a', 'rebase b', 'locks 101', 'journal', 'stamp a 101', 'stamp b 101']);
    expect(ops).toMatchObject([
      { op: 'meta_put', name: 'floor:a', value: '101' },
      { op: 'meta_put', name: 'floor:b', value: '101' },
      { op: 'meta_put', name: 'token_base', value: '101' },
      { op: 'meta_put', name: 'backup', value: null },
      { op: 'audit', record: { action: 'fence_rebase', outcome: 'committed', highWaterMark: 101n } },
    ]);
  });

  test.each([
    [{ mark: 500n }, 501n],
    [{ meta: { 'floor:b': '700' } }, 701n],
    [{ meta: { token_base: '800' } }, 801n],
    [{ ceilings: {} }, 1n],
  ] as const)('%o gives base %s', async (setting, base) => {
    expect((await rebaseFences(gateway(setting).deps, null, 'restored')).base).toBe(base);
  });

  test('asked again it goes on above the first base: tokens never fall', async () => {
    const { deps } = gateway({ meta: { token_base: '101', 'floor:a': '101' } });
    expect((await rebaseFences(deps, null, 'restored')).base).toBe(102n);
  });

  test('nothing is ended and no stamp is written when a volume does not open', async () => {
    const { deps, log, ops } = gateway({ failing: 'b' });
    await expect(rebaseFences(deps, null, 'restored')).rejects.toMatchObject({ code: 'volume_unavailable' });
    expect(log).toEqual(['rebase a']);
    expect(ops).toEqual([]);
  });

  test('no stamp is written when the journal refuses: writes stay refused', async () => {
    const { deps, log } = gateway({ journalFails: true });
    await expect(rebaseFences(deps, null, 'restored')).rejects.toMatchObject({ code: 'journal_unavailable' });
    expect(log.filter((line) => line.startsWith('stamp'))).toEqual([]);
  });

  test('a lock-only volume gets a floor and has no stamp; one of another gateway is left alone', async () => {
    const { deps, log, ops } = gateway({ ceilings: { a: 5n, locks: 0n, theirs: 0n }, owned: 'theirs' });
    expect((await rebaseFences(deps, null, 'restored')).volumes).toEqual(['a', 'locks']);
    expect(log.filter((line) => line.startsWith('stamp') || line.startsWith('rebase'))).toEqual(['rebase a', 'stamp a 6']);
    expect(ops.filter((op) => op.op === 'meta_put' && op.name === 'floor:locks')).toHaveLength(1);
    expect(ops.filter((op) => op.op === 'meta_put' && op.name === 'floor:theirs')).toEqual([]);
  });
});

describe('volume adopt', () => {
  test('clears and takes the volume first, then voids its tokens, and writes its stamp last', async () => {
    const { deps, log, ops } = gateway({ mark: 3n });
    expect(await adoptVolume(deps, 'b', null, 'moved')).toBe(101n);
    expect(log).toEqual(['adopt b', 'locks 101', 'journal', 'stamp b 101']);
    expect(ops).toMatchObject([
      { name: 'floor:b', value: '101' },
      { name: 'token_base' },
      { op: 'audit', record: { action: 'volume_adopt', volume: 'b' } },
    ]);
  });

  test('is refused for a volume that is not there, does not open, or has nothing to own', async () => {
    await expect(adoptVolume(gateway().deps, 'c', null, 'moved')).rejects.toMatchObject({ code: 'volume_not_found' });
    const down = gateway({ failing: 'b' });
    await expect(adoptVolume(down.deps, 'b', null, 'moved')).rejects.toMatchObject({ code: 'volume_unavailable' });
    expect(down.ops).toEqual([]);
    await expect(adoptVolume(gateway({ ceilings: { locks: 0n } }).deps, 'locks', null, 'moved')).rejects.toMatchObject({ code: 'invalid_request' });
  });
});
