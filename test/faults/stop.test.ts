import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { STEPS, type Step } from '../../src/domain/steps.ts';
import { newDirectory, removeDirectory } from '../support/gateway.ts';
import { GatewayProcess } from '../support/gateway-process.ts';
import { type Attempt, auditOf, type Expected, History } from '../support/history.ts';
import { cannotUnshare, describeWhere } from '../support/needs.ts';
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

async function start(): Promise<GatewayProcess> {
  running = await GatewayProcess.start(directory, {
    yaml: TWO_VOLUMES,
    takeoverAfterMs: TAKEOVER_AFTER_MS,
    ownPidNamespace: true,
    outlivesTest: true,
  });
  started.push(running);
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
  old.signal('SIGSTOP');

  const successor = await start();
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

describeWhere(cannotUnshare, 'SIGSTOP, take-over by a process that cannot end the stopped one, SIGCONT', () => {
  it.each(TIER.stopShifts)('each kind of write at another step, moved on by %i: the woken process changes nothing and ends', stoppedAndWoken);
});
