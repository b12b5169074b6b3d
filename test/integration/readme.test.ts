import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CliProcess } from '../support/cli-process.ts';
import { type ConsoleStep, consoleSteps, fits } from '../support/console-blocks.ts';
import { freePort } from '../support/free-port.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const START = 'npm ci && npm start';
/** What the set-up of the tests has done before. */
const INSTALL = 'sudo apt-get install -y zookeeper';

const steps = consoleSteps(readFileSync(join(ROOT, 'README.md'), 'utf8'));
const typed = steps.filter(({ command }) => command !== START && command !== INSTALL);
const answers = new Map<ConsoleStep, string>();
let started: ConsoleStep | undefined;
let gateway: CliProcess;
let greeting: string;
/** The README's ports, and those of this test. */
let ports: [string, string][];

const here = (text: string): string => ports.reduce((changed, [from, to]) => changed.replaceAll(from, to), text);

/** A gateway that never becomes ready must fail the test, not hang it. */
const SHELL_MS_MAX = 240_000;

beforeAll(async () => {
  const directory = mkdtempSync(join(tmpdir(), 'fencegate-readme-'));
  symlinkSync(join(ROOT, 'bin'), join(directory, 'bin'));
  const first = String(await freePort());
  ports = [['8080', first]];
  for (const other of ['8081', '8082', '8083', '2181']) ports.push([other, String(await freePort())]);
  started = steps.find(({ command }) => command === START);
  gateway = new CliProcess(['bin/fencegate.cjs', 'serve'], { FENCEGATE_PORT: first }, directory);
  await gateway.says('"message":"listening"');
  greeting = gateway.stdout;
  const marks = typed.map((_, index) => `<<${index}>>`);
  const script = typed.map(({ command }, index) => `echo '${marks[index]}'\n${here(command)}`).join('\n');
  const shell = spawnSync('bash', ['-c', `exec 2>&1\n${script}\n`], {
    cwd: directory,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] },
    timeout: SHELL_MS_MAX,
  });
  typed.forEach((step, index) => {
    const [, after = ''] = shell.stdout.split(`${marks[index]}\n`);
    answers.set(step, after.split(`${marks[index + 1]}\n`)[0] ?? '');
  });
});

afterAll(async () => {
  gateway.signal('SIGTERM');
  expect(await gateway.ended()).toEqual({ code: 0, signal: null });
});

describe('the README', () => {
  it('starts a gateway with its first line', () => {
    // What npm says comes before.
    expect(fits(`npm\n${greeting}`, here(started?.output ?? 'no such line'))).toBe(true);
  });

  it.each(typed)('line $line: $command', (step) => {
    const answer = answers.get(step) ?? '';
    if (!fits(answer, here(step.output))) expect(answer.trim()).toBe(here(step.output));
  });
});
