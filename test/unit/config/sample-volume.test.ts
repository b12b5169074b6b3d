import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { makeSampleVolume } from '../../../src/config/sample-volume.ts';

const FIXTURE = fileURLToPath(new URL('../../../fixtures/volume', import.meta.url));
const SCRIPT = fileURLToPath(new URL('../../../fixtures/make-volume.mjs', import.meta.url));

/** Relative name -> bytes. */
function filesIn(root: string): Map<string, string> {
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => statSync(join(root, name)).isFile());
  return new Map(names.sort().map((name) => [name, readFileSync(join(root, name), 'latin1')]));
}

const fresh = () => mkdtempSync(join(tmpdir(), 'fencegate-sample-'));

describe('the sample volume', () => {
  it('is copied whole on the first start, parents and all', async () => {
    const path = join(fresh(), 'data', 'volumes', 'demo');
    await makeSampleVolume(path);
    expect(filesIn(path)).toEqual(filesIn(FIXTURE));
    expect(readdirSync(join(path, '..'))).toEqual(['demo']);
  });

  it('is left alone when it is there, even empty', async () => {
    const path = join(fresh(), 'demo');
    await makeSampleVolume(path);
    writeFileSync(join(path, 'README.txt'), 'mine');
    await makeSampleVolume(path);
    expect(readFileSync(join(path, 'README.txt'), 'utf8')).toBe('mine');
    const empty = fresh();
    await makeSampleVolume(empty);
    expect(readdirSync(empty)).toEqual([]);
  });

  it('made twice at once is made once', async () => {
    const path = join(fresh(), 'demo');
    await Promise.all([makeSampleVolume(path), makeSampleVolume(path)]);
    expect(readdirSync(join(path, '..'))).toEqual(['demo']);
    expect(filesIn(path)).toEqual(filesIn(FIXTURE));
  });

  it('is what its script makes, is small, and has names in several scripts, all NFC', () => {
    const again = fresh();
    execFileSync(process.execPath, [SCRIPT, again]);
    const files = filesIn(FIXTURE);
    expect(filesIn(again)).toEqual(files);
    expect([...files.values()].reduce((sum, bytes) => sum + bytes.length, 0)).toBeLessThan(100 * 1024);
    for (const script of [/\p{Script=Greek}/u, /\p{Script=Cyrillic}/u, /\p{Script=Han}/u, /\p{Script=Arabic}/u, /[ÄÖÜäöü]/]) {
      expect([...files.keys()].some((name) => script.test(name))).toBe(true);
    }
    for (const name of files.keys()) expect(name).toBe(name.normalize('NFC'));
  });
});
