import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** What can be done to the server and the clients of the guest in which an NFS suite runs (`nfs-lab`). */

/** The second client's mount of the same export: it knows nothing of what the first one caches. */
export const SECOND_CLIENT = '/mnt/nfs2';
/** The exported directory itself: the server runs in the same guest. */
export const ON_SERVER = '/srv/nfs';
export const NFS_VERSION = process.env['TEST_NFS_VERSION'] ?? '';
export const IS_SOFT = process.env['TEST_NFS']?.includes('-soft') === true;
/** The export has 16 MiB. */
export const IS_SMALL = process.env['TEST_NFS_SIZE'] === '16M';
/** The export has a quota for the one user that every client is to it. */
export const IS_QUOTA = process.env['TEST_NFS']?.endsWith('quota') === true;

const run = promisify(execFile);

/** Until `lift` the server does not do what its client asks for. Lifting twice does no harm. */
export interface Outage {
  lift(): Promise<void>;
}

/** Cuts the gateway's client off from the server: packets vanish, nothing is refused. */
export function cutOff(): Promise<Outage> {
  return outage(['down', 'c1'], ['up', 'c1']);
}

/** The server ends: connections are refused, and it knows nothing of its clients when it is back. */
export function stopServer(): Promise<Outage> {
  return outage(['stop'], ['start']);
}

/** The server takes every request, carries out what changes nothing, and hangs in the rest until it goes on with all of them. */
export function freezeServer(): Promise<Outage> {
  return outage(['freeze'], ['thaw']);
}

async function outage(begin: readonly string[], end: readonly string[]): Promise<Outage> {
  await control(...begin);
  let over = false;
  return {
    lift: async () => {
      if (over) return;
      over = true;
      await control(...end);
    },
  };
}

async function control(...args: readonly string[]): Promise<void> {
  const tool = process.env['NFS_LAB_CTL'];
  if (tool === undefined) throw new Error('NFS suites run in the guest: npm run test:nfs');
  await run(tool, [...args]);
}
