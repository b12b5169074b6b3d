import { statfs } from 'node:fs/promises';

/**
 * Which file system a path is on, by the magic number of `statfs(2)`. Only file systems that are known to live on this machine
 * count as local; everything else (NFS, CIFS, 9p, FUSE, names never heard of) is treated as a network that may hang and lie.
 */
export interface FileSystem {
  readonly type: string;
  readonly local: boolean;
}

const KNOWN: ReadonlyMap<number, FileSystem> = new Map([
  [0xef53, { type: 'ext4', local: true }],
  [0x58465342, { type: 'xfs', local: true }],
  [0x9123683e, { type: 'btrfs', local: true }],
  [0x01021994, { type: 'tmpfs', local: true }],
  [0x858458f6, { type: 'ramfs', local: true }],
  [0x2fc12fc1, { type: 'zfs', local: true }],
  [0xf2f52010, { type: 'f2fs', local: true }],
  [0xca451a4e, { type: 'bcachefs', local: true }],
  [0x794c7630, { type: 'overlayfs', local: true }],
  [0x6969, { type: 'nfs', local: false }],
  [0xff534d42, { type: 'cifs', local: false }],
  [0xfe534d42, { type: 'smb2', local: false }],
  [0x01021997, { type: '9p', local: false }],
  [0x65735546, { type: 'fuse', local: false }],
  [0x00c36400, { type: 'ceph', local: false }],
  [0x5346414f, { type: 'afs', local: false }],
  [0x4d44, { type: 'vfat', local: false }],
  [0x2011bab0, { type: 'exfat', local: false }],
  [0x7366746e, { type: 'ntfs', local: false }],
]);

export function fileSystemOf(magic: bigint | number): FileSystem {
  const number = Number(BigInt.asUintN(32, BigInt(magic)));
  return KNOWN.get(number) ?? { type: `0x${number.toString(16)}`, local: false };
}

/** At start, before the volume has a lane; the caller puts a deadline on it, for a hung mount does not answer. */
export async function detectFileSystem(path: string): Promise<FileSystem> {
  return fileSystemOf((await statfs(path, { bigint: true })).type);
}
