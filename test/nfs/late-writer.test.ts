import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { GatewayProcess } from '../support/gateway-process.ts';
import { removeDirectory } from '../support/gateway-settings.ts';
import { type Attempt, History } from '../support/history.ts';
import { get } from '../support/http-client.ts';
import { cannotUnshare, describeWhere } from '../support/needs.ts';
import { cutOff, SECOND_CLIENT } from '../support/nfs-control.ts';
import { stoppedAndTakenOver } from '../support/stopped-and-taken-over.ts';
import { TIER } from '../support/tier.ts';
import { until } from '../support/until.ts';
import { onTheServer, VOLUME_BASE } from '../support/volume-base.ts';
import { volumeSnapshot } from '../support/volume-snapshot.ts';
import { writeKinds } from '../support/write-kinds.ts';

/**
 * A gateway is stopped between its last check and the end of its change of the volume; a successor takes over *through the other NFS
 * client*, as from another host; then the first is woken. What it still sends reaches the server, and must change nothing there (I1).
 */

/** Journal and settings, on a local disk: a gateway must be able to start while the first client is cut off. */
let directory: string;
/** Of the volumes, as the first client sees it. */
let mounted: string;
let history: History;
let running: GatewayProcess | null = null;
const started: GatewayProcess[] = [];
/** Which client the running gateway uses; each take-over goes to the other one. */
let client = 0;
let rounds = 0;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'fencegate-late-'));
  mounted = mkdtempSync(join(VOLUME_BASE, 'fencegate-late-'));
  for (const volume of ['v', 'w']) mkdirSync(join(mounted, volume));
  history = new History(directory);
});
afterAll(async () => {
  for (const each of started) await each.kill();
  for (const each of [directory, mounted]) await removeDirectory(each);
});

const throughClient = (index: number): string => mounted.replace(VOLUME_BASE, index % 2 === 0 ? VOLUME_BASE : SECOND_CLIENT);
const exported = (name: string): string => join(onTheServer(mounted), name);

async function spawn(): Promise<GatewayProcess> {
  const root = throughClient(client);
  const gateway = await GatewayProcess.spawn(directory, {
    yaml: `volumes:\n  v:\n    path: "${root}/v"\n  w:\n    path: "${root}/w"\n    range_writes: in-place\n`,
    takeoverAfterMs: 1_000,
    ownPidNamespace: true,
    outlivesTest: true,
  });
  started.push(gateway);
  return gateway;
}

async function start(): Promise<GatewayProcess> {
  running = await spawn();
  await running.listening();
  return running;
}

/** As the server has it: a client may answer from its cache. */
function everything(): unknown {
  return ['v', 'w'].map((volume) => volumeSnapshot(exported(volume)));
}

async function newestRecord({ url }: GatewayProcess): Promise<unknown> {
  return ((await get(url, '/v1/audit?limit=1')).json['records'] as { seq: number }[])[0]?.seq;
}

/** Of the files that are changed in place: an append's and a range write's. */
function inodes(): Map<string, bigint> {
  return new Map(
    [`v/r${rounds}/append.txt`, `w/r${rounds}/range.txt`].map((name) => [name, statSync(exported(name), { bigint: true }).ino] as const),
  );
}

/** One write of each kind, every second one under a lease, all of them behind their last check. */
async function heldWrites(old: GatewayProcess): Promise<Attempt[]> {
  rounds += 1;
  const kinds = writeKinds(`r${rounds}`);
  const leases = await Promise.all(kinds.map((kind, index) => history.prepare(old.url, kind, (index + rounds) % 2 === 0)));
  await old.hold('6.before_apply');
  const attempts = kinds.map((kind, index) => history.begin(old.url, kind, leases[index] ?? null, () => old.nudge()));
  await old.until(() => old.held().size + attempts.filter(({ answer }) => answer !== undefined).length === kinds.length);
  return attempts;
}

/** Of a gateway that is stopped for it. */
async function successorOf(old: GatewayProcess, attempts: readonly Attempt[]): Promise<GatewayProcess> {
  const before = inodes();
  client += 1;
  const successor = await stoppedAndTakenOver(old, spawn);
  running = successor;
  // On v4 the server first waits for a client that is cut off to give back what it was promised, as long as its lease is.
  await successor.opened();
  // What an in-place write of the first could still reach is no file of the volume any more.
  for (const [name, ino] of before) expect([name, inodes().get(name)]).not.toEqual([name, ino]);
  expect(await history.writeNext(successor.url, attempts)).toEqual([]);
  return successor;
}

/** Nothing may have changed since `untouched`, and no client of the first may have been told that its write was made. */
async function wakeUp(old: GatewayProcess, attempts: readonly Attempt[]): Promise<void> {
  old.order(null);
  old.signal('SIGCONT');
  expect((await old.ended()).code).toBe(1);
  await Promise.all(attempts.map(({ done }) => done));
  expect(attempts.filter(({ answer }) => answer != null && answer.status < 300).map(({ kind }) => kind.name)).toEqual([]);
}

/** What is looked at does not grow with the rounds. */
function clearRound(): void {
  for (const name of [`v/r${rounds}`, `v/r${rounds}-new`, `w/r${rounds}`]) rmSync(exported(name), { recursive: true, force: true });
}

async function round(): Promise<void> {
  const old = running?.isRunning === true ? running : await start();
  const attempts = await heldWrites(old);
  const successor = await successorOf(old, attempts);
  const [untouched, newest] = [everything(), await newestRecord(successor)];
  await wakeUp(old, attempts);
  expect(everything()).toEqual(untouched);
  expect(await newestRecord(successor)).toBe(newest);
  clearRound();
}

function threadsInKernel(pid: number): number {
  return readdirSync(`/proc/${pid}/task`).filter((thread) => /^\d+ \(.*\) D /.test(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8'))).length;
}

describeWhere(cannotUnshare, 'I1: a successor on another NFS client', () => {
  it(`takes over from a stopped gateway, which changes nothing when it wakes: ${TIER.nfsTakeOvers} rounds of every kind of write`, async () => {
    for (let each = 0; each < TIER.nfsTakeOvers; each += 1) await round();
    for (const volume of ['v', 'w'])
      expect(readdirSync(exported(`${volume}/.fencegate`)).filter((name) => /^[0-9a-f]{32}$/.test(name))).toHaveLength(1);
  }, 10_800_000);

  it('takes over while the changes of the first are requests that its client cannot deliver; delivered later, they change nothing', async () => {
    await running?.kill();
    // The client that is cut off is the first one.
    client += client % 2;
    const old = await start();
    const attempts = await heldWrites(old);
    const cut = await cutOff();
    onTestFinished(() => cut.lift());
    await old.hold(null);
    await until(() => (threadsInKernel(old.pid) >= 8 ? true : null));
    const successor = await successorOf(old, attempts);
    const [untouched, newest] = [everything(), await newestRecord(successor)];
    await cut.lift();
    // Its threads come out of the kernel with the server's answers, while the process itself still stands.
    await until(() => (threadsInKernel(old.pid) === 0 ? true : null));
    expect(everything()).toEqual(untouched);
    await wakeUp(old, attempts);
    expect(everything()).toEqual(untouched);
    expect(await newestRecord(successor)).toBe(newest);
    clearRound();
  });
});
