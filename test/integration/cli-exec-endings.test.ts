import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { BIN } from '../support/command-line.ts';
import { commandLineSuite } from '../support/command-line-suite.ts';
import { until } from '../support/until.ts';

const lab = commandLineSuite();
/** A resource, and names of files, of each test's own. */
let resource: string;
let tests = 0;

beforeEach(() => {
  tests += 1;
  resource = `v/r${tests}.txt`;
});

/** Ignores SIGTERM, notes its pid in `pidN` and the time of each round, in ms, in `beatsN`. */
const stubborn = (): string => `trap "" TERM; echo $$ > pid${tests}; while :; do date +%s%3N >> beats${tests}; sleep 0.02; done`;

/** Waits until the command runs. It ends with the test, whatever `exec` does about it. */
async function startedPid(): Promise<number> {
  const file = join(lab.directory, `pid${tests}`);
  const pid = await until(() => (existsSync(file) && Number(readFileSync(file, 'utf8'))) || null);
  await until(() => (existsSync(join(lab.directory, `beats${tests}`)) ? true : null));
  onTestFinished(() => {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // As it should be.
    }
  });
  return pid;
}

const lastBeat = (): number =>
  Number(
    readFileSync(join(lab.directory, `beats${tests}`), 'utf8')
      .trim()
      .split('\n')
      .at(-1),
  );

/** Resolves when there is no such process, or only what is left of it for its parent. */
const isGone = (pid: number): Promise<true> =>
  until(() => (!existsSync(`/proc/${pid}`) || /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8')) ? true : null));

function execWith(stderr: 'pipe' | number, ...argv: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, [BIN, ...argv], { cwd: lab.directory, env: lab.cli.environment, stdio: ['ignore', 'ignore', stderr] });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

describe('the end of a command of exec that ignores SIGTERM', () => {
  it('comes although standard error is a file on a disk that is full', async () => {
    const full = openSync('/dev/full', 'w');
    const child = execWith(full, 'exec', '--lock', resource, '--ttl', '3s', '--grace', '300ms', '--', 'sh', '-c', stubborn());
    closeSync(full);
    const ended = once(child, 'exit');
    const pid = await startedPid();
    await lab.client.breakLock(resource, { reason: 'a test' });
    expect(await ended).toEqual([70, null]);
    await isGone(pid);
  });

  it('comes although nobody reads standard error any more', async () => {
    const child = execWith('pipe', 'exec', '--lock', resource, '--ttl', '3s', '--grace', '300ms', '--', 'sh', '-c', stubborn());
    const ended = once(child, 'exit');
    const pid = await startedPid();
    child.stderr?.destroy();
    await lab.client.breakLock(resource, { reason: 'a test' });
    expect(await ended).toEqual([70, null]);
    await isGone(pid);
  });

  it.each([
    ['of the same resource', () => resource],
    ['of another resource, with a longer grace of its own', () => `${resource}.other`],
  ])('comes when it runs in an exec inside, %s', async (_which, inner) => {
    const nested = `exec node "$FENCEGATE" exec --lock ${inner()} --ttl 1m --grace 20s -- sh -c '${stubborn()}'`;
    const outer = lab.cli.start('exec', '--lock', resource, '--ttl', '3s', '--grace', '300ms', '--', 'sh', '-c', nested);
    const pid = await startedPid();
    await lab.client.breakLock(resource, { reason: 'a test' });
    expect(await outer.ended()).toEqual({ code: 70, signal: null });
    await isGone(pid);
  });

  it('comes when it has moved to a session of its own, and what started it has ended at SIGTERM', async () => {
    const moved = `setsid sh -c '${stubborn()}' & trap "exit 0" TERM; while :; do sleep 0.02; done`;
    const outer = lab.cli.start('exec', '--lock', resource, '--ttl', '3s', '--grace', '300ms', '--', 'sh', '-c', moved);
    const pid = await startedPid();
    await lab.client.breakLock(resource, { reason: 'a test' });
    expect(await outer.ended()).toEqual({ code: 70, signal: null });
    await isGone(pid);
  });

  it('has come before it does anything more when both were stopped (Ctrl-Z) for longer than the lease lives, however long the grace', async () => {
    const outer = lab.cli.start('exec', '--lock', resource, '--ttl', '2s', '--grace', '600ms', '--', 'sh', '-c', stubborn());
    const pid = await startedPid();
    outer.signal('SIGTSTP');
    await until(() => (/^State:\s+T/m.test(readFileSync(`/proc/${outer.child.pid}/status`, 'utf8')) ? true : null));
    await until(async () => ((await lab.client.lock(resource)).holders.length === 0 ? true : null));
    const before = lastBeat();
    outer.signal('SIGCONT');
    expect(await outer.ended()).toEqual({ code: 70, signal: null });
    await isGone(pid);
    expect(lastBeat()).toBe(before);
  });
});
