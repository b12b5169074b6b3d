import * as fs from 'node:fs';
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RecordDamaged } from '../../../../src/storage/life/facts-record.ts';
import { manifestBytes, parseManifest } from '../../../../src/storage/life/manifest-record.ts';
import { parseRedo, redoBytes } from '../../../../src/storage/life/redo.ts';
import { type HandMade, move, several, writeInPlace } from '../../../support/hand-made-writes.ts';
import { LivingVolume, type Opened } from '../../../support/living-volume.ts';

/** Redo entries and manifests whose intents our journal does not have: a lost journal, or a volume that was adopted. */
let living: LivingVolume;
let writer: Opened;

beforeEach(async () => {
  living = new LivingVolume();
  for (const name of ['a', 'b']) living.write(name, `old ${name}`);
  writer = await living.open();
});
afterEach(async () => {
  await writer.close();
  living.remove();
});

const by = (): HandMade => ({ living, volume: writer.volume, operationId: 'op-1' });
const inode = (name: string): bigint => fs.statSync(living.path(name), { bigint: true }).ino;

/** The write runs until its `applies`-th apply is over; then the journal is lost with its process. */
async function cutAfter(applies: number, write: () => Promise<void>): Promise<void> {
  const apply = writer.volume.apply.bind(writer.volume);
  let left = applies;
  writer.volume.apply = async (...args) => {
    if (left === 0) throw new Error('cut off');
    left -= 1;
    await apply(...args);
    if (left === 0) throw new Error('cut off');
  };
  await expect(write()).rejects.toThrow('cut off');
  living.record.intents.length = 0;
  living.record.known.clear();
}

/** A range write whose bytes were lost although its mtime was kept. */
async function cutAfterTheMtime(): Promise<bigint> {
  await cutAfter(1, () => writeInPlace(by(), 'a', 'XY', 1));
  const { mtimeNs } = fs.statSync(living.path('a'), { bigint: true });
  fs.writeFileSync(living.path('a'), 'oXd a');
  const file = fs.openSync(living.path('a'), 'r+');
  const seconds = Number(mtimeNs / 1_000n) / 1e6 + 3e-7;
  fs.futimesSync(file, seconds, seconds);
  fs.closeSync(file);
  return mtimeNs;
}

describe('a redo entry without an intent', () => {
  it('of a writer whose end nobody saw: the inode is replaced and its bytes stay as they were', async () => {
    await cutAfter(0, () => writeInPlace(by(), 'a', '+', 'append'));
    const zombie = fs.openSync(living.path('a'), 'r+');
    await (await living.open({ writer: 'unknown', mode: 'rebase' })).close();
    fs.writeSync(zombie, 'late', 5);
    fs.closeSync(zombie);
    expect(living.read('a')).toBe('old a');
    expect(living.own()).toEqual([]);
  });

  it('is applied, on a new inode, when the target already shows part of it', async () => {
    await cutAfter(0, () => writeInPlace(by(), 'a', 'append', 'append'));
    fs.appendFileSync(living.path('a'), 'app');
    const before = inode('a');
    await (await living.open({ writer: 'unknown', mode: 'rebase' })).close();
    expect(living.read('a')).toBe('old aappend');
    expect(inode('a')).not.toBe(before);
  });

  it('is dropped when its writer is known to be gone and nothing of it shows: the file keeps its inode', async () => {
    await cutAfter(0, () => writeInPlace(by(), 'a', '+', 'append'));
    const before = inode('a');
    await (await living.open({ writer: 'exited' })).close();
    expect(inode('a')).toBe(before);
    expect(living.own()).toEqual([]);
  });

  it('is applied when the file has the mtime that this write alone gives, and a power cut took bytes from it', async () => {
    const intended = await cutAfterTheMtime();
    await (await living.open({ writer: 'unknown', mode: 'rebase' })).close();
    expect(living.read('a')).toBe('oXY a');
    expect(fs.statSync(living.path('a'), { bigint: true }).mtimeNs).toBe(intended);
  });

  it('of a range is dropped and reported when only bytes speak for it: what was under them is written down nowhere', async () => {
    await cutAfter(0, () => writeInPlace(by(), 'a', 'XY', 1));
    fs.writeFileSync(living.path('a'), 'oXd a');
    const opened = await living.open({ writer: 'unknown', mode: 'rebase' });
    expect(opened.findings).toMatchObject([{ code: 'redo_unfinished', resource: 'vol/a' }]);
    expect([living.read('a'), living.own()]).toEqual(['oXd a', []]);
    await opened.close();
  });

  it('is dropped and reported when the file does not fit it; the file is left alone', async () => {
    await cutAfter(0, () => writeInPlace(by(), 'a', '+', 'append'));
    fs.writeFileSync(living.path('a'), 'something else entirely');
    const opened = await living.open({ writer: 'unknown' });
    expect(opened.findings).toMatchObject([{ code: 'redo_unfinished', resource: 'vol/a' }]);
    expect(living.read('a')).toBe('something else entirely');
    expect(living.own()).toEqual([]);
    await opened.close();
  });
});

describe('a manifest without intents', () => {
  it('of several files is dropped when no target is the staged inode', async () => {
    await cutAfter(0, () => several(by(), { a: 'new a', c: 'new c' }));
    await (await living.open({ mode: 'rebase' })).close();
    expect([living.read('a'), living.read('c')]).toEqual(['old a', null]);
    expect(living.own()).toEqual([]);
  });

  it('of several files goes forward when one target already is the staged inode', async () => {
    await cutAfter(1, () => several(by(), { a: 'new a', c: 'new c' }));
    await (await living.open({ mode: 'rebase' })).close();
    expect([living.read('a'), living.read('c')]).toEqual(['new a', 'new c']);
    expect(living.own()).toEqual([]);
  });

  it('of several files is kept and reported when a target is neither old nor new', async () => {
    await cutAfter(1, () => several(by(), { a: 'new a', b: 'new b', c: 'new c' }));
    living.write('b', 'by hand');
    const opened = await living.open({ mode: 'rebase' });
    expect(opened.findings).toMatchObject([{ code: 'manifest_unfinished' }]);
    expect([living.read('a'), living.read('b'), living.read('c')]).toEqual(['new a', 'by hand', null]);
    await opened.close();
  });

  it.each([true, false])('of a move is dropped when nothing was applied (hard links: %s)', async (hardLinks) => {
    await cutAfter(0, () => move(by(), 'a', 'b'));
    await (await living.open({ mode: 'rebase', hardLinks })).close();
    expect([living.read('a'), living.read('b')]).toEqual(['old a', 'old b']);
    expect(living.own()).toEqual([]);
  });

  it('of a move never lets the only name of the file be swept', async () => {
    await cutAfter(0, () => move(by(), 'a', 'b'));
    // Without hard links the first step takes the old name away.
    fs.renameSync(living.path('a'), living.control(writer.volume.incarnation, 'manifest-op-1.z'));
    await (await living.open({ mode: 'rebase', hardLinks: false })).close();
    expect([living.read('a'), living.read('b')]).toEqual([null, 'old a']);
  });

  it('that cannot be read is kept and reported', async () => {
    fs.writeFileSync(living.control(writer.volume.incarnation, 'manifest-op-9'), 'garbage');
    const opened = await living.open();
    expect(opened.findings).toMatchObject([{ code: 'record_damaged' }]);
    expect(living.own()).toEqual(['manifest-op-9']);
    await opened.close();
  });

  it('of a settled operation is dropped, whatever its targets have become since', async () => {
    await several(by(), { a: 'new a', c: 'new c' });
    living.record.intents.length = 0;
    fs.unlinkSync(living.path('c'));
    await (await living.open()).close();
    expect([living.read('a'), living.read('c')]).toEqual(['new a', null]);
    expect(living.own()).toEqual([]);
  });

  it('goes neither way when a later write followed on one of its targets', async () => {
    await several(by(), { a: 'new a', c: 'new c' });
    // The journal hands out only the newest intent of a resource: the one of c was followed by another.
    living.record.intents.splice(1, 1);
    fs.unlinkSync(living.path('c'));
    await (await living.open()).close();
    expect(living.record.outcomes).toMatchObject([{ settlement: 'committed' }]);
    expect([living.read('a'), living.read('c')]).toEqual(['new a', null]);
  });
});

describe('records on the volume', () => {
  it('are read back as written', async () => {
    await cutAfter(0, () => several(by(), { a: 'new a', c: 'new c' }));
    await cutAfter(0, () => writeInPlace({ ...by(), operationId: 'op-2' }, 'a', '+', 'append'));
    const directory = living.control(writer.volume.incarnation);
    const manifest = fs.readFileSync(`${directory}/manifest-op-1`);
    expect(Buffer.from(manifestBytes(parseManifest(manifest)))).toEqual(manifest);
    const redoFile = fs.readdirSync(directory).find((name) => name.endsWith('.redo')) ?? '';
    const redo = fs.readFileSync(`${directory}/${redoFile}`);
    expect(Buffer.from(redoBytes(parseRedo(redo)))).toEqual(redo);
  });

  it('are refused, and never followed out of the directory, when they are anything else', () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), (text) => {
        expect(() => parseManifest(Buffer.from(text))).toThrow(RecordDamaged);
        expect(() => parseRedo(Buffer.from(text))).toThrow(RecordDamaged);
      }),
    );
    const facts = { ino: '1', size_bytes: 1, mtime_ns: '1' };
    const entry = { path: 'a', before: null, staged: { ...facts, name: '../../owner', sha256: 'x' }, kept: null };
    const outside = { name: 'manifest-x', operation_id: 'x', kind: 'several', direction: 'forward', entries: [entry], from: null };
    expect(() => parseManifest(Buffer.from(JSON.stringify(outside)))).toThrow(RecordDamaged);
  });
});
