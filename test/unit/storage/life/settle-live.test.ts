import * as fs from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Intent } from '../../../../src/domain/intent.ts';
import { startVolume } from '../../../../src/storage/life/start-volume.ts';
import { ENOSPC, FaultCalls, systemError } from '../../../support/fault-calls.ts';
import { type HandMade, move, put, remove, several, writeInPlace } from '../../../support/hand-made-writes.ts';
import { LivingVolume, type Opened } from '../../../support/living-volume.ts';

/** Settling while the gateway lives: after an error that proves nothing, and putting several files back. */
let living: LivingVolume;
let opened: Opened;

beforeEach(async () => {
  living = new LivingVolume();
  for (const name of ['a', 'b']) living.write(name, `old ${name}`);
  opened = await living.open();
});
afterEach(async () => {
  await opened.close();
  living.remove();
});

const by = (operationId = 'op-1'): HandMade => ({ living, volume: opened.volume, operationId });
const intents = (): readonly Intent[] => living.record.intents;
const inode = (name: string): bigint => fs.statSync(living.path(name), { bigint: true }).ino;

/** Runs a write whose apply is cut off before it does anything. */
async function intendOnly(write: () => Promise<void>): Promise<void> {
  opened.volume.apply = async () => {
    throw new Error('cut off');
  };
  await expect(write()).rejects.toThrow('cut off');
}

async function settleAll(): Promise<readonly string[]> {
  const verdicts: string[] = [];
  for (const intent of intents()) verdicts.push((await opened.volume.settle(intent)).settlement);
  return verdicts;
}

describe('settling while the gateway lives', () => {
  it.each([
    ['a replace', () => put(by(), 'a', 'new'), { a: 'new', b: 'old b' }],
    ['a create', () => put(by(), 'c', 'new', 'create'), { a: 'old a', b: 'old b', c: 'new' }],
    ['an append', () => writeInPlace(by(), 'a', '+', 'append'), { a: 'old a+', b: 'old b' }],
    ['a move', () => move(by(), 'a', 'b'), { a: null, b: 'old a' }],
    ['several files', () => several(by(), { a: 'new a', c: 'new c' }), { a: 'new a', b: 'old b', c: 'new c' }],
  ] as const)('finishes %s that was never applied, and says committed when asked again', async (_what, write, after) => {
    await intendOnly(write);
    expect((await settleAll())[0]).toBe('finished');
    expect(await settleAll()).toEqual(intents().map(() => 'committed'));
    for (const [name, content] of Object.entries(after)) expect(living.read(name)).toBe(content);
  });

  it('replaces the inode of a file that one of our own calls may still write to', async () => {
    await intendOnly(() => writeInPlace(by(), 'a', '+', 'append'));
    const before = inode('a');
    const zombie = fs.openSync(living.path('a'), 'r+');
    const [intent] = intents();
    if (intent === undefined) expect.fail('no intent');
    const { settlement, after } = await opened.volume.settle(intent);
    // Who is told of it must be told of the version that stands there.
    expect([settlement, after?.ino]).toEqual(['finished', inode('a')]);
    expect(inode('a')).not.toBe(before);
    fs.writeSync(zombie, 'XXXX', 0);
    fs.closeSync(zombie);
    expect(living.read('a')).toBe('old a+');
    expect(await settleAll()).toEqual(['committed']);
  });

  it('F3: does so also when the file shows all that was written: the sync of these pages may have failed', async () => {
    const volume = opened.volume;
    const apply = volume.apply.bind(volume);
    volume.apply = async (...args) => {
      await apply(...args);
      throw new Error('the sync failed');
    };
    await expect(writeInPlace(by(), 'a', '+', 'append')).rejects.toThrow('the sync failed');
    const before = inode('a');
    expect(await settleAll()).toEqual(['finished']);
    expect([living.read('a'), inode('a') === before]).toEqual(['old a+', false]);
    expect(await settleAll()).toEqual(['committed']);
  });

  it('keeps mode, bytes and the promised mtime of a file whose inode it replaces', async () => {
    fs.chmodSync(living.path('a'), 0o640);
    await intendOnly(() => writeInPlace(by(), 'a', 'XY', 1));
    await settleAll();
    expect(living.read('a')).toBe('oXY a');
    const { mode, mtimeNs } = fs.statSync(living.path('a'), { bigint: true });
    expect(mode & 0o777n).toBe(0o640n);
    const plan = intents()[0]?.plan;
    expect(plan?.kind === 'in_place' && plan.mtimeNs).toBe(mtimeNs);
  });

  it('cuts bytes that a failed append left beyond its beginning, and writes the right ones', async () => {
    await intendOnly(() => writeInPlace(by(), 'a', 'right', 'append'));
    fs.appendFileSync(living.path('a'), 'wro');
    expect(await settleAll()).toEqual(['finished']);
    expect(living.read('a')).toBe('old aright');
  });

  it('I3: says unknown of an append whose file was cut, or grew beyond it, and leaves it', async () => {
    await intendOnly(() => writeInPlace(by(), 'a', '+', 'append'));
    for (const content of ['old', 'old a and much more']) {
      const file = fs.openSync(living.path('a'), 'r+');
      fs.ftruncateSync(file, 0);
      fs.writeSync(file, content);
      fs.closeSync(file);
      expect(await settleAll()).toEqual(['unknown']);
      expect(living.read('a')).toBe(content);
    }
  });

  it('aborts a replace whose staged file is gone while the target is as before: a missing staged file proves nothing', async () => {
    await intendOnly(() => put(by(), 'a', 'new'));
    fs.unlinkSync(living.control(opened.volume.incarnation, intents()[0]?.staged?.name ?? ''));
    expect(await settleAll()).toEqual(['aborted']);
    expect(living.read('a')).toBe('old a');
  });

  it('says nothing once it is fenced: a missing staged file may be in the hands of the successor', async () => {
    await intendOnly(() => put(by(), 'a', 'new'));
    const [intent] = intents();
    living.record.forget();
    const successor = await living.open();
    if (intent !== undefined) await expect(opened.volume.settle(intent)).rejects.toMatchObject({ code: 'volume_unavailable' });
    expect(living.read('a')).toBe('old a');
    await successor.close();
  });
});

describe('several files after a definite failure half-way', () => {
  it.each([true, false])('are put back as they were, and every intent is then aborted (hard links: %s)', async (hardLinks) => {
    await opened.close();
    living.record.directories.length = 0;
    fs.rmSync(living.control(), { recursive: true });
    opened = await living.open({ hardLinks });
    const before = { a: inode('a'), b: inode('b') };
    const apply = opened.volume.apply.bind(opened.volume);
    let applied = 0;
    opened.volume.apply = async (...args) => {
      applied += 1;
      if (applied === 3) throw new Error('no space');
      return apply(...args);
    };
    await expect(several(by(), { a: 'new a', c: 'new c', b: 'new b' })).rejects.toThrow('no space');
    expect([living.read('a'), living.read('c')]).toEqual(['new a', 'new c']);
    expect(await opened.volume.restore(intents())).toBe(true);
    expect([living.read('a'), living.read('b'), living.read('c')]).toEqual(['old a', 'old b', null]);
    if (hardLinks) expect({ a: inode('a'), b: inode('b') }).toEqual(before);
    expect(await settleAll()).toEqual(['aborted', 'aborted', 'aborted']);
    await opened.close();
    opened = await living.open({ hardLinks });
    expect(living.record.outcomes.map(({ settlement }) => settlement)).toEqual(['aborted', 'aborted', 'aborted']);
    expect(living.read('a')).toBe('old a');
  });

  it('are not put back over a file that somebody else changed meanwhile', async () => {
    const apply = opened.volume.apply.bind(opened.volume);
    opened.volume.apply = async (intent, place, from) => {
      if (intent.resource.path === 'b') throw new Error('no space');
      return apply(intent, place, from);
    };
    await expect(several(by(), { a: 'new a', b: 'new b' })).rejects.toThrow('no space');
    fs.writeFileSync(living.path('a'), 'edited by hand');
    expect(await opened.volume.restore(intents())).toBe(false);
    expect(living.read('a')).toBe('edited by hand');
  });
});

describe('tidying', () => {
  it.each([
    ['a replace', () => put(by(), 'a', 'new')],
    ['a create', () => put(by(), 'c', 'new', 'create')],
    ['an append', () => writeInPlace(by(), 'a', '+', 'append')],
    ['a move over a file', () => move(by(), 'a', 'b')],
    ['several files', () => several(by(), { a: 'new a', b: 'new b', c: 'new c' })],
  ] as const)('leaves nothing of %s in the own directory, and may be asked twice', async (_what, write) => {
    await write();
    for (let turn = 0; turn < 2; turn += 1) opened.volume.tidy(intents());
    await expect.poll(() => living.own()).toEqual([]);
  });
});

describe('a finish that the volume refuses', () => {
  it.each([false, true])('ends as aborted, and a move that cannot take its old name away is taken back whole (network: %s)', async (network) => {
    const deps = living.deps({ network });
    const faults = new FaultCalls(deps.calls);
    const result = await startVolume({ ...deps, calls: faults.calls });
    if (result.kind !== 'open') throw new Error(JSON.stringify(result));
    const volume = result.volume as Opened['volume'];
    const apply = volume.apply.bind(volume);
    volume.apply = async () => {
      throw new Error('cut off');
    };
    await expect(move({ living, volume, operationId: 'op-2' }, 'a', 'b')).rejects.toThrow('cut off');
    volume.apply = apply;
    faults.on('rename', async (real, [, to]) => {
      if (String((to as { name: string }).name).endsWith('.trash')) throw ENOSPC();
      return real();
    });
    const intent = living.record.intents.at(-1);
    if (intent === undefined) throw new Error('no intent');
    expect((await volume.settle(intent)).settlement).toBe('aborted');
    expect([living.read('a'), living.read('b')]).toEqual(['old a', 'old b']);
    faults.heal();
    expect((await volume.settle(intent)).settlement).toBe('aborted');
    await result.close();
  });

  it.each([
    ['a replace', (write: HandMade) => put(write, 'a', 'new'), 'rename'],
    ['a create', (write: HandMade) => put(write, 'c', 'new', 'create'), 'link'],
    ['a removal', (write: HandMade) => remove(write, 'a'), 'rename'],
    ['several files', (write: HandMade) => several(write, { a: 'new a', c: 'new c' }), 'rename'],
  ] as const)(
    'F2: on a network mount the server’s refusal of %s is the answer once a look shows that nothing changed',
    async (_what, write, refused) => {
      const deps = living.deps({ network: true });
      const faults = new FaultCalls(deps.calls);
      const result = await startVolume({ ...deps, calls: faults.calls });
      if (result.kind !== 'open') throw new Error(`it did not open: ${result.kind}`);
      const volume = result.volume as Opened['volume'];
      // What the own directory needs for its records goes through.
      faults.on(refused, async (real, [from, to]) => {
        const names = [from, to].map((at) => String((at as { name: string }).name));
        if (names.some((name) => ['a', 'c'].includes(name))) throw systemError('EACCES', 13);
        return real();
      });
      await expect(write({ living, volume, operationId: 'op-3' })).rejects.toMatchObject({ code: 'forbidden' });
      expect([living.read('a'), living.read('b'), living.read('c')]).toEqual(['old a', 'old b', null]);
      await result.close();
    },
  );
});
