import { type ChildProcess, fork } from 'node:child_process';
import { Socket } from 'node:net';
import { extname } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { FromSupervisor, ToSupervisor } from './child-protocol.ts';

/**
 * Starts the process with the native client, and the next one when it has seen the last one exit. It exists because a serving process
 * must not start processes while a mount may hang (its own start then waits for that mount); it ends with the gateway.
 */

const CHILD = fileURLToPath(new URL(`./client-process${extname(import.meta.url)}`, import.meta.url));
/** Of the child, its own standard streams and the channel to us come first. */
const GATEWAY_PIPE = 4;
const RESTART_MS_MIN = 100;
const RESTART_MS_MAX = 5_000;
/** Whoever lived longer is started again at once. */
const STEADY_MS = 10_000;
const LINE_MAX = 500;

let child: ChildProcess | null = null;
let restartMs = RESTART_MS_MIN;
let asked = false;

const tell = (message: FromSupervisor, socket?: Socket): void => {
  // A gateway that was killed cannot be told; that it is gone is heard as a disconnect.
  if (process.connected) process.send?.(message, socket, {}, () => undefined);
};

function start(): void {
  if (!process.connected) return;
  const startedAt = performance.now();
  const started = fork(CHILD, [], { execArgv: [], stdio: ['ignore', 'ignore', 'pipe', 'ipc', 'pipe'] });
  child = started;
  if (started.stderr !== null) createInterface(started.stderr).on('line', (line) => tell({ kind: 'said', line: line.slice(0, LINE_MAX) }));
  started.once('exit', (code, signal) => {
    child = null;
    tell({ kind: 'exited', code, signal });
    const steady = asked || performance.now() - startedAt > STEADY_MS;
    asked = false;
    restartMs = steady ? RESTART_MS_MIN : Math.min(RESTART_MS_MAX, restartMs * 2);
    setTimeout(start, steady ? 0 : restartMs);
  });
  // The gateway alone holds this end of the pair from now on: it closes when the gateway is gone.
  const pipe: unknown = started.stdio[GATEWAY_PIPE];
  if (pipe instanceof Socket) tell({ kind: 'child', pid: started.pid ?? 0 }, pipe);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.on('message', ({ kind }: ToSupervisor) => {
  if (kind !== 'replace') return;
  asked = true;
  child?.kill('SIGKILL');
});
process.on('disconnect', () => {
  child?.kill('SIGKILL');
  // A timer of a restart must not keep it.
  if (child === null) process.kill(process.pid, 'SIGKILL');
  else child.once('exit', () => process.kill(process.pid, 'SIGKILL'));
});
start();
