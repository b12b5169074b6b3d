import * as fs from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LIMITS } from '../../../../src/domain/limits.ts';
import { startVolume } from '../../../../src/storage/life/start-volume.ts';
import { put } from '../../../support/hand-made-writes.ts';
import { LivingVolume, type Opened } from '../../../support/living-volume.ts';
import { sealAs } from '../../../support/seal.ts';
import { onTheServer } from '../../../support/volume-base.ts';

/** "What the storage itself enforces": after a take-over nothing that the old process still does can touch a file. */
let living: LivingVolume;
let old: Opened;
let oldDirectory: string;

beforeEach(async () => {
  living = new LivingVolume();
  old = await living.open();
  oldDirectory = living.control(old.volume.incarnation);
});
afterEach(async () => {
  await old.close();
  living.remove();
});

describe('clearing an old incarnation', () => {
  it('makes a late rename, link and create of the paused process fail, and leaves the winner’s file', async () => {
    living.write('live', 'old');
    fs.writeFileSync(join(oldDirectory, 'staged'), 'zombie');
    const held = fs.openSync(oldDirectory, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
    const successor = await living.open();
    living.write('live', 'winner');
    const late = `/proc/self/fd/${held}/staged`;
    expect(() => fs.renameSync(late, living.path('live'))).toThrow(/ENOENT/);
    expect(() => fs.linkSync(late, living.path('new'))).toThrow(/ENOENT/);
    expect(() => fs.renameSync(living.path('live'), `/proc/self/fd/${held}/trash`)).toThrow(/ENOENT/);
    expect(() => fs.writeFileSync(late, 'again')).toThrow(/ENOENT/);
    expect(living.read('live')).toBe('winner');
    fs.closeSync(held);
    await successor.close();
  });

  it('stops the paused process through its own volume too: its late write is refused and it knows why', async () => {
    let fenced = 0;
    const paused = await living.open({
      onFenced: () => {
        fenced += 1;
      },
    });
    const place = await paused.volume.locate(living.resource('live'));
    const staging = await paused.volume.stage({ sha512: false });
    await staging.write(Buffer.from('zombie'));
    const staged = await sealAs(paused.volume, staging, null);
    await staging.sync();
    const successor = await living.open();
    const intent = {
      operationId: 'op-9',
      resource: living.resource('live'),
      before: null,
      staged,
      plan: { kind: 'replace' as const },
      incarnation: paused.volume.incarnation,
      audit: undefined as never,
    };
    await expect(paused.volume.apply(intent, place, null)).rejects.toMatchObject({ code: 'outcome_unknown' });
    expect(fenced).toBe(1);
    expect(living.read('live')).toBeNull();
    await paused.close();
    await successor.close();
  });

  it('never makes a name of an incarnation twice', async () => {
    const names = new Set<string>([old.volume.incarnation]);
    for (let i = 0; i < 3; i += 1) {
      const next = await living.open();
      names.add(next.volume.incarnation);
      await next.close();
    }
    expect(names.size).toBe(4);
    expect(living.incarnationDirectories()).toHaveLength(1);
  });

  it.each([
    ['directory', (path: string) => fs.mkdirSync(path)],
    ['symbolic link', (path: string) => fs.symlinkSync('/etc', path)],
  ])('stops with a finding at a %s in it, keeps the volume closed and removes nothing', async (_kind, make) => {
    make(join(oldDirectory, 'strange'));
    const result = await living.start();
    expect(result).toMatchObject({ kind: 'closed', findings: [{ code: 'foreign_entry', severity: 'error' }] });
    expect(result.kind === 'closed' && result.reason).toContain('strange');
    expect(fs.lstatSync(join(oldDirectory, 'strange'))).toBeDefined();
    fs.rmSync(join(oldDirectory, 'strange'), { recursive: true });
    const again = await living.open();
    expect(living.incarnationDirectories()).toEqual([again.volume.incarnation]);
    await again.close();
  });

  it('goes on while the old process still makes files in it, until the directory is gone', async () => {
    let more = 5;
    const deps = living.deps();
    const rmdir = deps.calls.rmdir.bind(deps.calls);
    const busy = new Proxy(deps.calls, {
      get: (target, name) =>
        name !== 'rmdir'
          ? Reflect.get(target, name, target)
          : async (at: Parameters<typeof rmdir>[0]) => {
              if (at.name === old.volume.incarnation && more > 0) {
                more -= 1;
                fs.writeFileSync(join(oldDirectory, `late-${more}`), 'x');
              }
              return rmdir(at);
            },
    });
    const result = await startVolume({ ...deps, calls: busy });
    expect(result.kind).toBe('open');
    expect(more).toBe(0);
    expect(fs.existsSync(oldDirectory)).toBe(false);
    if (result.kind === 'open') await result.close();
  });

  it('B23: asks for the end of the old process when only .nfs* left-overs are there, and opens once they are gone', async () => {
    fs.writeFileSync(join(oldDirectory, '.nfs0001'), 'open elsewhere');
    let asked = 0;
    const result = await living.open({
      endOldProcess: async () => {
        asked += 1;
        fs.unlinkSync(join(oldDirectory, '.nfs0001')); // the last descriptor closes with its process
        return true;
      },
    });
    expect(asked).toBe(1);
    expect(fs.existsSync(oldDirectory)).toBe(false);
    await result.close();
  });

  it('keeps the volume closed when .nfs* left-overs stay', async () => {
    fs.writeFileSync(join(oldDirectory, '.nfs0001'), 'open for ever');
    const starting = living.start({ endOldProcess: async () => false });
    let result: Awaited<typeof starting> | undefined;
    void starting.then((ended) => {
      result = ended;
    });
    while (result === undefined) await living.clock.advanceAsync(LIMITS.oldProcessPollMs);
    // Whoever holds them ends some day, so it is tried again.
    expect(result).toMatchObject({ kind: 'unavailable', reason: expect.stringContaining('still open') });
    expect(fs.existsSync(join(oldDirectory, '.nfs0001'))).toBe(true);
    fs.unlinkSync(join(oldDirectory, '.nfs0001'));
    await (await living.open()).close();
    expect(fs.existsSync(oldDirectory)).toBe(false);
  });

  it('takes over a file staged for create-only as a copy, so that a late link by file handle finds no inode', async () => {
    const writer = await living.open();
    const before = living.record.intents.length;
    // The journal takes the intent; then the process stops before its link.
    const apply = writer.volume.apply.bind(writer.volume);
    writer.volume.apply = async () => {
      throw new Error('paused');
    };
    await expect(put({ living, volume: writer.volume, operationId: 'op-1' }, 'made', 'bytes', 'create')).rejects.toThrow('paused');
    writer.volume.apply = apply;
    const intent = living.record.intents[before];
    const staged = living.control(writer.volume.incarnation, intent?.staged?.name ?? '');
    const held = fs.openSync(onTheServer(staged), 'r');
    const successor = await living.open();
    expect(fs.fstatSync(held).nlink).toBe(0);
    expect(living.read('made')).toBe('bytes');
    expect(fs.statSync(living.path('made')).mode & 0o777).toBe(fs.fstatSync(held).mode & 0o777);
    expect(fs.statSync(living.path('made'), { bigint: true }).mtimeNs).toBe(intent?.staged?.mtimeNs);
    expect(living.record.outcomes).toMatchObject([{ settlement: 'finished' }]);
    fs.closeSync(held);
    await writer.close();
    await successor.close();
  });
});
