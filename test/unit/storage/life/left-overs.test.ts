import * as fs from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseManifest } from '../../../../src/storage/life/manifest-record.ts';
import { type HandMade, move, put, remove, several, writeInPlace } from '../../../support/hand-made-writes.ts';
import { LivingVolume, type Opened } from '../../../support/living-volume.ts';

/**
 * What an operation that is over left in the own directory because it could not be tidied, met by a later start that has forgotten
 * the operation: nothing that was written since may change by it.
 */
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

const by = (operationId = 'op-1'): HandMade => ({ living, volume: writer.volume, operationId });
const now = (...names: string[]): (string | null)[] => names.map((name) => living.read(name));
const left = (): string => living.control(writer.volume.incarnation);

/** `settled`: the journal still has records of it; `never`: retention took them too. */
function forget(known: 'settled' | 'never'): void {
  living.record.intents.length = 0;
  if (known === 'never') living.record.known.clear();
}

/** The next process; the end of the one before was seen or not. */
async function restart(...lives: Parameters<LivingVolume['open']>): Promise<readonly string[]> {
  const opened = await living.open(...lives);
  await opened.close();
  return opened.findings.map(({ code }) => code);
}

describe.each(['settled', 'never'] as const)('what is left of a committed operation that is %s to the journal', (known) => {
  it('B0: of an upload rolls nothing back when one of its files was deleted since', async () => {
    await several(by(), { a: 'new a', c: 'new c', d: 'new d' });
    fs.unlinkSync(living.path('c'));
    forget(known);
    expect(await restart({ writer: 'unknown' })).toEqual([]);
    expect(now('a', 'c', 'd')).toEqual(['new a', null, 'new d']);
    expect(living.own()).toEqual([]);
  });

  it('of an upload leaves files alone that were replaced, edited or put back since', async () => {
    await several(by(), { a: 'new a', b: 'new b', c: 'new c', d: 'new d' });
    const kept = fs.readdirSync(left()).find((name) => name.endsWith('.old-0')) ?? '';
    fs.renameSync(`${left()}/${kept}`, living.path('a'));
    await put(by('op-2'), 'b', 'newer b');
    fs.appendFileSync(living.path('c'), ', edited');
    forget(known);
    expect(await restart({ mode: 'rebase' })).toEqual([]);
    expect(now('a', 'b', 'c', 'd')).toEqual(['old a', 'newer b', 'new c, edited', 'new d']);
  });

  it('of an upload that was put back takes nothing away from a later one with the same bytes', async () => {
    const apply = writer.volume.apply.bind(writer.volume);
    writer.volume.apply = async (intent, place, from) => {
      if (intent.resource.path === 'b') throw new Error('no space');
      return apply(intent, place, from);
    };
    await expect(several(by(), { c: 'new c', b: 'new b' })).rejects.toThrow('no space');
    expect(await writer.volume.restore(living.record.intents)).toBe(true);
    expect(parseManifest(fs.readFileSync(`${left()}/manifest-op-1`)).direction).toBe('back');
    writer.volume.apply = apply;
    await several(by('op-2'), { c: 'new c', b: 'new b' });
    forget(known);
    expect(await restart()).toEqual([]);
    expect(now('b', 'c')).toEqual(['new b', 'new c']);
  });

  it('of a move neither moves the file again nor back', async () => {
    await move(by(), 'a', 'c');
    fs.linkSync(living.path('c'), living.path('a'));
    forget(known);
    expect(await restart()).toEqual([]);
    expect(now('a', 'c')).toEqual(['old a', 'old a']);
  });

  it('of a move that was taken back does not take a later move back', async () => {
    await move(by(), 'a', 'c');
    const manifest = parseManifest(fs.readFileSync(`${left()}/manifest-op-1`));
    fs.unlinkSync(`${left()}/manifest-op-1.trash`);
    fs.writeFileSync(
      `${left()}/manifest-op-1`,
      JSON.stringify({ ...JSON.parse(fs.readFileSync(`${left()}/manifest-op-1`, 'utf8')), direction: 'back' }),
    );
    expect(manifest.direction).toBe('forward');
    forget(known);
    expect(await restart()).toEqual([]);
    expect(now('a', 'c')).toEqual([null, 'old a']);
  });

  it.each(['append', 1] as const)('of a write in place (%s) never comes over a newer one', async (offset) => {
    await writeInPlace(by(), 'a', 'first', offset);
    await writeInPlace(by('op-2'), 'a', 'SECOND', 0);
    for (const name of fs.readdirSync(left())) if (fs.readFileSync(`${left()}/${name}`, 'utf8').includes('op-2')) fs.unlinkSync(`${left()}/${name}`);
    const after = living.read('a');
    const { ino } = fs.statSync(living.path('a'));
    forget(known);
    const findings = await restart({ writer: 'unknown' });
    expect(findings).toEqual(known === 'settled' ? [] : ['redo_unfinished']);
    expect([living.read('a'), fs.statSync(living.path('a')).ino]).toEqual([after, ino]);
    expect(living.own()).toEqual([]);
  });

  it('of a removal is only swept', async () => {
    await remove(by(), 'a');
    living.write('a', 'made again');
    forget(known);
    expect(await restart()).toEqual([]);
    expect([living.read('a'), living.own()]).toEqual(['made again', []]);
  });
});

describe('an upload whose answer was given, and whose process died before the journal noted that it was settled', () => {
  it('B0: keeps its other files when one was deleted by hand', async () => {
    await several(by(), { a: 'new a', c: 'new c', d: 'new d' });
    fs.unlinkSync(living.path('c'));
    await restart();
    expect(now('a', 'c', 'd')).toEqual(['new a', null, 'new d']);
    expect(living.record.outcomes.map(({ settlement }) => settlement)).toEqual(['committed', 'committed', 'committed']);
  });

  it('goes forward with what still waits, and leaves alone what was published and deleted since', async () => {
    const apply = writer.volume.apply.bind(writer.volume);
    writer.volume.apply = async (intent, place, from) => {
      if (intent.resource.path === 'd') throw new Error('cut off');
      return apply(intent, place, from);
    };
    await expect(several(by(), { a: 'new a', c: 'new c', d: 'new d' })).rejects.toThrow('cut off');
    fs.unlinkSync(living.path('c'));
    await restart();
    expect(now('a', 'c', 'd')).toEqual(['new a', null, 'new d']);
  });

  it('is aborted when nothing of it shows, whatever is left of its staged files', async () => {
    writer.volume.apply = async () => {
      throw new Error('no space');
    };
    await expect(several(by(), { a: 'new a', c: 'new c' })).rejects.toThrow('no space');
    fs.unlinkSync(`${left()}/${living.record.intents[0]?.staged?.name}`);
    await restart();
    expect(now('a', 'c')).toEqual(['old a', null]);
    expect(living.record.outcomes.map(({ settlement }) => settlement)).toEqual(['aborted', 'aborted']);
  });
});

describe('the work that an upload of many files is', () => {
  const names = (count: number): Record<string, string> => Object.fromEntries(Array.from({ length: count }, (_, i) => [`in-${i}`, `new ${i}`]));

  /** The calls of a recovery of `count` files of which the last one was not applied. */
  async function recoveryCalls(count: number): Promise<number> {
    const many = new LivingVolume(2, 'memory');
    const opened = await many.open();
    const apply = opened.volume.apply.bind(opened.volume);
    opened.volume.apply = async (intent, place, from) => {
      if (intent.resource.path === `in-${count - 1}`) throw new Error('cut off');
      return apply(intent, place, from);
    };
    await expect(several({ living: many, volume: opened.volume, operationId: 'op-1' }, names(count))).rejects.toThrow('cut off');
    await (await many.open()).close();
    expect(many.read(`in-${count - 1}`)).toBe(`new ${count - 1}`);
    expect(new Set(many.record.outcomes.map(({ settlement }) => settlement))).toEqual(new Set(['finished', 'committed']));
    const { steps } = many.kill;
    await opened.close();
    many.remove();
    return steps;
  }

  it('B2: grows with the files, not with their square', async () => {
    const [few, twice] = [await recoveryCalls(20), await recoveryCalls(40)];
    expect(twice / few).toBeLessThan(2.2);
  });
});
