import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Endings } from '../endings.ts';
import { StopLine } from '../stop-line.ts';

const START_MS_MAX = 20_000;
const STOP_MS_MAX = 10_000;
const ASK_AGAIN_MS = 20;
const ERRORS_KEPT = 4_000;

export interface ServerStart {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workingDirectory: string;
  /** Asked again and again until it says yes. */
  readonly isReady: () => Promise<boolean>;
}

/**
 * Starts a server and waits until it is ready; it is ended with the benchmark. In a process group of its own, so that an
 * interrupt at the terminal reaches the benchmark alone, which then ends the servers in order.
 * @returns its process id. @throws StopLine when it ends or is not ready in time, with what it wrote to standard error.
 */
export async function startServer(start: ServerStart, endings: Endings): Promise<number> {
  const env = { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '/', ...start.env };
  // The kernel ends the server when the benchmark is killed and cannot do it itself.
  const child = spawn('setpriv', ['--pdeathsig', 'TERM', '--', start.command, ...start.args], {
    cwd: start.workingDirectory,
    env,
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-ERRORS_KEPT);
  });
  let problem: string | null = null;
  child.once('error', (error) => {
    problem = error.message;
  });
  child.once('exit', (code, signal) => {
    problem = `it ended with ${signal ?? code}`;
  });
  endings.add(start.name, () => stopServer(child));
  const untilMs = performance.now() + START_MS_MAX;
  while (problem === null && performance.now() < untilMs) {
    if (child.pid !== undefined && (await start.isReady().catch(() => false))) return child.pid;
    await delay(ASK_AGAIN_MS);
  }
  throw new StopLine(`${start.name} did not start: ${problem ?? `not ready after ${START_MS_MAX} ms`}. ${errors.trim()}`);
}

async function stopServer(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  const stopped = await Promise.race([exited.then(() => true), delay(STOP_MS_MAX, false, { ref: false })]);
  if (stopped) return;
  // The group: a master process that is killed cannot end its workers any more.
  process.kill(-child.pid, 'SIGKILL');
  await exited;
}

/** Ends a server before the benchmark does, and waits until it is gone. */
export async function endProcess(pid: number, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  process.kill(pid, signal);
  for (const untilMs = performance.now() + STOP_MS_MAX; performance.now() < untilMs; await delay(ASK_AGAIN_MS)) {
    if (!isThere(pid)) return;
  }
  throw new Error(`process ${pid} did not end within ${STOP_MS_MAX} ms`);
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    // Ours to signal, so the only error is that there is no such process.
    return false;
  }
}
