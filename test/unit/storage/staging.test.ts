import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TargetFacts } from '../../../src/domain/file-facts.ts';
import type { Staging } from '../../../src/domain/volume.ts';
import { EIO, ENOSPC, ESTALE, systemError } from '../../support/fault-calls.ts';
import { sealAs } from '../../support/seal.ts';
import { descriptorsBack, openDescriptors, type TempVolume, tempVolume } from '../../support/temp-volume.ts';
import { LOCALITIES } from '../../support/volume-base.ts';

const replaced: TargetFacts = { kind: 'file', ino: 1n, sizeBytes: 1, mtimeNs: 1n, links: 1, mode: 0o640, uid: 12_345, gid: 23_456 };

describe.each(LOCALITIES)('staging (local: $local)', ({ local }) => {
  let temp: TempVolume;
  let descriptors: number;
  beforeEach(async () => {
    temp = await tempVolume({ local });
    descriptors = openDescriptors();
  });
  afterEach(async () => {
    await descriptorsBack(descriptors);
    await temp.close();
  });

  const stagedPath = (staging: Pick<Staging, 'name'>): string => join(temp.incPath, staging.name);

  it('writes in order, counts, hashes, and gives the facts that the file has', async () => {
    const staging = await temp.volume.stage({ sha512: true });
    await staging.write(Buffer.from('hello '));
    await staging.write(Buffer.alloc(0));
    await staging.write(Buffer.from('world'));
    expect(staging.bytesWritten).toBe(11);
    const facts = await sealAs(temp.volume, staging, null);
    await staging.sync();
    expect(fs.readFileSync(stagedPath(staging), 'utf8')).toBe('hello world');
    expect(facts.sha256).toBe(createHash('sha256').update('hello world').digest('hex'));
    expect(staging.digest('sha-256')).toBe(facts.sha256);
    expect(staging.digest('sha-512')).toBe(createHash('sha512').update('hello world').digest('hex'));
    const { ino, size, mtimeNs } = fs.statSync(stagedPath(staging), { bigint: true });
    expect(facts).toMatchObject({ name: staging.name, ino, sizeBytes: Number(size), mtimeNs });
  });

  it('F21: names carry the incarnation and a number, never the name of the target', async () => {
    const [a, b] = [await temp.volume.stage({ sha512: false }), await temp.volume.stage({ sha512: false })];
    expect(a.name).toMatch(new RegExp(`^${temp.room.incarnation}-\\d+$`));
    expect(a.name).not.toBe(b.name);
    await a.discard();
    await b.discard();
  });

  it('an empty body makes an empty file', async () => {
    const staging = await temp.volume.stage({ sha512: false });
    const facts = await sealAs(temp.volume, staging, null);
    await staging.sync();
    expect(facts).toMatchObject({ sizeBytes: 0, sha256: createHash('sha256').digest('hex') });
  });

  it('a new file gets the mode that the umask leaves, a replaced one keeps its mode and owner (F27)', async () => {
    const fresh = await temp.volume.stage({ sha512: false });
    await sealAs(temp.volume, fresh, null);
    expect(fs.statSync(stagedPath(fresh)).mode & 0o7777).toBe(0o666 & ~process.umask());
    const over = await temp.volume.stage({ sha512: false });
    await sealAs(temp.volume, over, replaced);
    const { mode, uid, gid } = fs.statSync(stagedPath(over));
    expect([mode & 0o7777, uid, gid]).toEqual([0o640, 12_345, 23_456]);
    await fresh.discard();
    await over.discard();
  });

  it('a gateway that may not give files away keeps the mode, but hands no set-id bit of its own out', async () => {
    temp.faults.on('fchown', () => Promise.reject(systemError('EPERM', 1)));
    const staging = await temp.volume.stage({ sha512: false });
    await sealAs(temp.volume, staging, { ...replaced, mode: 0o6755 });
    expect(fs.statSync(stagedPath(staging)).mode & 0o7777).toBe(0o755);
    await staging.discard();
  });

  it('discard removes the file, may come at any time and twice, and never rejects', async () => {
    const staging = await temp.volume.stage({ sha512: false });
    await staging.write(Buffer.from('x'));
    await staging.discard();
    await staging.discard();
    expect(temp.staged()).toEqual([]);
    const other = await temp.volume.stage({ sha512: false });
    temp.faults.on('unlink', () => Promise.reject(EIO()));
    await expect(other.discard()).resolves.toBeUndefined();
  });

  it('a body of many chunks arrives byte for byte', async () => {
    const staging = await temp.volume.stage({ sha512: false });
    const chunk = Buffer.from(Array.from({ length: 200_000 }, (_, i) => i % 251));
    await staging.write(chunk);
    await staging.write(chunk);
    await sealAs(temp.volume, staging, null);
    expect(fs.readFileSync(stagedPath(staging)).equals(Buffer.concat([chunk, chunk]))).toBe(true);
    await staging.discard();
  });

  it('X8, F4, F5: a disk that fills up shows at write, at sync or at close, and each is insufficient_storage before anything is published', async () => {
    for (const name of ['writeAll', 'fsync', 'close'] as const) {
      const staging = await temp.volume.stage({ sha512: false });
      const run = async (): Promise<void> => {
        await staging.write(Buffer.from('x'));
        await sealAs(temp.volume, staging, null);
        await staging.sync();
      };
      temp.faults.failOnce(name, ENOSPC, name === 'close' ? 'after' : 'before');
      await expect(run(), name).rejects.toMatchObject({ code: 'insufficient_storage' });
      temp.faults.heal();
      await staging.discard();
    }
    expect(temp.staged()).toEqual([]);
    expect(temp.volume.state()).toEqual({ state: 'open', reason: null });
  });

  it('F3: a failed sync is final: it is not repeated, the file is not used again, and the volume says so', async () => {
    const staging = await temp.volume.stage({ sha512: false });
    await staging.write(Buffer.from('x'));
    await sealAs(temp.volume, staging, null);
    temp.faults.failOnce('fsync', EIO);
    await expect(staging.sync()).rejects.toMatchObject({ code: 'volume_unavailable' });
    await expect(staging.sync()).rejects.toMatchObject({ code: 'volume_unavailable' });
    expect(temp.faults.log.filter((name) => name === 'fsync')).toHaveLength(1);
    expect(temp.volume.state()).toMatchObject({ state: 'open', reason: expect.stringContaining('EIO') });
    await staging.discard();
  });

  it('a file that lost bytes on the way is refused at the seal', async () => {
    const staging = await temp.volume.stage({ sha512: false });
    await staging.write(Buffer.from('hello'));
    fs.truncateSync(stagedPath(staging), 3);
    await expect(sealAs(temp.volume, staging, null)).rejects.toMatchObject({ code: 'volume_unavailable' });
    await staging.discard();
  });

  it('X8: bytes that a full export did not take, though every write succeeded, are missing at the seal; the sync tells why', async () => {
    const staging = await temp.volume.stage({ sha512: false });
    await staging.write(Buffer.from('hello'));
    fs.truncateSync(stagedPath(staging), 3);
    temp.faults.failOnce('fsync', ENOSPC);
    await expect(sealAs(temp.volume, staging, null)).rejects.toMatchObject({ code: 'insufficient_storage' });
    await staging.discard();
  });

  it('a digest that was not ordered, and bytes after the digest, are bugs', async () => {
    const staging = await temp.volume.stage({ sha512: false });
    expect(() => staging.digest('sha-512')).toThrow('not told to make');
    staging.digest('sha-256');
    await expect(staging.write(Buffer.from('x'))).rejects.toMatchObject({ code: 'internal' });
    await staging.discard();
  });

  it('in a fenced volume nothing can be staged, and the process is told once', async () => {
    temp.fence();
    await expect(temp.volume.stage({ sha512: false })).rejects.toMatchObject({ code: 'volume_unavailable' });
    await expect(temp.volume.stage({ sha512: false })).rejects.toMatchObject({ code: 'volume_unavailable' });
    expect(temp.fencedCount).toBe(1);
    expect(temp.volume.state().state).toBe('closed');
  });

  it('X1: ESTALE while staging is judged by the held directory: still there is an error of the volume, not a fence', async () => {
    temp.faults.failOnce('open', ESTALE);
    await expect(temp.volume.stage({ sha512: false })).rejects.toMatchObject({ code: 'volume_unavailable' });
    expect(temp.fencedCount).toBe(0);
  });

  it('is gone for good only when we removed its name ourselves, and its directory is durable since', async () => {
    const { faults, volume } = temp;
    const stage = (): Promise<Staging> => volume.stage({ sha512: false });
    const gone = await stage();
    const before = faults.log.length;
    expect(await gone.discardForGood()).toBe(true);
    expect(fs.existsSync(stagedPath(gone))).toBe(false);
    expect(faults.log.slice(before).filter((name) => name === 'unlink' || name === 'fsync')).toEqual(['unlink', 'fsync']);
    const taken = await stage();
    fs.renameSync(stagedPath(taken), temp.path('with-the-successor'));
    expect(await taken.discardForGood()).toBe(false);
    const stuck = await stage();
    faults.failOnce('unlink', EIO);
    expect(await stuck.discardForGood()).toBe(false);
    expect(fs.existsSync(stagedPath(stuck))).toBe(true);
    const unsynced = await stage();
    faults.failOnce('fsync', EIO);
    expect(await unsynced.discardForGood()).toBe(false);
  });

  it('versions of two files staged at once differ', async () => {
    const all = await Promise.all(Array.from({ length: 20 }, () => temp.volume.stage({ sha512: false })));
    const sealed = await Promise.all(all.map((staging) => sealAs(temp.volume, staging, null)));
    expect(new Set(sealed.map(({ mtimeNs }) => mtimeNs)).size).toBe(20);
    expect(temp.volume.lastMtimeNs).toBe(
      sealed
        .map(({ mtimeNs }) => mtimeNs)
        .sort()
        .at(-1),
    );
    await Promise.all(all.map((staging) => staging.discard()));
  });
});

describe('staging a large body', () => {
  it('syncs on the way, so that the sync of the commit section is short, and holds no more than a chunk', async () => {
    const temp = await tempVolume();
    try {
      temp.faults.on('writeAll', async () => undefined);
      temp.faults.on('fsync', async () => undefined);
      const staging = await temp.volume.stage({ sha512: false });
      const chunk = Buffer.alloc(16 * 1_048_576);
      for (let i = 0; i < 9; i++) await staging.write(chunk);
      expect(temp.faults.log.filter((name) => name === 'fsync')).toHaveLength(2);
      await staging.discard();
    } finally {
      await temp.close();
    }
  });
});
