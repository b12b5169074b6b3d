import { describe, expect, it } from 'vitest';
import { mountFactsOf, mountWarnings } from '../../../src/storage/mount-facts.ts';
import { mountOf, parseMountInfo } from '../../../src/storage/mount-table.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const NFS4 =
  '39 22 0:31 / /mnt/nfs rw,relatime shared:7 - nfs4 10.0.0.1:/exported\\040files rw,vers=4.2,rsize=262144,hard,proto=tcp,local_lock=none,addr=10.0.0.1';

const warned = (options: string, type = 'nfs4'): string[] => mountWarnings({ type, options: options.split(',') }).map(({ option }) => option);

describe('the mount table', () => {
  it('gives type, source and the options of both halves of a line', () => {
    const [mount] = parseMountInfo(NFS4);
    expect(mount).toMatchObject({ point: '/mnt/nfs', type: 'nfs4', source: '10.0.0.1:/exported files' });
    expect(mount?.options).toEqual(['rw', 'relatime', 'vers=4.2', 'rsize=262144', 'hard', 'proto=tcp', 'local_lock=none', 'addr=10.0.0.1']);
  });

  it('names the mount that holds a path, which is the last of those on the longest point', () => {
    const mounts = parseMountInfo(`1 0 8:1 / / rw - ext4 /dev/a rw\n${NFS4}\n40 39 0:40 / /mnt/nfs rw - tmpfs over rw`);
    expect(mountOf('/mnt/nfs/deep/er', mounts)?.source).toBe('over');
    expect(mountOf('/mnt/nfs2', mounts)?.source).toBe('/dev/a');
  });

  it('is read for a directory of this machine', async () => {
    const facts = await mountFactsOf(temporaryDirectory(), { type: 'ext4', local: true });
    expect(facts).toMatchObject({ isNetwork: false, warnings: [], options: expect.arrayContaining(['rw']) });
  });
});

describe('warnings about mount options', () => {
  it('a hard mount that looks names up anew has none', () => {
    expect(warned('rw,hard,lookupcache=pos,local_lock=none')).toEqual([]);
    expect(warned('rw,hard,lookupcache=none,acregmax=30,acdirmax=60')).toEqual([]);
  });

  it.each([
    ['soft', 'rw,soft,lookupcache=pos', ['soft']],
    ['softerr', 'rw,softerr,lookupcache=pos', ['softerr']],
    ['nolock', 'rw,hard,nolock,lookupcache=pos', ['nolock']],
    ['locks that stay on this client', 'rw,hard,local_lock=all,lookupcache=pos', ['local_lock=all']],
    ['attributes that are kept for long', 'rw,hard,acregmin=60,acregmax=3600,acdirmax=600,lookupcache=pos', ['acregmax=3600', 'acdirmax=600']],
    ['missing names that are remembered', 'rw,hard', ['lookupcache=all']],
  ])('%s', (_, options, expected) => {
    expect(warned(options)).toEqual(expected);
    for (const { weakens, remedy } of mountWarnings({ type: 'nfs', options: options.split(',') })) expect([weakens, remedy]).not.toContain('');
  });

  it('other file systems have options of their own by these names, or none', () => {
    expect(warned('rw,soft', 'cifs')).toEqual([]);
    expect(warned('rw', 'ext4')).toEqual([]);
  });
});
