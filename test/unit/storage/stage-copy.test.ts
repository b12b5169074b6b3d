import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { refuse } from '../../../src/domain/errors.ts';
import type { TargetFacts } from '../../../src/domain/file-facts.ts';
import type { Place, Staging } from '../../../src/domain/volume.ts';
import type { FileCalls } from '../../../src/storage/file-calls.ts';
import { EIO, systemError } from '../../support/fault-calls.ts';
import { sealAs } from '../../support/seal.ts';
import { descriptorsBack, openDescriptors, type TempVolume, tempVolume } from '../../support/temp-volume.ts';

const plain = { overlay: null, hash: true, sha512: false };
const never = new AbortController().signal;
const content = Buffer.from(Array.from({ length: 2_500_000 }, (_, i) => (i * 7) % 251));

/** `reflink: true` stands in for a volume that shares blocks: the copy is made at once, by the kernel. */
describe.each([{ reflink: false }, { reflink: true }])('a staged copy (shared blocks: $reflink)', ({ reflink }) => {
  let temp: TempVolume;
  let place: Place;
  let facts: TargetFacts;
  let descriptors: number;

  beforeEach(async () => {
    temp = await tempVolume({ reflink });
    if (reflink) {
      temp.faults.on('reflink', async (_, args) => {
        const [from, to] = args as Parameters<FileCalls['reflink']>;
        fs.copyFileSync(`/proc/self/fd/${from.fd}`, `/proc/self/fd/${to.dir.fd}/${to.name.toString()}`);
      });
    }
    temp.write('a', content);
    fs.chmodSync(temp.path('a'), 0o640);
    descriptors = openDescriptors();
    place = await temp.volume.locate(temp.resource('a'));
    const found = await temp.volume.look(place);
    if (found === null) throw new Error('the file is there');
    facts = found;
  });
  afterEach(async () => {
    place.close();
    await descriptorsBack(descriptors);
    await temp.close();
  });

  const bytesOf = (staging: Pick<Staging, 'name'>): Buffer => fs.readFileSync(join(temp.incPath, staging.name));
  const overlayOf = async (bytes: Uint8Array): Promise<Staging> => {
    const staging = await temp.volume.stage({ sha512: false });
    await staging.write(bytes);
    return staging;
  };

  it('has all bytes, their digest, the mode of the source, and a version of its own', async () => {
    const copy = await temp.volume.stageCopy(place, facts, { ...plain, sha512: true }, never);
    const sealed = await sealAs(temp.volume, copy, null);
    expect(bytesOf(copy).equals(content)).toBe(true);
    expect(sealed.sha256).toBe(createHash('sha256').update(content).digest('hex'));
    expect(copy.digest('sha-512')).toBe(createHash('sha512').update(content).digest('hex'));
    expect(fs.statSync(join(temp.incPath, copy.name)).mode & 0o7777).toBe(0o640);
    expect(sealed.ino).not.toBe(facts.ino);
    await copy.sync();
  });

  it.each([
    ['at the start', 0, 10],
    ['in the middle, across chunks', 1_048_570, 1_100_000],
    ['over the end', 2_499_990, 20],
    ['right behind the end', 2_500_000, 5],
    ['over everything and more', 0, 2_600_000],
    ['of nothing', 100, 0],
  ])('an overlay %s changes just these bytes', async (_, offset, length) => {
    const bytes = Buffer.alloc(length, 0xee);
    const overlay = await overlayOf(bytes);
    const copy = await temp.volume.stageCopy(place, facts, { ...plain, overlay: { staged: overlay, offset } }, never);
    const wanted = Buffer.alloc(Math.max(content.length, offset + length));
    content.copy(wanted);
    bytes.copy(wanted, offset);
    const sealed = await sealAs(temp.volume, copy, facts);
    expect(bytesOf(copy).equals(wanted)).toBe(true);
    expect(sealed).toMatchObject({ sizeBytes: wanted.length, sha256: createHash('sha256').update(wanted).digest('hex') });
    expect(fs.readFileSync(temp.path('a')).equals(content)).toBe(true);
    await copy.discard();
    await overlay.discard();
  });

  it('F26: an overlay behind a hole is refused and leaves nothing', async () => {
    const overlay = await overlayOf(Buffer.from('x'));
    await expect(
      temp.volume.stageCopy(place, facts, { ...plain, overlay: { staged: overlay, offset: content.length + 1 } }, never),
    ).rejects.toMatchObject({ code: 'range_not_satisfiable' });
    await overlay.discard();
    expect(temp.staged()).toEqual([]);
  });

  it('without hash no digest is made, and the facts have an empty one', async () => {
    const copy = await temp.volume.stageCopy(place, facts, { ...plain, hash: false }, never);
    expect((await sealAs(temp.volume, copy, null)).sha256).toBe('');
    expect(() => copy.digest('sha-256')).toThrow('not told to make');
    await copy.discard();
  });

  it('stops with the reason of the signal and leaves nothing', async () => {
    const abort = new AbortController();
    const reason = refuse('draining', 'the gateway stops');
    temp.faults.on('read', async (real) => {
      abort.abort(reason);
      return real();
    });
    await expect(temp.volume.stageCopy(place, facts, plain, abort.signal)).rejects.toBe(reason);
    expect(temp.staged()).toEqual([]);
  });

  it('a file that is another version by now is not copied', async () => {
    fs.writeFileSync(temp.path('a'), 'changed');
    await expect(temp.volume.stageCopy(place, facts, plain, never)).rejects.toMatchObject({ code: 'volume_unavailable' });
    expect(temp.staged()).toEqual([]);
  });

  it('a file that is changed in place while it is copied gives no copy (I3)', async () => {
    let changed = false;
    temp.faults.on('read', async (real) => {
      if (!changed) fs.appendFileSync(temp.path('a'), 'more');
      changed = true;
      return real();
    });
    await expect(temp.volume.stageCopy(place, facts, plain, never)).rejects.toMatchObject({ code: 'volume_unavailable' });
    expect(temp.staged()).toEqual([]);
  });

  it('an error while copying leaves nothing', async () => {
    temp.faults.on('read', () => Promise.reject(EIO()));
    await expect(temp.volume.stageCopy(place, facts, plain, never)).rejects.toMatchObject({ code: 'volume_unavailable' });
    expect(temp.staged()).toEqual([]);
  });

  it('an empty file is copied as well', async () => {
    temp.write('empty', '');
    const empty = await temp.volume.locate(temp.resource('empty'));
    const found = await temp.volume.look(empty);
    if (found === null) throw new Error('the file is there');
    const copy = await temp.volume.stageCopy(empty, found, plain, never);
    expect((await sealAs(temp.volume, copy, null)).sizeBytes).toBe(0);
    await copy.discard();
    empty.close();
  });
});

describe('where sharing blocks fails for one file', () => {
  it.each([
    ['ENOTSUP', 95],
    ['EXDEV', 18],
    ['EIO', 5],
  ])('F33: %s: the copy is made plainly, and the failed try leaves nothing', async (name, number) => {
    const temp = await tempVolume({ reflink: true });
    try {
      temp.write('a', 'hello');
      const place = await temp.volume.locate(temp.resource('a'));
      const facts = await temp.volume.look(place);
      if (facts === null) throw new Error('the file is there');
      temp.faults.on('reflink', () => Promise.reject(systemError(name, number)));
      const copy = await temp.volume.stageCopy(place, facts, plain, never);
      expect(fs.readFileSync(join(temp.incPath, copy.name), 'utf8')).toBe('hello');
      expect(temp.staged()).toEqual([copy.name]);
      await copy.discard();
      place.close();
    } finally {
      await temp.close();
    }
  });
});
