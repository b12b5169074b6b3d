import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** What can be done to the server and the clients of the guest in which an NFS suite runs (`nfs-lab`). */

/** The second client's mount of the same export: it knows nothing of what the first one caches. */
export const SECOND_CLIENT = '/mnt/nfs2';
export const NFS_VERSION = process.env['TEST_NFS_VERSION'] ?? '';
export const IS_SOFT = process.env['TEST_NFS']?.endsWith('soft') === true;
export const IS_SMALL = process.env['TEST_NFS']?.endsWith('full') === true;

const run = promisify(execFile);

/** Cuts the gateway's client off from the server: packets vanish, nothing is refused. `lift` ends it. */
export async function cutOff(): Promise<{ lift(): Promise<void> }> {
  await control('down', 'c1');
  return { lift: () => control('up', 'c1') };
}

async function control(...args: readonly string[]): Promise<void> {
  const tool = process.env['NFS_LAB_CTL'];
  if (tool === undefined) throw new Error('NFS suites run in the guest: npm run test:nfs');
  await run(tool, [...args]);
}
