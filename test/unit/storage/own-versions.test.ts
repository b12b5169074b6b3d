import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FileFacts, StagedFacts } from '../../../src/domain/file-facts.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { factsAfter, OwnVersions } from '../../../src/storage/own-versions.ts';
import { intentOf, type TempVolume, tempVolume } from '../../support/temp-volume.ts';

const before: FileFacts = { ino: 1n, sizeBytes: 10, mtimeNs: 100n };
const staged: StagedFacts = { ino: 2n, sizeBytes: 20, mtimeNs: 200n, name: 's', sha256: '' };

describe('versions of our own', () => {
  let temp: TempVolume;
  beforeEach(async () => {
    temp = await tempVolume();
  });
  afterEach(() => temp.close());

  it('each kind of write leaves the facts that its answer announced', () => {
    for (const plan of [{ kind: 'replace' }, { kind: 'create' }, { kind: 'several', manifest: 'm' }] as const)
      expect(factsAfter(intentOf(temp, 'a', plan, { before, staged }))).toBe(staged);
    expect(factsAfter(intentOf(temp, 'a', { kind: 'append', offset: 10, lengthBytes: 5, mtimeNs: 300n }, { before, staged }))).toEqual({
      ino: 1n,
      sizeBytes: 15,
      mtimeNs: 300n,
    });
    expect(factsAfter(intentOf(temp, 'a', { kind: 'in_place', offset: 2, lengthBytes: 5, mtimeNs: 300n }, { before, staged }))).toEqual({
      ino: 1n,
      sizeBytes: 10,
      mtimeNs: 300n,
    });
    for (const plan of [{ kind: 'remove', trash: 't' }, { kind: 'mkdir' }, { kind: 'rmdir' }] as const)
      expect(factsAfter(intentOf(temp, 'a', plan, { before }))).toBeNull();
  });

  it('only the version of our last commit is ours, until it is forgotten', () => {
    const versions = new OwnVersions([]);
    const intent = intentOf(temp, 'a', { kind: 'replace' }, { staged });
    versions.committed(intent, null);
    expect([versions.isOurs('vol/a', staged), versions.isOurs('vol/a', before)]).toEqual([true, false]);
    versions.forget('vol/a');
    expect(versions.isOurs('vol/a', staged)).toBe(false);
  });

  it('of a write that was finished under another inode it is the one that stands there', () => {
    const versions = new OwnVersions([]);
    const found = { ...staged, ino: 3n };
    versions.committed(intentOf(temp, 'a', { kind: 'replace' }, { staged }), found);
    expect([versions.isOurs('vol/a', staged), versions.isOurs('vol/a', found)]).toEqual([false, true]);
    versions.committed(intentOf(temp, 'a', { kind: 'remove', trash: 't' }, { before: staged }), found);
    expect(versions.isOurs('vol/a', found)).toBe(false);
  });

  it('a move takes the version along, a removal forgets it', () => {
    const versions = new OwnVersions([]);
    versions.committed(intentOf(temp, 'a', { kind: 'replace' }, { staged }), null);
    versions.committed(intentOf(temp, 'b', { kind: 'move', from: temp.resource('a'), source: staged, manifest: 'm' }), null);
    expect([versions.isOurs('vol/a', staged), versions.isOurs('vol/b', staged)]).toEqual([false, true]);
    versions.committed(intentOf(temp, 'b', { kind: 'remove', trash: 't' }, { before: staged }), null);
    expect(versions.isOurs('vol/b', staged)).toBe(false);
  });

  it('what was written last before is known from the start, the newest of each file', () => {
    const later = { ...staged, ino: 4n };
    const versions = new OwnVersions([staged, later].map((facts) => intentOf(temp, 'a', { kind: 'replace' }, { staged: facts })));
    expect([versions.isOurs('vol/a', staged), versions.isOurs('vol/a', later)]).toEqual([false, true]);
  });

  it('are remembered up to a bound: beyond it the one goes that was asked for the longest time ago', () => {
    const versions = new OwnVersions([]);
    const commit = (name: string): void => versions.committed(intentOf(temp, name, { kind: 'replace' }, { staged }), null);
    for (let made = 0; made < LIMITS.ownVersionsMax; made += 1) commit(`n${made}`);
    expect(versions.isOurs('vol/n0', staged)).toBe(true);
    commit('one-more');
    expect(['n0', 'n1', 'n2', 'one-more'].map((name) => versions.isOurs(`vol/${name}`, staged))).toEqual([true, false, true, true]);
  });
});
