import * as fs from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LIMITS } from '../../../../src/domain/limits.ts';
import { VolumeTaken, type VolumeTitle, type VolumeTitles } from '../../../../src/domain/volume-title.ts';
import { parseOwner } from '../../../../src/storage/life/owner-file.ts';
import { parseStamp } from '../../../../src/storage/life/stamp.ts';
import { startVolume } from '../../../../src/storage/life/start-volume.ts';
import { SwitchedVolume } from '../../../../src/storage/life/switched-volume.ts';
import { intentFor, put } from '../../../support/hand-made-writes.ts';
import { type Life, LivingVolume, MemoryRecord, type Opened } from '../../../support/living-volume.ts';
import { sealAs } from '../../../support/seal.ts';
import { testPolicy } from '../../../support/temp-volume.ts';

const COORDINATOR = 'c0'.repeat(16);

let living: LivingVolume;
beforeEach(() => {
  living = new LivingVolume();
});
afterEach(() => living.remove());

interface Told {
  readonly steps: string[];
}

/** What an ensemble would say; `steps` is what was told to it. */
function titles(
  parts: Partial<Pick<VolumeTitle, 'left' | 'floor'>> & { before?: readonly string[]; taken?: () => VolumeTaken | null } = {},
): VolumeTitles & Told {
  const { left = [], floor = null, before = [], taken = () => null } = parts;
  const steps: string[] = [];
  return {
    steps,
    owner: () => ({ gateway: 'gateway-1', now: COORDINATOR, before }),
    doubt: () => null,
    claim: async (volume, uuid) => {
      const refusal = taken();
      if (refusal !== null) throw refusal;
      steps.push(`claim ${volume} ${uuid === null ? 'without uuid' : living.incarnationDirectories().length}`);
      return {
        left,
        floor,
        published: async () => void steps.push('published'),
        gone: async (directory) => void steps.push(`gone ${directory}`),
        opened: () => steps.push('opened'),
      };
    },
  };
}

const ownerFile = () => parseOwner(fs.readFileSync(living.control('owner')));
const stamp = () => parseStamp(fs.readFileSync(living.control('stamp')));

/** A process of another data directory over the same volume. */
async function another(life: Life, record = new MemoryRecord()): Promise<{ record: MemoryRecord; opened: Opened }> {
  const result = await startVolume({ ...living.deps({ journalUuid: 'journal-2', ...life }), record });
  if (result.kind !== 'open') throw new Error(JSON.stringify(result));
  return { record, opened: result as Opened };
}

describe('the title of a volume', () => {
  it('is claimed before its directory is made, told of it, and open when recovery is done', async () => {
    const ensemble = titles();
    const opened = await living.open({ titles: ensemble });
    expect(ensemble.steps).toEqual(['claim vol 0', 'published', 'opened']);
    expect(ownerFile().owner).toBe(COORDINATOR);
    await opened.close();
  });

  it('R27: a successor with another journal fences what the dead one left, goes on above the floor, and needs no rebase', async () => {
    const first = await living.open({ titles: titles() });
    await first.stamp?.reserve(7n);
    first.stamp?.noteIssued(7n);
    await first.stamp?.stop();
    const [old = ''] = living.incarnationDirectories();
    const staging = await first.volume.stage({ sha512: false });
    await staging.write(Buffer.from('late'));
    const ensemble = titles({ left: [old], floor: 1_000n });
    // An NFS client keeps what the dead one had open until that is closed; on a local disk nobody asks for its end.
    const endOldProcess = async (): Promise<boolean> => {
      await staging.discard();
      return true;
    };
    const { record, opened } = await another({ titles: ensemble, endOldProcess });
    expect(opened).toMatchObject({ verdict: 'ok', findings: [] });
    expect(ensemble.steps).toEqual(['claim vol 1', 'published', `gone ${old}`, 'opened']);
    expect(record.takeOvers).toEqual([{ from: 'journal-1', floor: 1_000n }]);
    expect(stamp()).toMatchObject({ journal: 'journal-2', last: 1_000n });
    expect(living.incarnationDirectories()).not.toContain(old);
    await staging.discard();
    await expect(first.volume.stage({ sha512: false })).rejects.toMatchObject({ code: 'volume_unavailable' });
    await opened.close();
    await first.close();
  });

  it.each([
    ['an ensemble that was put back, whose numbers are at or below a token that was issued', 7n],
    ['a coordinator that is not trusted yet', null],
  ])('waits for a rebase over %s', async (_, floor) => {
    const first = await living.open({ titles: titles() });
    first.stamp?.noteIssued(7n);
    await first.close();
    const { opened } = await another({ titles: titles({ floor, left: living.incarnationDirectories() }) });
    expect(opened).toMatchObject({ verdict: 'other_journal', findings: [{ code: 'other_journal' }] });
    expect(stamp().journal).toBe('journal-1');
    await opened.close();
  });

  it('waits for a rebase also where files lie in a directory that neither its journal nor the ensemble knows', async () => {
    const first = await living.open({ titles: titles() });
    await first.close();
    fs.writeFileSync(living.control(first.volume.incarnation, 'staged'), 'LATE');
    const { record, opened } = await another({ titles: titles({ floor: 1_000n }) });
    expect([opened.verdict, stamp().journal, record.takeOvers]).toEqual(['other_journal', 'journal-1', []]);
    await opened.close();
  });

  it('a volume of our own from before another coordinator was chosen can be read, and waits for a rebase', async () => {
    const first = await living.open();
    first.stamp?.noteIssued(7n);
    await first.close();
    const opened = await living.open({ titles: titles({ before: ['gateway-1'], floor: 1_000n }), journalKnows: 7n });
    expect(opened).toMatchObject({ verdict: 'other_coordinator', findings: [{ code: 'other_coordinator' }] });
    await expect(opened.stamp?.reserve(8n)).rejects.toMatchObject({ code: 'volume_unavailable' });
    expect(ownerFile().owner).toBe('gateway-1');
    await opened.close();
    const rebased = await living.open({ titles: titles({ before: ['gateway-1'] }), journalKnows: 7n, mode: 'rebase' });
    expect([rebased.verdict, ownerFile().owner]).toEqual(['ok', COORDINATOR]);
    await rebased.close();
  });

  it('and one on which no token was ever issued goes over without it', async () => {
    await (await living.open()).close();
    const opened = await living.open({ titles: titles({ before: ['gateway-1'] }) });
    expect([opened.verdict, ownerFile().owner]).toEqual(['ok', COORDINATOR]);
    await opened.close();
  });

  it('one that was ours, and that another journal had since, stays closed', async () => {
    await (await living.open({ journalUuid: 'journal-9' })).close();
    const result = await living.start({ titles: titles({ before: ['gateway-1'] }) });
    expect(result).toMatchObject({ kind: 'closed', ownedByAnother: true, findings: [{ code: 'foreign_owner' }] });
  });

  it('one of another gateway at the ensemble that was ours before is tried again: that gateway may have it rebased, and be gone one day', async () => {
    const old = 'd0'.repeat(16);
    const at = (now: string, before: readonly string[] = []) => ({
      journalUuid: 'journal-9',
      titles: { ...titles(), owner: () => ({ gateway: 'gateway-9', now, before }) },
    });
    await (await living.open(at(old))).close();
    const ours = titles({ before: ['gateway-1', old], floor: 1_000_000n });
    for (const mode of ['plain', 'rebase'] as const)
      expect(await living.start({ titles: ours, mode })).toMatchObject({
        kind: 'unavailable',
        ownedByAnother: true,
        findings: [{ code: 'standby' }],
      });
    expect(ours.steps).toEqual([]);
    await (await living.open({ ...at(COORDINATOR, [old]), mode: 'rebase' })).close();
    await (await living.open({ titles: ours })).close();
    expect(ownerFile().owner).toBe(COORDINATOR);
  });

  it('while its owner lives the volume is tried again, touches nothing, and opens when the owner is gone', async () => {
    let refusal: VolumeTaken | null = new VolumeTaken('Somebody owns it.', { lasting: false });
    const ensemble = titles({ taken: () => refusal });
    const volume: SwitchedVolume = new SwitchedVolume({
      policy: testPolicy({ path: living.root }),
      clock: living.clock,
      doubt: () => null,
      onChange: () => undefined,
      start: (mode) => startVolume({ ...living.deps({ titles: ensemble }), onFenced: () => volume.reincarnate() }, mode),
    });
    await volume.start();
    expect([volume.ownedByAnother, volume.state().state, volume.findings]).toMatchObject([true, 'unavailable', [{ code: 'standby' }]]);
    expect(living.incarnationDirectories()).toEqual([]);
    for (let i = 0; i < 10; i += 1) await living.clock.advanceAsync(LIMITS.volumeRetryMsMin);
    refusal = null;
    living.clock.advance(LIMITS.volumeRetryMsMin);
    await expect.poll(() => volume.state().state).toBe('open');
    expect(volume.ownedByAnother).toBe(false);
    await volume.stop();
  });

  it('stays closed while its name is another volume’s', async () => {
    const result = await living.start({ titles: titles({ taken: () => new VolumeTaken('The name is taken.', { lasting: true }) }) });
    expect(result).toMatchObject({ kind: 'closed', ownedByAnother: true, findings: [{ code: 'foreign_owner' }] });
  });

  it('a volume without files, or that is only read, has a title too', async () => {
    const ensemble = titles();
    expect(await living.start({ titles: ensemble, policy: { path: null } })).toEqual({ kind: 'lock_only' });
    expect(ensemble.steps).toEqual(['claim vol without uuid', 'opened']);
    const still = titles();
    await (await living.open({ titles: still, policy: { readOnly: true } })).close();
    expect(still.steps).toEqual(['claim vol without uuid', 'opened']);
  });

  it('a new coordinator session gets a new incarnation, and files can be read all the while', async () => {
    living.write('a', 'bytes');
    let wait: Promise<void> = Promise.resolve();
    let goOn = (): void => undefined;
    const volume: SwitchedVolume = new SwitchedVolume({
      policy: testPolicy({ path: living.root }),
      clock: living.clock,
      doubt: () => null,
      onChange: () => undefined,
      start: async (mode) => {
        await wait;
        return startVolume({ ...living.deps({ titles: titles() }), onFenced: () => volume.reincarnate() }, mode);
      },
    });
    await volume.start();
    const { incarnation } = volume;
    wait = new Promise((resolve) => (goOn = resolve));
    volume.renew();
    await (await volume.open(living.resource('a'))).close();
    expect(() => volume.covers(1n)).not.toThrow();
    goOn();
    await expect.poll(() => volume.incarnation).not.toBe(incarnation);
    expect(living.incarnationDirectories()).toEqual([volume.incarnation]);
    await volume.stop();
  });
});

describe('a volume that comes back from another journal', () => {
  it('I1: what our journal intended and nobody did stays undone, though its staged file came back', async () => {
    const first = await living.open({ titles: titles() });
    const write = { living, volume: first.volume, operationId: 'op-1' };
    const staging = await first.volume.stage({ sha512: false });
    await staging.write(Buffer.from('late'));
    const staged = await sealAs(first.volume, staging, null);
    await staging.sync();
    living.record.intend(intentFor(write, 'a', { kind: 'create' }, null, staged));
    const [old = ''] = living.incarnationDirectories();
    // The other gateway dies in the middle of its take-over: the staged file lies in its directory.
    fs.linkSync(living.control(old, staged.name), living.path('kept'));
    const other = new MemoryRecord();
    const fenced = await another({ titles: titles({ left: [old], floor: 1_000n }) }, other);
    await fenced.opened.close();
    fs.renameSync(living.path('kept'), living.control(other.directories[0] ?? '', staged.name));
    const back = await living.open({ titles: titles({ left: [...other.directories], floor: 2_000n }) });
    expect(living.read('a')).toBeNull();
    expect(living.record.outcomes).toMatchObject([{ settlement: 'aborted' }]);
    await back.close();
    await first.close();
  });

  it('and what was done before stays done', async () => {
    const first = await living.open({ titles: titles() });
    await put({ living, volume: first.volume, operationId: 'op-1' }, 'a', 'done', 'create');
    const [old = ''] = living.incarnationDirectories();
    const fenced = await another({ titles: titles({ left: [old], floor: 1_000n }) });
    const back = await living.open({ titles: titles({ left: [...fenced.record.directories], floor: 2_000n }) });
    expect([living.read('a'), living.record.outcomes]).toMatchObject(['done', [{ settlement: 'committed' }]]);
    for (const one of [back, fenced.opened, first]) await one.close();
  });
});
