import { readdirSync, rmdirSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { STEPS, type Step } from '../../src/domain/steps.ts';
import { GatewayProcess } from '../support/gateway-process.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { type Attempt, auditOf, type Expected, History } from '../support/history.ts';
import { attempt } from '../support/http-client.ts';
import { cannotUnshare, describeWhere } from '../support/needs.ts';
import { stoppedAndTakenOver } from '../support/stopped-and-taken-over.ts';
import { TIER } from '../support/tier.ts';
import { volumeSnapshot } from '../support/volume-snapshot.ts';
import { TWO_VOLUMES, writeKinds } from '../support/write-kinds.ts';

/**
 * SIGSTOP at the numbered steps of the write protocol, a successor over the same directory, then SIGCONT: the woken process can
 * reach nothing any more (I1), and no client of it is told that a write was made that was not.
 *
 * Each process lives in a pid namespace of its own. So the successor cannot end the stopped one, as it could not if that hung in a
 * dead mount, and must make do with what the volume itself refuses.
 */

const TAKEOVER_AFTER_MS = 1_000;

let directory: string;
let history: History;
let running: GatewayProcess | null = null;
const started: GatewayProcess[] = [];

beforeAll(async () => {
  directory = await newDirectory();
  await mkdir(join(directory, 'w'));
  history = new History(directory);
});
afterAll(async () => {
  for (const each of started) await each.kill();
  await removeDirectory(directory);
});

async function spawn(): Promise<GatewayProcess> {
  const gateway = await GatewayProcess.spawn(directory, {
    yaml: TWO_VOLUMES,
    takeoverAfterMs: TAKEOVER_AFTER_MS,
    ownPidNamespace: true,
    outlivesTest: true,
  });
  started.push(gateway);
  return gateway;
}

async function start(): Promise<GatewayProcess> {
  running = await spawn();
  await running.listening();
  await running.opened();
  return running;
}

async function successorOf(old: GatewayProcess): Promise<GatewayProcess> {
  running = await stoppedAndTakenOver(old, spawn);
  await running.opened();
  return running;
}

function expectedAt(step: Step, { kind }: Attempt): Expected {
  return STEPS.indexOf(step) < STEPS.indexOf(kind.unproven === true ? '6.applied' : '6.durable') ? 'before' : 'after';
}

/** What the woken process may have told its client: nothing, a refusal, or the truth. */
function wrongAnswers(step: Step, attempts: readonly Attempt[]): string[] {
  return attempts.flatMap((attempt) => {
    const { answer, kind } = attempt;
    if (answer === null || answer === undefined) return [];
    if (answer.status < 300) return expectedAt(step, attempt) === 'after' ? [] : [`${kind.name}: answered ${answer.status}, but nothing was written`];
    const { code } = answer.json;
    // A definite refusal would be a lie about a write that the successor finished.
    return code === 'outcome_unknown' || expectedAt(step, attempt) === 'before'
      ? []
      : [`${kind.name}: answered ${String(code)}, but the write was made`];
  });
}

/** Begins each kind of write and waits until it stands at a step of its own; the steps are `shift` further on than in the first round. */
async function heldApart(gateway: GatewayProcess, shift: number): Promise<ReadonlyMap<Attempt, Step>> {
  const kinds = writeKinds(`r${shift}`);
  const leases = await Promise.all(kinds.map((kind, index) => history.prepare(gateway.url, kind, (index + shift) % 2 === 0)));
  const stepOf = new Map<Attempt, Step>();
  for (const [index, kind] of kinds.entries()) {
    const step = STEPS[(index + shift) % STEPS.length] ?? '7.answer';
    await gateway.hold(step);
    const standing = gateway.held().size;
    const attempt = history.begin(gateway.url, kind, leases[index] ?? null, () => gateway.nudge());
    await gateway.until(() => gateway.held().size > standing || attempt.answer !== undefined);
    stepOf.set(attempt, step);
  }
  return stepOf;
}

async function stoppedAndWoken(shift: number): Promise<void> {
  const old = running?.isRunning === true ? running : await start();
  const stepOf = await heldApart(old, shift);
  const attempts = [...stepOf.keys()];
  const answered = attempts.filter(({ answer }) => answer !== undefined);
  // Only what stages nothing passes by the steps of staging.
  expect(answered.filter((attempt) => stepOf.get(attempt)?.startsWith('4.') !== true)).toEqual([]);
  const successor = await successorOf(old);
  expect(await history.check(successor.url, attempts, (attempt) => expectedAt(stepOf.get(attempt) ?? '7.answer', attempt), 'stopped')).toEqual([]);
  expect(await history.writeNext(successor.url, attempts)).toEqual([]);
  expect(await history.checkWhole(successor.url, 'stopped')).toEqual([]);
  const untouched = ['v', 'w'].map((volume) => volumeSnapshot(join(directory, volume)));
  const records = (await auditOf(successor.url)).length;

  old.order(null);
  old.signal('SIGCONT');
  expect((await old.ended()).code).toBe(1);
  await Promise.all(attempts.map(({ done }) => done));
  for (const [attempt, step] of stepOf) if (!answered.includes(attempt)) expect(wrongAnswers(step, [attempt])).toEqual([]);
  expect(['v', 'w'].map((volume) => volumeSnapshot(join(directory, volume)))).toEqual(untouched);
  expect(await auditOf(successor.url)).toHaveLength(records);
  expect(await history.checkWhole(successor.url)).toEqual([]);
}

/** What a gateway makes for itself on each volume: directories of incarnations, and of start-up tests. */
function ownDirectories(): readonly (readonly string[])[] {
  return ['v', 'w'].map((volume) =>
    readdirSync(join(directory, volume, '.fencegate'), { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])),
  );
}

/** Whatever it is at, a superseded process that is woken ends, and what it had made for itself is gone. */
async function wakenAndOver(old: GatewayProcess): Promise<void> {
  const successors = ownDirectories();
  for (const names of successors) expect(names.filter((name) => /^[0-9a-f]{32}$/.test(name))).toHaveLength(1);
  old.order(null);
  old.signal('SIGCONT');
  expect((await old.ended()).code).toBe(1);
  expect(ownDirectories()).toEqual(successors);
}

describeWhere(cannotUnshare, 'SIGSTOP, take-over by a process that cannot end the stopped one, SIGCONT', () => {
  it.each(TIER.stopShifts)('each kind of write at another step, moved on by %i: the woken process changes nothing and ends', stoppedAndWoken);

  it('right before a new incarnation makes its directory: the woken process leaves none', async () => {
    const old = running?.isRunning === true ? running : await start();
    await old.hold('own_directory');
    // Somebody took its directories away, so it begins anew on both volumes.
    for (const [index, [name = '']] of ownDirectories().entries()) rmdirSync(join(directory, 'vw'.charAt(index), '.fencegate', name));
    const refused = ['v', 'w'].map((volume) => attempt(old.url, { path: `/v1/files/${volume}/anew.txt`, method: 'PUT', body: 'x' }));
    await old.until(() => old.held().size === 2);
    await successorOf(old);
    await wakenAndOver(old);
    for (const answer of await Promise.all(refused)) expect(answer?.status ?? 503).toBe(503);
  });

  it('right before its change of a volume: the woken process asks whose the journal is before it makes another directory', async () => {
    const old = running?.isRunning === true ? running : await start();
    await old.hold('6.before_apply');
    const held = ['v', 'w'].map((volume) => attempt(old.url, { path: `/v1/files/${volume}/late.txt`, method: 'PUT', body: 'x' }));
    await old.until(() => old.held().size === 2);
    await old.hold('own_directory');
    await successorOf(old);
    await wakenAndOver(old);
    await Promise.all(held);
    // The two writes, and no directory.
    expect(old.held().size).toBe(2);
  });
});
