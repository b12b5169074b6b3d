import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { STEPS, type Step } from '../../src/domain/steps.ts';
import { GatewayProcess } from '../support/gateway-process.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { type Attempt, type Expected, History } from '../support/history.ts';
import { TIER } from '../support/tier.ts';
import { TWO_VOLUMES, type WriteKind, writeKinds } from '../support/write-kinds.ts';

/**
 * SIGKILL at every numbered step of the write protocol, under every kind of write; then the same directory again. Each test goes on
 * where the last one left off, so the history grows over all the crashes.
 */

/** From the durable intent on recovery finishes what the dead process began, where it can show that the staged bytes are whole. */
function expectedAt(step: Step, { kind }: Attempt): Expected {
  return STEPS.indexOf(step) < STEPS.indexOf(kind.unproven === true ? '6.applied' : '6.durable') ? 'before' : 'after';
}

let directory: string;
let history: History;
let running: GatewayProcess | null = null;
let rounds = 0;

beforeAll(async () => {
  directory = await newDirectory();
  await mkdir(join(directory, 'w'));
  history = new History(directory);
});
afterAll(async () => {
  await running?.kill();
  await removeDirectory(directory);
});

async function start(): Promise<GatewayProcess> {
  running = await GatewayProcess.start(directory, { yaml: TWO_VOLUMES, outlivesTest: true });
  return running;
}

/** Every second write under a lease of its own, the others token-less; in the next round it is the other way round. */
async function beginHeld(gateway: GatewayProcess, kinds: readonly WriteKind[], step: Step): Promise<Attempt[]> {
  const held = await Promise.all(kinds.map((kind, index) => history.prepare(gateway.url, kind, (index + rounds) % 2 === 0)));
  await gateway.hold(step);
  const attempts = kinds.map((kind, index) => history.begin(gateway.url, kind, held[index] ?? null, () => gateway.nudge()));
  await gateway.until(() => gateway.held().size + attempts.filter(({ answer }) => answer !== undefined).length === kinds.length);
  return attempts;
}

async function killedAt(step: Step, choose: (kinds: readonly WriteKind[]) => readonly WriteKind[]): Promise<void> {
  rounds += 1;
  const gateway = running?.isRunning === true ? running : await start();
  const attempts = await beginHeld(gateway, choose(writeKinds(`r${rounds}`)), step);
  await gateway.kill();
  await Promise.all(attempts.map(({ done }) => done));
  const restarted = await start();
  expect(await history.check(restarted.url, attempts, (attempt) => expectedAt(step, attempt))).toEqual([]);
  expect(await history.writeNext(restarted.url, attempts)).toEqual([]);
  expect(await history.checkWhole(restarted.url)).toEqual([]);
}

describe('SIGKILL, then a start on the same directory', () => {
  it.each(STEPS)('at step %s, all kinds of write at once: each is whole or not at all, and the answered ones are there', async (step) => {
    await killedAt(step, (kinds) => kinds);
  });

  const kinds = writeKinds('names');
  const each = TIER.eachAlone ? STEPS.flatMap((step) => kinds.map((kind) => [step, kind.name] as const)) : [['6.before_apply', 'append'] as const];
  it.each(each)('at step %s, %s alone', async (step, name) => {
    await killedAt(step, (all) => all.filter((kind) => kind.name === name));
  });
});
