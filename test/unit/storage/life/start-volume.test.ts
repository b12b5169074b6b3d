import * as fs from 'node:fs';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { refuse } from '../../../../src/domain/errors.ts';
import { LIMITS } from '../../../../src/domain/limits.ts';
import { parseStamp } from '../../../../src/storage/life/stamp.ts';
import { startVolume } from '../../../../src/storage/life/start-volume.ts';
import { pool } from '../../../../src/storage/pool-calls.ts';
import { EIO, ENOSPC, FaultCalls } from '../../../support/fault-calls.ts';
import { put, remove, writeInPlace } from '../../../support/hand-made-writes.ts';
import { LivingVolume } from '../../../support/living-volume.ts';
import { ON_NFS } from '../../../support/volume-base.ts';

let living: LivingVolume;
beforeEach(() => {
  living = new LivingVolume();
});
afterEach(() => living.remove());

const stamp = () => parseStamp(fs.readFileSync(living.control('stamp')));

describe('starting a volume', () => {
  it('opens an empty directory with an owner, a stamp, one published directory, and the incarnation fence', async () => {
    const opened = await living.open();
    expect(opened).toMatchObject({ verdict: 'ok', ceilingFound: 0n, findings: [] });
    expect(opened.volume.fenceLevel).toBe('incarnation');
    expect(living.record.directories).toEqual([opened.volume.incarnation]);
    expect(fs.readdirSync(living.control()).sort()).toEqual([opened.volume.incarnation, 'owner', 'stamp'].sort());
    expect(fs.statSync(living.control()).mode & 0o777).toBe(0o700);
    await opened.close();
  });

  it('publishes its own directory before it clears another one, and forgets an old one only after it is gone', async () => {
    const first = await living.open();
    const seen: string[] = [];
    const { published, gone, recovered } = living.record;
    living.record.published = async (name) => {
      seen.push(`published with ${living.incarnationDirectories().length} directories`);
      return published.call(living.record, name);
    };
    living.record.gone = async (name) => {
      seen.push(`gone: ${fs.existsSync(living.control(name)) ? 'there' : 'removed'}`);
      return gone.call(living.record, name);
    };
    living.record.recovered = async (settled) => {
      seen.push(`recovered with ${living.own().length} files`);
      return recovered.call(living.record, settled);
    };
    fs.writeFileSync(living.control(first.volume.incarnation, 'left-over'), 'x');
    await (await living.open()).close();
    expect(seen).toEqual(['published with 2 directories', 'gone: removed', 'recovered with 1 files']);
    expect(living.own()).toEqual([]);
  });

  it.each([
    ['before anything is made on the volume', 1, []],
    ['right before its own directory is made', 2, ['mkdirOwn']],
  ])('makes no directory once the journal is another’s, and is told so %s', async (_when, asked, tried) => {
    await (await living.open()).close();
    const before = fs.readdirSync(living.control()).sort();
    let questions = 0;
    living.record.assertOurs = async () => {
      questions += 1;
      if (questions === asked) throw refuse('journal_unavailable', 'another process has taken it over');
    };
    const deps = living.deps();
    const faults = new FaultCalls(deps.calls);
    await expect(startVolume({ ...deps, calls: faults.calls })).rejects.toMatchObject({ code: 'journal_unavailable' });
    expect(faults.log.filter((call) => call === 'mkdirOwn')).toEqual(tried);
    expect(fs.readdirSync(living.control()).sort()).toEqual(before);
  });

  it.each([
    ['its journal refuses the name', 'published'],
    ['the directory cannot be opened', 'open'],
    ['the directory cannot be made durable', 'fsync'],
    ['the server made the directory and said that it did not', 'mkdirOwn'],
  ] as const)('leaves no directory of its own behind when %s', async (_why, failing) => {
    await (await living.open()).close();
    const before = fs.readdirSync(living.control()).sort();
    const deps = living.deps();
    const faults = new FaultCalls(deps.calls);
    let questions = 0;
    living.record.assertOurs = async () => {
      questions += 1;
      if (questions < 2 || failing === 'published') return;
      if (failing === 'open') {
        // The probe is over: the next directory is the own one.
        faults.failOnce('open', EIO);
      } else faults.failOnce(failing, EIO, 'after');
    };
    if (failing === 'published')
      living.record.published = async () => Promise.reject(refuse('journal_unavailable', 'another process has taken it over'));
    const started = startVolume({ ...deps, calls: faults.calls });
    if (failing === 'published') await expect(started).rejects.toMatchObject({ code: 'journal_unavailable' });
    else expect(await started).toMatchObject({ kind: 'unavailable' });
    expect(fs.readdirSync(living.control()).sort()).toEqual(before);
  });

  it('removes its own directory when that comes to be after the deadline of the call', async () => {
    await (await living.open()).close();
    const before = fs.readdirSync(living.control()).sort();
    const { mkdir } = pool;
    let letGo = (): void => undefined;
    const asked = new Promise<void>((resolve) => {
      const gate = new Promise<void>((open) => {
        letGo = open;
      });
      vi.spyOn(pool, 'mkdir').mockImplementation(async (path, mode) => {
        if (/[0-9a-f]{32}$/.test(String(path))) {
          resolve();
          await gate;
        }
        return mkdir(path, mode);
      });
    });
    onTestFinished(() => void vi.restoreAllMocks());
    const removed = vi.spyOn(pool, 'rmdir');
    const started = living.start({ network: true });
    await asked;
    const earlier = removed.mock.results.length;
    living.laneClock.advance(LIMITS.volumeCallDeadlineMs);
    expect(await started).toMatchObject({ kind: 'unavailable' });
    letGo();
    await expect.poll(() => removed.mock.settledResults.slice(earlier).filter(({ type }) => type === 'fulfilled').length).toBe(1);
    expect(fs.readdirSync(living.control()).sort()).toEqual(before);
  });

  it('reports an empty incarnation directory that the journal never published, and whatever else it did not make, and leaves all of it alone', async () => {
    await (await living.open()).close();
    const unknown = '0123456789abcdef0123456789abcdef';
    fs.mkdirSync(living.control(unknown));
    for (const name of ['notes.txt', 'probe-notes']) fs.writeFileSync(living.control(name), 'what is this');
    const opened = await living.open();
    expect(opened.findings.map(({ code, severity }) => `${code} ${severity}`).sort()).toEqual([
      'foreign_entry warning',
      'foreign_entry warning',
      'unknown_directory warning',
    ]);
    expect(opened.verdict).toBe('ok');
    expect(living.incarnationDirectories()).toContain(unknown);
    await opened.close();
  });

  it('removes what the self-test left of a start that was killed, at whatever step', async () => {
    await (await living.open()).close();
    const { steps } = living.kill;
    let left = 0;
    for (let killAt = 1; killAt <= steps; killAt += 1) {
      const young = new LivingVolume(killAt, 'memory');
      const probes = (): string[] => fs.readdirSync(young.control()).filter((name) => name.startsWith('probe-'));
      await young.start({ killAt }).catch(() => undefined);
      young.kill.closeAll();
      if (killAt > 1) left += probes().length;
      const opened = await young.open();
      expect([killAt, probes()]).toEqual([killAt, []]);
      await opened.close();
      young.remove();
    }
    expect(left).toBeGreaterThan(10);
  });

  it.each([
    ['is missing', (path: string) => fs.rmSync(path, { recursive: true })],
    [
      'is a file',
      (path: string) => {
        fs.rmSync(path, { recursive: true });
        fs.writeFileSync(path, '');
      },
    ],
  ])('is unavailable, not closed, when its directory %s', async (_why, breakIt) => {
    breakIt(living.root);
    expect(await living.start()).toMatchObject({ kind: 'unavailable', findings: [{ code: 'volume_unavailable' }] });
  });

  it.each([
    ['a file', (path: string) => fs.writeFileSync(path, '')],
    ['a symbolic link', (path: string) => fs.symlinkSync('/tmp', path)],
  ])('stays closed when %s stands in place of its control directory', async (_what, make) => {
    make(living.control());
    expect(await living.start()).toMatchObject({ kind: 'closed', findings: [{ code: 'foreign_entry' }] });
  });

  it('stays closed when the stamp cannot be read, because the tokens issued are then unknown', async () => {
    await (await living.open()).close();
    fs.writeFileSync(living.control('stamp'), '{');
    expect(await living.start()).toMatchObject({ kind: 'closed', findings: [{ code: 'record_damaged' }] });
  });

  it('writes nothing on a read-only volume', async () => {
    living.write('a', 'bytes');
    const opened = await living.open({ policy: { readOnly: true } });
    expect(fs.readdirSync(living.root)).toEqual(['a']);
    expect(opened.volume.state().state).toBe('read_only');
    expect(() => opened.volume.assertWritable()).toThrow(/read-only/);
    await opened.close();
  });

  it('leaves no descriptor open behind a start that failed or a volume that closed', async () => {
    await (await living.open()).close();
    const before = fs.readdirSync('/proc/self/fd').length;
    await (await living.open()).close();
    await living.start({ owner: 'gateway-2' });
    // On a network mount a close of the first one may still have been under way.
    expect(fs.readdirSync('/proc/self/fd').length).toBeLessThanOrEqual(before);
  });
});

describe('a restored or lost journal', () => {
  it('R33: an older journal is noticed by the last token in the stamp, and writes wait for a rebase', async () => {
    const first = await living.open();
    await first.stamp?.reserve(7n);
    first.stamp?.noteIssued(7n);
    await first.close();
    const restored = await living.open({ journalKnows: 3n });
    expect(restored).toMatchObject({ verdict: 'ahead_of_journal', findings: [{ code: 'journal_behind_stamp' }] });
    await expect(restored.stamp?.reserve(8n)).rejects.toMatchObject({ code: 'volume_unavailable' });
    expect(stamp().last).toBe(7n);
    await restored.close();
    await (await living.open({ journalKnows: 7n })).close();
  });

  it('another journal is noticed by its uuid, and the stamp keeps the old one until a rebase', async () => {
    await (await living.open()).close();
    const other = await living.open({ journalUuid: 'journal-2' });
    expect(other).toMatchObject({ verdict: 'other_journal', findings: [{ code: 'other_journal' }] });
    expect(stamp().journal).toBe('journal-1');
    await other.stamp?.rebase(other.ceilingFound + 1n);
    expect(stamp()).toMatchObject({ journal: 'journal-2', last: other.ceilingFound + 1n });
    await other.close();
  });

  it('a backup that was put back is refused although nothing else gives it away', async () => {
    await (await living.open()).close();
    const opened = await living.open({ backup: true });
    expect(opened.verdict).toBe('ok');
    expect(opened.findings).toMatchObject([{ code: 'journal_behind_stamp' }]);
    await expect(opened.stamp?.reserve(1n)).rejects.toMatchObject({ code: 'volume_unavailable' });
    await opened.close();
  });

  it('I6: the ceiling found only grows, over any number of starts', async () => {
    const found: bigint[] = [];
    for (let i = 0; i < 4; i += 1) {
      const opened = await living.open();
      found.push(opened.ceilingFound);
      await opened.close();
    }
    expect(found).toEqual([0n, 1n, 2n, 3n].map((starts) => starts * (LIMITS.tokenBlock + 1n)));
  });

  it('a rebase clears every incarnation directory, also those of a journal that is lost', async () => {
    const lost = await living.open();
    living.record.directories.length = 0;
    const rebased = await living.open({ journalUuid: 'journal-2', mode: 'rebase' });
    expect(living.incarnationDirectories()).toEqual([rebased.volume.incarnation]);
    await expect(put({ living, volume: lost.volume, operationId: 'op-1' }, 'a', 'zombie')).rejects.toMatchObject({ code: 'volume_unavailable' });
    expect(living.read('a')).toBeNull();
    await lost.close();
    await rebased.close();
  });
});

describe('what recovery refuses to touch', () => {
  it('I3: a file that is neither before nor staged is left, reported as unknown, and its staged file is kept', async () => {
    living.write('a', 'old');
    const writer = await living.open();
    const apply = writer.volume.apply.bind(writer.volume);
    writer.volume.apply = async () => {
      throw new Error('killed');
    };
    await expect(put({ living, volume: writer.volume, operationId: 'op-1' }, 'a', 'new')).rejects.toThrow('killed');
    writer.volume.apply = apply;
    await writer.close();
    living.write('a', 'put here by somebody else');
    for (let start = 0; start < 2; start += 1) {
      const opened = await living.open();
      expect(living.read('a')).toBe('put here by somebody else');
      expect(living.record.outcomes).toMatchObject([{ settlement: 'unknown' }]);
      expect(opened.findings).toMatchObject([{ code: 'intent_unknown', severity: 'error', resource: 'vol/a' }]);
      expect(living.own()).toEqual([living.record.intents[0]?.staged?.name]);
      await opened.close();
    }
  });

  it.each([
    ['on a local disk is finished in place', false],
    ['on a network mount is finished on a copy: its client may still send what the process wrote', true],
  ])('a write in place whose process was seen to exit %s', async (_where, network) => {
    living.write('a', 'old,');
    const writer = await living.open({ network });
    writer.volume.apply = async () => {
      throw new Error('killed');
    };
    await expect(writeInPlace({ living, volume: writer.volume, operationId: 'op-1' }, 'a', 'new', 'append')).rejects.toThrow('killed');
    await writer.close();
    const late = fs.openSync(living.path('a'), 'r+');
    const { ino } = fs.fstatSync(late);
    await (await living.open({ network, writer: 'exited' })).close();
    expect(living.record.outcomes).toMatchObject([{ settlement: 'finished' }]);
    expect(living.read('a')).toBe('old,new');
    expect(fs.statSync(living.path('a')).ino === ino).toBe(!network && !ON_NFS);
    fs.closeSync(late);
  });

  it.each([
    ['on a local disk is the staged file itself', false],
    ['on a network mount is a copy of it: its client may still send bytes that the server has not confirmed', true],
  ])('what recovery publishes of a replace that was cut off before its rename %s', async (_where, network) => {
    living.write('a', 'old');
    const writer = await living.open({ network });
    writer.volume.apply = async () => {
      throw new Error('killed');
    };
    await expect(put({ living, volume: writer.volume, operationId: 'op-1' }, 'a', 'new bytes')).rejects.toThrow('killed');
    const [intent] = living.record.intents;
    const late = fs.openSync(living.control(writer.volume.incarnation, intent?.staged?.name ?? ''), 'r+');
    await writer.close();
    await (await living.open({ network, writer: 'exited' })).close();
    expect(living.record.outcomes).toMatchObject([{ settlement: 'finished' }]);
    expect(living.read('a')).toBe('new bytes');
    living.write('a', 'changed in place by the next holder');
    fs.writeSync(late, 'LATE', 0);
    fs.closeSync(late);
    expect(living.read('a')?.startsWith('LATE')).toBe(!network && !ON_NFS);
  });

  it.each([
    ['says nothing (EIO) keeps the volume closed, with that for a reason, and the next start finishes the write', EIO],
    ['refuses it (ENOSPC) drops the write, and the volume opens', ENOSPC],
  ])('on a network mount a server that, asked to store the copy, %s', async (what, error) => {
    living.write('a', 'old');
    const writer = await living.open({ network: true });
    writer.volume.apply = async () => {
      throw new Error('killed');
    };
    await expect(put({ living, volume: writer.volume, operationId: 'op-1' }, 'a', 'new bytes')).rejects.toThrow('killed');
    await writer.close();
    const deps = living.deps({ network: true });
    const faults = new FaultCalls(deps.calls);
    faults.on('writeAll', (real, [, bytes]) => (Buffer.from(bytes as Uint8Array).toString() === 'new bytes' ? Promise.reject(error()) : real()));
    const result = await startVolume({ ...deps, calls: faults.calls }, 'plain');
    expect(living.read('a')).toBe('old');
    if (what.includes('EIO')) {
      expect(result).toMatchObject({ kind: 'unavailable', findings: [{ code: 'volume_unavailable', evidence: expect.stringContaining('EIO') }] });
      expect(living.record.outcomes).toEqual([]);
    } else if (result.kind === 'open') {
      expect(living.record.outcomes).toMatchObject([{ settlement: 'aborted' }]);
      expect(result.findings).toEqual([]);
      living.record.forget();
      await result.close();
    } else expect.fail(JSON.stringify(result));
    await (await living.open({ network: true })).close();
    expect(living.read('a')).toBe(what.includes('EIO') ? 'new bytes' : 'old');
  });

  it('an operation whose change the volume neither makes nor refuses is unknown, and the finding says that the file is as before', async () => {
    living.write('a', 'old');
    const writer = await living.open();
    writer.volume.apply = async () => {
      throw new Error('killed');
    };
    await expect(put({ living, volume: writer.volume, operationId: 'op-1' }, 'a', 'new bytes')).rejects.toThrow('killed');
    await writer.close();
    const deps = living.deps();
    const faults = new FaultCalls(deps.calls);
    faults.on('rename', (real, [, to]) => ((to as { name: string }).name === 'a' ? Promise.reject(EIO()) : real()));
    const result = await startVolume({ ...deps, calls: faults.calls }, 'plain');
    if (result.kind !== 'open') expect.fail(JSON.stringify(result));
    expect(result.findings).toMatchObject([{ code: 'intent_unknown', evidence: expect.stringContaining('is what it was before operation op-1') }]);
    await result.close();
    await (await living.open()).close();
    expect(living.record.outcomes).toMatchObject([{ settlement: 'finished' }]);
    expect(living.read('a')).toBe('new bytes');
  });

  it('on a network mount a replace with the bytes that stand there already is finished, not taken for done', async () => {
    living.write('a', 'the same');
    const writer = await living.open({ network: true });
    writer.volume.apply = async () => {
      throw new Error('killed');
    };
    await expect(put({ living, volume: writer.volume, operationId: 'op-1' }, 'a', 'the same')).rejects.toThrow('killed');
    await writer.close();
    const { ino } = fs.statSync(living.path('a'));
    await (await living.open({ network: true })).close();
    expect(living.record.outcomes).toMatchObject([{ settlement: 'finished' }]);
    expect([living.read('a'), fs.statSync(living.path('a')).ino === ino]).toEqual(['the same', false]);
    await (await living.open({ network: true })).close();
    expect(living.record.outcomes).toMatchObject([{ settlement: 'committed' }]);
  });

  it('aborts, and does not publish, a staged file whose bytes are not the ones that were hashed', async () => {
    living.write('a', 'old');
    const writer = await living.open();
    writer.volume.apply = async () => {
      throw new Error('killed');
    };
    await expect(put({ living, volume: writer.volume, operationId: 'op-1' }, 'a', 'new bytes')).rejects.toThrow('killed');
    const staged = living.control(writer.volume.incarnation, living.record.intents[0]?.staged?.name ?? '');
    const { atime, mtime } = fs.statSync(staged);
    fs.writeFileSync(staged, '\0\0\0\0\0\0\0\0\0');
    fs.utimesSync(staged, atime, mtime);
    await writer.close();
    await (await living.open()).close();
    expect(living.record.outcomes).toMatchObject([{ settlement: 'aborted' }]);
    expect(living.read('a')).toBe('old');
  });

  it('says committed of a removal although somebody made a new file there since', async () => {
    living.write('a', 'old');
    const writer = await living.open();
    const sync = writer.volume.syncParent.bind(writer.volume);
    writer.volume.syncParent = async () => {
      throw new Error('killed');
    };
    await expect(remove({ living, volume: writer.volume, operationId: 'op-1' }, 'a')).rejects.toThrow('killed');
    writer.volume.syncParent = sync;
    living.write('a', 'new and somebody else’s');
    await writer.close();
    await (await living.open()).close();
    expect(living.record.outcomes).toMatchObject([{ settlement: 'committed' }]);
    expect(living.read('a')).toBe('new and somebody else’s');
  });
});
