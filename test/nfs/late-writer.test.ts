import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { newDirectory, removeDirectory } from '../support/gateway.ts';
import { GatewayProcess } from '../support/gateway-process.ts';
import { type Attempt, auditOf, History } from '../support/history.ts';
import { cannotUnshare, describeWhere } from '../support/needs.ts';
import { SECOND_CLIENT } from '../support/nfs-control.ts';
import { TIER } from '../support/tier.ts';
import { VOLUME_BASE } from '../support/volume-base.ts';
import { volumeSnapshot } from '../support/volume-snapshot.ts';
import { writeKinds } from '../support/write-kinds.ts';

/**
 * The gateway is stopped between its last check and its change of the volume; a successor takes over *through the other NFS client*, as
 * from another host; then the first is woken. What it still sends reaches the server, and must change nothing there (I1).
 */

let directory: string;
let history: History;
let running: GatewayProcess | null = null;
/** Which client the running gateway uses; each take-over goes to the other one. */
let client = 0;
let rounds = 0;

beforeAll(async () => {
  directory = await newDirectory();
  for (const volume of ['v', 'w']) mkdirSync(join(directory, volume), { recursive: true });
  history = new History(directory);
});
afterAll(async () => {
  await running?.kill();
  await removeDirectory(directory);
});

const throughClient = (index: number): string => directory.replace(VOLUME_BASE, index % 2 === 0 ? VOLUME_BASE : SECOND_CLIENT);

async function start(): Promise<GatewayProcess> {
  const root = throughClient(client);
  running = await GatewayProcess.start(directory, {
    yaml: `volumes:\n  v:\n    path: "${root}/v"\n  w:\n    path: "${root}/w"\n    range_writes: in-place\n`,
    takeoverAfterMs: 1_000,
    ownPidNamespace: true,
    outlivesTest: true,
  });
  return running;
}

/** As the server has it: a client may answer from its cache. */
function onTheServer(): unknown {
  const exported = directory.replace(VOLUME_BASE, '/srv/nfs');
  return ['v', 'w'].map((volume) => volumeSnapshot(join(exported, volume)));
}

async function round(): Promise<void> {
  rounds += 1;
  const old = running?.isRunning === true ? running : await start();
  const kinds = writeKinds(`r${rounds}`);
  const leases = await Promise.all(kinds.map((kind, index) => history.prepare(old.url, kind, (index + rounds) % 2 === 0)));
  await old.hold('6.before_apply');
  const attempts: Attempt[] = kinds.map((kind, index) => history.begin(old.url, kind, leases[index] ?? null, () => old.nudge()));
  await old.until(() => old.held().size + attempts.filter(({ answer }) => answer !== undefined).length === kinds.length);
  const before = inodes();
  old.signal('SIGSTOP');

  client += 1;
  const successor = await start();
  // What an in-place write of the first could still reach is no file of the volume any more.
  for (const [name, ino] of before) expect([name, inodes().get(name)]).not.toEqual([name, ino]);
  expect(await history.writeNext(successor.url, attempts)).toEqual([]);
  const untouched = onTheServer();
  const records = (await auditOf(successor.url)).length;

  old.order(null);
  old.signal('SIGCONT');
  expect((await old.ended()).code).toBe(1);
  await Promise.all(attempts.map(({ done }) => done));
  expect(attempts.filter(({ answer }) => answer != null && answer.status < 300).map(({ kind }) => kind.name)).toEqual([]);
  expect(onTheServer()).toEqual(untouched);
  expect(await auditOf(successor.url)).toHaveLength(records);
}

/** Of the files that are changed in place: an append's and a range write's. */
function inodes(): Map<string, bigint> {
  const exported = directory.replace(VOLUME_BASE, '/srv/nfs');
  return new Map([`v/r${rounds}/append.txt`, `w/r${rounds}/range.txt`].map((name) => [name, inodeOf(join(exported, name))] as const));
}

function inodeOf(path: string): bigint {
  return statSync(path, { bigint: true }).ino;
}

describeWhere(cannotUnshare, 'I1: a successor on another NFS client', () => {
  it(`takes over from a stopped gateway, which changes nothing when it wakes: ${TIER.nfsTakeOvers} rounds of every kind of write`, async () => {
    for (let each = 0; each < TIER.nfsTakeOvers; each += 1) await round();
    const exported = directory.replace(VOLUME_BASE, '/srv/nfs');
    for (const volume of ['v', 'w'])
      expect(readdirSync(join(exported, volume, '.fencegate')).filter((name) => /^[0-9a-f]{32}$/.test(name))).toHaveLength(1);
  });
});
