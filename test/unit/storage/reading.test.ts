import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { refuse } from '../../../src/domain/errors.ts';
import { etagOf } from '../../../src/domain/file-facts.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { OpenedFile } from '../../../src/domain/volume.ts';
import { EIO, ESTALE } from '../../support/fault-calls.ts';
import { descriptorsBack, factsAt, intentOf, openDescriptors, stageText, type TempVolume, tempVolume } from '../../support/temp-volume.ts';
import { LOCALITIES } from '../../support/volume-base.ts';

const never = new AbortController().signal;

describe.each(LOCALITIES)('reading (local: $local)', ({ local }) => {
  let temp: TempVolume;
  let descriptors: number;
  beforeEach(async () => {
    temp = await tempVolume({ local });
    descriptors = openDescriptors();
  });
  afterEach(async () => {
    temp.faults.heal();
    await descriptorsBack(descriptors);
    await temp.close();
  });

  async function bytes(opened: OpenedFile, start = 0, end = opened.facts.sizeBytes): Promise<string> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of opened.read(start, end, never)) chunks.push(chunk);
    return Buffer.concat(chunks).toString();
  }
  async function content(path: string): Promise<string> {
    const opened = await temp.volume.open(temp.resource(path));
    try {
      return await bytes(opened);
    } finally {
      await opened.close();
    }
  }

  it('F9: gives the bytes, all or a range, and the facts of the descriptor', async () => {
    const facts = temp.write('a', 'hello world');
    const opened = await temp.volume.open(temp.resource('a'));
    expect(opened.facts).toMatchObject(facts);
    expect(await bytes(opened)).toBe('hello world');
    expect(await bytes(opened, 6, 9)).toBe('wor');
    expect(await bytes(opened, 3, 3)).toBe('');
    await opened.close();
  });

  it('a large file comes in bounded chunks, each in memory of its own', async () => {
    const large = Buffer.from(Array.from({ length: 900_000 }, (_, i) => i % 251));
    temp.write('a', large);
    const opened = await temp.volume.open(temp.resource('a'));
    const chunks: Uint8Array[] = [];
    for await (const chunk of opened.read(0, large.length, never)) chunks.push(chunk);
    expect(chunks.length).toBeGreaterThan(3);
    expect(Math.max(...chunks.map((chunk) => chunk.length))).toBeLessThanOrEqual(262_144);
    expect(Buffer.concat(chunks).equals(large)).toBe(true);
    await opened.close();
  });

  it('refuses what is no file, each by its name, and leaves no descriptor', async () => {
    fs.mkdirSync(temp.path('dir'));
    temp.write('file', 'x');
    fs.symlinkSync('file', temp.path('link'));
    execFileSync('mkfifo', [temp.path('fifo')]);
    descriptors = openDescriptors();
    for (const [path, code] of [
      ['none', 'not_found'],
      ['no/parent', 'not_found'],
      ['dir', 'is_a_directory'],
      ['link', 'symbolic_link'],
      ['fifo', 'special_file'],
      ['file/x', 'not_a_directory'],
    ] as const) {
      await expect(temp.volume.open(temp.resource(path)), path).rejects.toMatchObject({ code });
    }
  });

  it('names of the gateway and of NFS clients are not found', async () => {
    temp.write('.nfs01', 'x');
    fs.mkdirSync(temp.path('d'));
    temp.write('d/.nfs02', 'x');
    for (const path of ['.fencegate/owner', '.fencegate', '.nfs01', 'd/.nfs02'])
      await expect(temp.volume.open(temp.resource(path))).rejects.toMatchObject({ code: 'not_found' });
  });

  it('B6: an error is not absence', async () => {
    temp.write('a', 'x');
    temp.faults.failOnce('fstat', EIO);
    await expect(temp.volume.open(temp.resource('a'))).rejects.toMatchObject({ code: 'volume_unavailable' });
  });

  describe('the tag', () => {
    it('is the one that the write announced, at once', async () => {
      const staged = await stageText(temp, 'new');
      const intent = intentOf(temp, 'a', { kind: 'replace' }, { staged });
      const place = await temp.volume.locate(intent.resource);
      await temp.volume.apply(intent, place, null);
      place.close();
      temp.clock.jumpWall(Number(staged.mtimeNs / 1_000_000n) + 1 - temp.clock.wallMs());
      const opened = await temp.volume.open(intent.resource);
      expect(opened.etag).toBe(etagOf(staged));
      await opened.close();
    });

    it('is weak for a file that others changed less than 2 s ago, strong afterwards (F34)', async () => {
      const facts = temp.write('a', 'x');
      const writtenMs = Number(facts.mtimeNs / 1_000_000n);
      temp.clock.jumpWall(writtenMs + 1_999 - temp.clock.wallMs());
      const young = await temp.volume.open(temp.resource('a'));
      temp.clock.jumpWall(2);
      const old = await temp.volume.open(temp.resource('a'));
      expect([young.etag, old.etag]).toEqual([`W/${etagOf(facts)}`, etagOf(facts)]);
      await young.close();
      await old.close();
    });

    it('is weak again when somebody bypassed the gateway after our commit', async () => {
      const intent = intentOf(temp, 'a', { kind: 'replace' }, { staged: await stageText(temp, 'ours') });
      const place = await temp.volume.locate(intent.resource);
      await temp.volume.apply(intent, place, null);
      place.close();
      fs.writeFileSync(temp.path('a'), 'theirs');
      temp.clock.jumpWall(Date.now() - temp.clock.wallMs());
      const opened = await temp.volume.open(intent.resource);
      expect(opened.etag).toMatch(/^W\//);
      await opened.close();
    });
  });

  it('X10: a replace meanwhile is not seen by who has the file open', async () => {
    temp.write('a', 'old');
    const opened = await temp.volume.open(temp.resource('a'));
    temp.write('b', 'new');
    fs.renameSync(temp.path('b'), temp.path('a'));
    expect(await bytes(opened)).toBe('old');
    expect(await content('a')).toBe('new');
    await opened.close();
  });

  it('a file that gets shorter while it is read cuts the stream', async () => {
    temp.write('a', 'x'.repeat(600_000));
    const opened = await temp.volume.open(temp.resource('a'));
    const iterator = opened.read(0, 600_000, never)[Symbol.asyncIterator]();
    await iterator.next();
    fs.truncateSync(temp.path('a'), 300_000);
    await iterator.next();
    await expect(iterator.next()).rejects.toMatchObject({ code: 'volume_unavailable' });
    await opened.close();
  });

  it('stops with the reason of the signal', async () => {
    temp.write('a', 'x');
    const opened = await temp.volume.open(temp.resource('a'));
    const abort = new AbortController();
    const reason = refuse('draining', 'x');
    abort.abort(reason);
    await expect(opened.read(0, 1, abort.signal)[Symbol.asyncIterator]().next()).rejects.toBe(reason);
    await opened.close();
  });

  it("while an append is unsettled its bytes are invisible, and the tag is nobody's version", async () => {
    const facts = temp.write('a', 'old and new');
    temp.volume.limitVisible(temp.resource('a'), 3);
    const opened = await temp.volume.open(temp.resource('a'));
    expect(opened.facts.sizeBytes).toBe(3);
    expect(opened.etag).toMatch(/^W\//);
    expect(await bytes(opened)).toBe('old');
    await opened.close();
    temp.volume.limitVisible(temp.resource('a'), null);
    const whole = await temp.volume.open(temp.resource('a'));
    expect(whole.etag).toBe(etagOf(facts));
    await whole.close();
  });

  describe('B21: a stale handle', () => {
    it('F10: at the open is opened anew, also when that one has been replaced, too', async () => {
      temp.write('a', 'x');
      let stale = 0;
      temp.faults.on('fstat', (real) => {
        stale += 1;
        return stale < LIMITS.staleOpensMax ? Promise.reject(ESTALE()) : real();
      });
      expect(await content('a')).toBe('x');
    });

    it('at every open is an answer, not a loop', async () => {
      temp.write('a', 'x');
      let opens = 0;
      temp.faults.on('open', () => {
        opens += 1;
        return Promise.reject(ESTALE());
      });
      await expect(temp.volume.open(temp.resource('a'))).rejects.toMatchObject({ code: 'volume_unavailable' });
      expect(opens).toBe(LIMITS.staleOpensMax);
    });

    it('in the middle is opened once more when it is the same version', async () => {
      temp.write('a', 'x'.repeat(600_000));
      const opened = await temp.volume.open(temp.resource('a'));
      temp.faults.failOnce('read', ESTALE);
      expect(await bytes(opened)).toHaveLength(600_000);
      temp.faults.failOnce('read', ESTALE);
      await expect(bytes(opened)).rejects.toMatchObject({ code: 'volume_unavailable' });
      await opened.close();
    });

    it('in the middle of a file that was replaced cuts the stream: never a mixture', async () => {
      temp.write('a', 'old'.repeat(200_000));
      const opened = await temp.volume.open(temp.resource('a'));
      const iterator = opened.read(0, 600_000, never)[Symbol.asyncIterator]();
      await iterator.next();
      temp.write('b', 'new'.repeat(200_000));
      fs.renameSync(temp.path('b'), temp.path('a'));
      temp.faults.failOnce('read', ESTALE);
      await expect(iterator.next()).rejects.toMatchObject({ code: 'volume_unavailable' });
      await opened.close();
    });
  });

  it('I3: readers beside a writer that replaces see one version, whole, always', async () => {
    const versions = Array.from({ length: 30 }, (_, i) => `${i}`.padStart(2, '0').repeat(200_000));
    temp.write('a', versions[0] ?? '');
    let done = false;
    const writer = (async () => {
      for (const version of versions) {
        const intent = intentOf(temp, 'a', { kind: 'replace' }, { staged: await stageText(temp, version), before: factsAt(temp.path('a')) });
        const place = await temp.volume.locate(intent.resource);
        await temp.volume.apply(intent, place, null);
        await temp.volume.syncParent(place);
        place.close();
      }
      done = true;
    })();
    const reader = async (): Promise<void> => {
      while (!done) expect(versions).toContain(await content('a'));
    };
    await Promise.all([writer, reader(), reader()]);
  });
});
