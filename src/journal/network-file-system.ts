import { readFileSync, realpathSync, statfsSync } from 'node:fs';
import { refuse } from '../domain/errors.ts';

/** Superblock magics of file systems on which SQLite's WAL does not work: it needs memory shared by one machine (trap F31). */
const NETWORK_MAGICS = new Map<bigint, string>([
  [0x6969n, 'NFS'],
  [0x517bn, 'SMB'],
  [0xff534d42n, 'CIFS'],
  [0xfe534d42n, 'SMB2'],
  [0x5346414fn, 'AFS'],
  [0x73757245n, 'Coda'],
  [0x01021997n, '9P'],
  [0x00c36400n, 'Ceph'],
  [0x0bd00bd0n, 'Lustre'],
  [0x47504653n, 'GPFS'],
  [0x19830326n, 'BeeGFS'],
]);
const FUSE_MAGIC = 0x65735546n;
/** FUSE is local or remote; the mount table tells which. */
const REMOTE_FUSE = /^fuse\.(sshfs|glusterfs|s3fs|rclone|curlftpfs|davfs2?|ceph|juicefs|goofys|mfs|lizardfs|gcsfuse|blobfuse2?)$/;

/** The name of the network file system with this magic, or `undefined` for a local one. `fuseType` is the mount table's type. */
export function networkFileSystem(magic: bigint, fuseType: string | undefined): string | undefined {
  const unsigned = BigInt.asUintN(32, magic);
  const known = NETWORK_MAGICS.get(unsigned);
  if (known !== undefined) return known;
  return unsigned === FUSE_MAGIC && fuseType !== undefined && REMOTE_FUSE.test(fuseType) ? fuseType : undefined;
}

/** The type of the mount that holds `path`, from the text of `/proc/self/mountinfo`. */
export function mountTypeOf(path: string, mountInfo: string): string | undefined {
  let best = { length: -1, type: undefined as string | undefined };
  for (const line of mountInfo.split('\n')) {
    const [left, right] = line.split(' - ');
    const point = left?.split(' ')[4]?.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
    if (point === undefined || right === undefined) continue;
    const inside = point === '/' || path === point || path.startsWith(`${point}/`);
    // The later of two mounts on one point hides the earlier.
    if (inside && point.length >= best.length) best = { length: point.length, type: right.split(' ')[0] };
  }
  return best.type;
}

/** Throws when the data directory lies on a network file system. Looks at the directory only, never at a database file. */
export function assertLocalFileSystem(directory: string): void {
  const { type } = statfsSync(directory, { bigint: true });
  const name = networkFileSystem(type, mountTypeOf(realpathSync(directory), readFileSync('/proc/self/mountinfo', 'utf8')));
  if (name !== undefined) {
    throw refuse(
      'journal_unavailable',
      `The data directory lies on a network file system (${name}), where the journal cannot be kept safely. Choose a directory on a local disk.`,
    );
  }
}
