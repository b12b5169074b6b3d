import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { ExecSuite, isGone, isStopped, parentOf } from '../support/exec-suite.ts';
import { until } from '../support/until.ts';

const suite = new ExecSuite();
const { lab } = suite;
const FLAGS = ['--ttl', '3s', '--grace', '300ms'];
let resource: string;
let name: (of: string) => string;

beforeEach(() => {
  ({ resource, name } = suite.next());
});

/** Ignores SIGTERM, and notes its pid, and the time of each round, in ms. */
const stubborn = (): string => `trap "" TERM HUP; echo $$ > ${name('pid')}; while :; do date +%s%3N >> ${name('beats')}; sleep 0.02; done`;

/** Waits until the command runs. */
async function startedPid(): Promise<number> {
  await suite.appeared(name('beats'));
  return suite.notedPid(name('pid'));
}

/** In a shell that passes the end of its terminal on, as a login shell does, and notes the exit code. */
const outliving = (script: string): string =>
  `node "$FENCEGATE" exec --lock ${resource} ${FLAGS.join(' ')} -- sh -c '${script}' & trap "kill -HUP $!" HUP; wait $!; wait $!; echo $? > ${name('code')}`;

/** Resolves when a process that does nothing but write comes no further. */
async function standsStill(pid: number): Promise<void> {
  let before = '';
  await until(() => {
    const [, now = ''] = /^wchar: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8')) ?? [];
    const stands = Number(now) > 0 && now === before;
    before = now;
    return stands ? true : null;
  });
}

const breakIt = (graceMs = 0) => lab.client.breakLock(resource, { reason: 'a test', graceMs });

describe('the end of a command of exec that ignores SIGTERM', () => {
  it('comes although standard error is a file on a disk that is full', async () => {
    const full = openSync('/dev/full', 'w');
    const child = suite.execWith(full, resource, stubborn(), ...FLAGS);
    closeSync(full);
    const ended = once(child, 'exit');
    const pid = await startedPid();
    await breakIt();
    expect(await ended).toEqual([70, null]);
    await isGone(pid);
  });

  it('comes although nobody has standard error open any more', async () => {
    const child = suite.execWith('pipe', resource, stubborn(), ...FLAGS);
    const ended = once(child, 'exit');
    const pid = await startedPid();
    child.stderr?.destroy();
    await breakIt();
    expect(await ended).toEqual([70, null]);
    await isGone(pid);
  });

  it.each(['a pipe', 'a socket'] as const)('comes in time although standard error is %s that is full, and that nobody reads', async (which) => {
    const pipe = join(lab.directory, name('pipe'));
    spawnSync('mkfifo', [pipe]);
    const unread = which === 'a pipe' ? openSync(pipe, 'r+') : 'pipe';
    const child = suite.execWith(unread, resource, `yes >&2 & echo $! > ${name('filler')}; ${stubborn()}`, ...FLAGS);
    const ended = once(child, 'exit');
    const pid = await startedPid();
    await standsStill(await suite.notedPid(name('filler')));
    // Told beforehand, too: that must not hold it up either.
    await breakIt(1_500);
    expect(await ended).toEqual([70, null]);
    await isGone(pid);
    if (typeof unread === 'number') closeSync(unread);
  });

  it('comes in time although the terminal stands still (Ctrl-S); what was said is said when it goes on', async () => {
    const { type, ended } = suite.atTerminal(resource, `trap "" TERM; echo $$ > ${name('pid')}; echo now; while :; do sleep 0.02; done`, ...FLAGS);
    const pid = await suite.notedPid(name('pid'));
    const keeper = parentOf(pid);
    type('\u0013');
    await breakIt(1_500);
    await Promise.all([isGone(pid), isGone(keeper)]);
    type('\u0011');
    expect((await ended).code).toBe(70);
  });

  it('comes when its terminal is gone, and exec says 70', async () => {
    const terminal = suite.atTerminalRun(outliving(stubborn()));
    const pid = await startedPid();
    terminal.hangUp();
    await breakIt();
    await isGone(pid);
    await suite.appeared(name('code'));
    expect(suite.text(name('code'))).toBe('70\n');
  });

  it.each([
    ['of the same resource', () => resource],
    ['of another resource, with a longer grace of its own', () => `${resource}.other`],
  ])('comes when it runs in an exec inside, %s', async (_which, inner) => {
    const nested = `exec node "$FENCEGATE" exec --lock ${inner()} --ttl 1m --grace 20s -- sh -c '${stubborn()}'`;
    const outer = suite.exec(resource, nested, ...FLAGS);
    const pid = await startedPid();
    await breakIt();
    expect(await outer.ended()).toEqual({ code: 70, signal: null });
    await isGone(pid);
  });

  it('comes when it has moved to a session of its own, and what started it has ended at SIGTERM', async () => {
    const moved = `setsid sh -c '${stubborn()}' & trap "exit 0" TERM; while :; do sleep 0.02; done`;
    const outer = suite.exec(resource, moved, ...FLAGS);
    const pid = await startedPid();
    await breakIt();
    expect(await outer.ended()).toEqual({ code: 70, signal: null });
    await isGone(pid);
  });

  it('has come before it does anything more when both were stopped (Ctrl-Z) for longer than the lease lives, however long the grace', async () => {
    const outer = suite.exec(resource, stubborn(), '--ttl', '2s', '--grace', '600ms');
    const pid = await startedPid();
    outer.signal('SIGTSTP');
    await isStopped(outer.child.pid ?? 0);
    await until(async () => ((await suite.isFree(resource)) ? true : null));
    const before = suite.times(name('beats')).at(-1);
    outer.signal('SIGCONT');
    expect(await outer.ended()).toEqual({ code: 70, signal: null });
    await isGone(pid);
    expect(suite.times(name('beats')).at(-1)).toBe(before);
  });
});

describe('the exit code of exec whose terminal is gone', () => {
  it('is that of the command, when that came to its own end', async () => {
    const script = `trap "exit 5" HUP; echo $$ > ${name('pid')}; while :; do sleep 0.02; done`;
    const terminal = suite.atTerminalRun(outliving(script));
    const pid = await suite.notedPid(name('pid'));
    terminal.hangUp();
    await isGone(pid);
    await suite.appeared(name('code'));
    expect(suite.text(name('code'))).toBe('5\n');
    expect(await suite.isFree(resource)).toBe(true);
  });
});
