import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where tests put the directories of volumes: `npm run test:nfs` names an NFS mount here, and the same suites then run on that. */
const given = process.env['TEST_VOLUMES'];

export const ON_NFS = given !== undefined;

/** The directory below which volumes are made. */
export const VOLUME_BASE = given ?? tmpdir();

/** Whether calls are made as on a local disk or as on a network mount: a local disk can be taken for a mount, not the other way round. */
export const LOCALITIES: readonly { readonly local: boolean }[] = ON_NFS ? [{ local: false }] : [{ local: true }, { local: false }];

/** On NFS the exported directory itself, where no client's cache is in between and no client keeps what is open there; else the same path. */
export function onTheServer(path: string): string {
  return given === undefined ? path : path.replace(given, '/srv/nfs');
}

/** On NFS too, the journal is on a local disk: `data` in a gateway's directory leads there. */
export function newGatewayDirectory(): string {
  const directory = mkdtempSync(join(VOLUME_BASE, 'fencegate-test-'));
  if (ON_NFS) symlinkSync(mkdtempSync(join(tmpdir(), 'fencegate-data-')), join(directory, 'data'));
  return directory;
}

export function removeTree(directory: string): void {
  // What an NFS client keeps of a removed file goes when its last reader closes it.
  rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}
