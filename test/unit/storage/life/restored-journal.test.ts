import * as fs from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { refuse } from '../../../../src/domain/errors.ts';
import { parseStamp, stampBytes } from '../../../../src/storage/life/stamp.ts';
import { startVolume } from '../../../../src/storage/life/start-volume.ts';
import { EIO, FaultCalls } from '../../../support/fault-calls.ts';
import { LivingVolume, type Opened } from '../../../support/living-volume.ts';

/** What gives away a journal that was put back while nothing in `last` does, and what must not be taken for one (R33). */
let living: LivingVolume;
beforeEach(() => {
  living = new LivingVolume();
});
afterEach(() => living.remove());

const UNKNOWN = '0123456789abcdef0123456789abcdef';
const stamp = () => parseStamp(fs.readFileSync(living.control('stamp')));

/** The journal as it is now; calling it puts it back. */
function backup(): () => void {
  const directories = [...living.record.directories];
  const ceilings = [...living.record.ceilings];
  return () => {
    living.record.directories.splice(0, Infinity, ...directories);
    living.record.ceilings.clear();
    for (const [uuid, ceiling] of ceilings) living.record.ceilings.set(uuid, ceiling);
  };
}

async function expectRefused(opened: Opened): Promise<void> {
  expect(opened.findings).toContainEqual(expect.objectContaining({ code: 'journal_behind_stamp', severity: 'error' }));
  const before = stamp();
  await expect(opened.stamp?.reserve(1n)).rejects.toMatchObject({ code: 'volume_unavailable' });
  expect(stamp()).toEqual(before);
}

/** As `POST /v1/admin/fences/rebase` does it, and the start after it. */
async function rebaseAndGoOn(): Promise<void> {
  const rebased = await living.open({ mode: 'rebase' });
  await rebased.stamp?.rebase(rebased.ceilingFound + 1n);
  expect(living.incarnationDirectories()).toEqual([rebased.volume.incarnation]);
  await rebased.close();
  const again = await living.open({ journalKnows: stamp().last });
  expect(again).toMatchObject({ verdict: 'ok', findings: [] });
  await again.close();
}

describe('a ceiling that the journal never reserved', () => {
  it('is of a later state, though no token was issued since: writes wait for a rebase, also of an empty directory', async () => {
    await (await living.open()).close();
    const putBack = backup();
    const later = await living.open();
    putBack();
    const restored = await living.open();
    expect(restored).toMatchObject({ verdict: 'unreserved_ceiling', findings: [{ code: 'unknown_directory', severity: 'warning' }, {}] });
    await expectRefused(restored);
    await restored.close();
    await rebaseAndGoOn();
    // The later one wakes: its directory is gone, and its journal does not know the ceiling of the rebase.
    await expect(later.volume.stage({ sha512: false })).rejects.toMatchObject({ code: 'volume_unavailable' });
    await later.close();
  });

  it('is of a later state also where the journal knows nothing of the volume, because it came to the gateway later', async () => {
    const putBack = backup();
    await (await living.open()).close();
    putBack();
    await expectRefused(await living.open({ journalKnows: 1_000n }));
  });

  it('shows the later state itself that it was superseded, once the older one has rebased', async () => {
    await (await living.open()).close();
    const putBack = backup();
    await (await living.open()).close();
    const later = backup();
    putBack();
    await rebaseAndGoOn();
    later();
    await expectRefused(await living.open({ journalKnows: stamp().last }));
  });

  it('is not there after a clean end: the journal of that moment, put back, opens by itself', async () => {
    await (await living.open()).close();
    const putBack = backup();
    putBack();
    const again = await living.open();
    expect(again).toMatchObject({ verdict: 'ok', findings: [] });
    await again.close();
  });
});

describe('no crash looks like a journal that was put back', () => {
  it('a start that is killed at any of its steps is followed by one that opens', async () => {
    await (await living.open()).close();
    const { steps } = living.kill;
    let between = 0;
    for (let killAt = 1; killAt <= steps; killAt += 1) {
      const young = new LivingVolume(killAt, 'memory');
      await (await young.open()).close();
      await young.start({ killAt }).catch(() => undefined);
      young.kill.closeAll();
      const found = parseStamp(fs.readFileSync(young.control('stamp')));
      if ([...young.record.ceilings.values()].some((ceiling) => ceiling > found.ceiling)) between += 1;
      const opened = await young.open();
      expect([killAt, opened.verdict]).toEqual([killAt, 'ok']);
      await opened.stamp?.reserve(opened.ceilingFound + 1n);
      await opened.close();
      young.remove();
    }
    expect(between).toBeGreaterThan(1);
  }, 60_000);

  it.each(['before', 'after'] as const)('nor is a stamp taken for one whose volume failed %s its rename', async (when) => {
    await (await living.open()).close();
    const deps = living.deps();
    const faults = new FaultCalls(deps.calls);
    let fail = true;
    faults.on('rename', async (real, [, to]) => {
      if ((to as { name: string }).name !== 'stamp' || !fail) return real();
      fail = false;
      if (when === 'after') await real();
      throw EIO();
    });
    expect(await startVolume({ ...deps, calls: faults.calls })).toMatchObject({ kind: 'unavailable' });
    const opened = await living.open();
    expect(opened.verdict).toBe('ok');
    await opened.close();
  });

  it('nor a predecessor that was stopped between the two, and whose stamp lands while its successor starts, whatever becomes of that one', async () => {
    await (await living.open()).close();
    const { steps } = living.kill;
    for (let killAt = 1; killAt <= steps; killAt += 1) {
      const young = new LivingVolume(killAt, 'memory');
      await (await young.open()).close();
      const [uuid = ''] = young.record.ceilings.keys();
      const late = { ...parseStamp(fs.readFileSync(young.control('stamp'))), ceiling: 2n ** 40n };
      young.record.ceilings.set(uuid, late.ceiling);
      // The successor has read the stamp of before, and has not cleared the directory yet.
      const { published } = young.record;
      young.record.published = async (name) => {
        fs.writeFileSync(young.control('stamp'), stampBytes(late));
        await published.call(young.record, name);
      };
      await young.start({ killAt }).catch(() => undefined);
      young.kill.closeAll();
      young.record.published = published;
      const opened = await young.open();
      expect([killAt, opened.verdict]).toEqual([killAt, 'ok']);
      await opened.close();
      young.remove();
    }
  }, 60_000);

  it('nor a journal that refused the ceiling: the stamp stays, the start says so, and the next one opens', async () => {
    await (await living.open()).close();
    const before = stamp();
    const { reserveCeiling } = living.record;
    living.record.reserveCeiling = async () => Promise.reject(refuse('journal_unavailable', 'its disk is full'));
    await expect(living.start()).rejects.toMatchObject({ code: 'journal_unavailable' });
    expect(stamp()).toEqual(before);
    living.record.reserveCeiling = reserveCeiling;
    const opened = await living.open();
    expect(opened.verdict).toBe('ok');
    await opened.close();
  });

  it('nor the stamp of an earlier version, from which on ceilings are reserved', async () => {
    await (await living.open()).close();
    const { journal, ceiling, last } = stamp();
    fs.writeFileSync(living.control('stamp'), JSON.stringify({ journal, ceiling: ceiling.toString(), last: last.toString() }));
    living.record.ceilings.clear();
    const opened = await living.open();
    expect([opened.verdict, stamp().reserved, [...living.record.ceilings.values()]]).toEqual(['ok', true, [stamp().ceiling]]);
    await opened.close();
  });
});

describe('files in a directory that the journal never published', () => {
  const made: readonly [string, () => void][] = [
    ['a staged file', () => fs.writeFileSync(living.control(UNKNOWN, 'staged'), 'LATE')],
    ['only what an NFS client keeps of an open file', () => fs.writeFileSync(living.control(UNKNOWN, '.nfs0001'), 'LATE')],
  ];

  it.each(made)('are of a process that it does not know: writes wait for a rebase, which clears it (%s)', async (_what, make) => {
    await (await living.open()).close();
    fs.mkdirSync(living.control(UNKNOWN));
    make();
    const opened = await living.open();
    expect(opened.verdict).toBe('unknown_files');
    expect(opened.findings).toContainEqual(expect.objectContaining({ code: 'unknown_directory', severity: 'error', entry: UNKNOWN }));
    await expectRefused(opened);
    expect(fs.readdirSync(living.control(UNKNOWN))).toHaveLength(1);
    await opened.close();
    for (const name of fs.readdirSync(living.control(UNKNOWN))) if (name.startsWith('.nfs')) fs.rmSync(living.control(UNKNOWN, name));
    await rebaseAndGoOn();
  });

  it('an empty one is a warning only, and so is a file of such a name', async () => {
    await (await living.open()).close();
    fs.mkdirSync(living.control(UNKNOWN));
    fs.writeFileSync(living.control('f'.repeat(32)), '');
    const opened = await living.open();
    expect(opened).toMatchObject({ verdict: 'ok', findings: [{ severity: 'warning' }, { severity: 'warning' }] });
    await opened.close();
  });
});
