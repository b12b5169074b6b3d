import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EXIT } from '../../src/cli/exit-codes.ts';
import { CliProcess } from '../support/cli-process.ts';
import { BIN } from '../support/command-line.ts';
import { type ConsoleStep, consoleSteps, fits } from '../support/console-blocks.ts';
import { answersTo } from '../support/shell-session.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const GUIDE = readFileSync(join(ROOT, 'docs/command-line.md'), 'utf8');
const steps = consoleSteps(GUIDE);

let directory: string;
let gateway: CliProcess;
let environment: Record<string, string>;
let answers: Map<ConsoleStep, string>;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'fencegate-guide-'));
  symlinkSync(BIN, join(directory, 'fencegate'));
  gateway = new CliProcess([BIN, 'serve'], { FENCEGATE_PORT: '0' }, directory);
  await gateway.says('"message":"listening"');
  const url = String(gateway.line('"message":"listening"')['url']);
  environment = { PATH: `${directory}:${process.env['PATH']}`, FENCEGATE_URL: url, HOME: directory };
  answers = answersTo(steps, { directory, environment });
}, 180_000);

afterAll(async () => {
  gateway.signal('SIGTERM');
  await gateway.ended();
  rmSync(directory, { recursive: true, force: true });
});

describe('docs/command-line.md', () => {
  it.each(steps)('line $line: $command', (step) => {
    const answer = answers.get(step) ?? '';
    if (!fits(answer, step.output)) expect(answer.trim()).toBe(step.output);
  });

  it('lists every exit code', () => {
    const listed = new Set([...GUIDE.matchAll(/^\| ([0-9, ]+)/gm)].flatMap(([, codes = '']) => codes.split(',').map(Number)));
    expect(Object.values(EXIT).filter((code) => !listed.has(code))).toEqual([]);
  });
});

describe('examples/close-quarter.sh', () => {
  it('closes the quarter under a lease of its own', () => {
    const script = spawnSync(join(ROOT, 'examples/close-quarter.sh'), [], { cwd: directory, encoding: 'utf8', env: environment });
    expect(script.stderr).toBe('');
    const [, lines, token] = /^demo\/ledger\/2026-q1\.csv: (\d+) lines closed under token (\d+)\n$/.exec(script.stdout) ?? [];
    const ledger = spawnSync(process.execPath, [BIN, 'get', 'demo/ledger/2026-q1.csv', '-'], { cwd: directory, encoding: 'utf8', env: environment });
    expect(ledger.stdout.endsWith(`\nclosed,${lines} lines,token ${token}\n`)).toBe(true);
  });
});
