import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

/** How long the end of the process waits for what it has said. */
const SAYING_MS_MAX = 1_000;

/**
 * Says lines by a process of its own. A terminal that stands still (Ctrl-S) and a full pipe that nobody reads hold up whoever writes to them, and
 * Node has no write to standard error that does not wait where a command has it, too. What could not be said when we end is said when it goes on.
 */
class Messenger {
  #process: ChildProcess | null = null;

  say(line: string): void {
    this.#process ??= startMessenger();
    this.#process.stdin?.write(`${line}\n`);
  }

  async said(): Promise<void> {
    const { pid, exitCode, signalCode } = this.#process ?? {};
    if (this.#process === null || pid === undefined || exitCode !== null || signalCode !== null) return;
    const ended = once(this.#process, 'exit');
    this.#process.stdin?.end();
    await atMost(SAYING_MS_MAX, ended);
  }
}

/** In a group of its own, so that no key of the terminal ends it. What it cannot say, nobody can be told. */
function startMessenger(): ChildProcess {
  const started = spawn('cat', { cwd: '/', stdio: ['pipe', 2, 'ignore'], detached: true });
  started.on('error', () => undefined);
  started.stdin?.on('error', () => undefined);
  return started;
}

let messenger: Messenger | null = null;

/**
 * One line for people. That it cannot be told, as on a disk that is full or a terminal that is gone, changes nothing about what is done and how it
 * ends: a command that `exec` keeps must not go on without its keeper because of that.
 */
export function sayOnStandardError(line: string): void {
  try {
    if (messenger === null) process.stderr.write(`${line}\n`);
    else messenger.say(line);
  } catch {
    // A file is written at once, and tells so; or the machine has no process left.
  }
}

/** From now on nothing that is said holds up this process: it keeps a lease, and ends a command in time. */
export function sayWithoutWaiting(): void {
  messenger ??= new Messenger();
}

/** Pipes and terminals tell later. */
export function outliveStandardError(): void {
  process.stderr.on('error', () => undefined);
}

/** Resolves when all that was said is written, or cannot be in time. */
export async function errorsWritten(): Promise<void> {
  if (messenger !== null) await messenger.said();
  else if (process.stderr.writableLength > 0) await atMost(SAYING_MS_MAX, new Promise<void>((resolve) => process.stderr.write('', () => resolve())));
}

async function atMost(ms: number, work: Promise<unknown>): Promise<void> {
  const late = new AbortController();
  await Promise.race([work, delay(ms, undefined, { signal: late.signal }).catch(() => undefined)]);
  late.abort();
}
