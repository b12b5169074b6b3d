import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { EXIT } from '../exit-codes.ts';

const LOOK_EVERY_MS = 20;
/** After SIGKILL: a process inside a dead mount does not end. */
const KILLED_MS_MAX = 2_000;

/** It could not be started; `exitCode` is what a shell says then. */
export class ChildNotStarted extends Error {
  readonly exitCode: number;

  constructor(command: string, cause: unknown) {
    const missing = cause instanceof Error && 'code' in cause && cause.code === 'ENOENT';
    super(missing ? `${command}: command not found` : `${command} cannot be run: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    });
    this.name = 'ChildNotStarted';
    this.exitCode = missing ? EXIT.notFound : EXIT.notExecutable;
  }
}

/**
 * A command and everything that it starts, as a process group of its own, so that all of it can be ended. The group is a session, too: Node
 * offers no other way to a group. So a key that the terminal turns into a signal reaches it only through us, once.
 */
export class ChildGroup {
  readonly #child: ChildProcess;
  readonly #groupId: number;
  /** What a shell would show: the exit code, or 128 + the number of the signal that ended it. */
  readonly ended: Promise<number>;

  private constructor(child: ChildProcess, groupId: number) {
    this.#child = child;
    this.#groupId = groupId;
    this.ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => resolve(signal === null ? (code ?? EXIT.failed) : 128 + constants.signals[signal]));
    });
  }

  /** With the standard streams of this process. Rejects with `ChildNotStarted`. */
  static async start(command: string, args: readonly string[], environment: Readonly<Record<string, string | undefined>>): Promise<ChildGroup> {
    const child = spawn(command, [...args], { env: { ...environment }, stdio: 'inherit', detached: true });
    try {
      await once(child, 'spawn');
    } catch (thrown) {
      throw new ChildNotStarted(command, thrown);
    }
    return new ChildGroup(child, child.pid ?? 0);
  }

  /** To all of the group; nothing when it is gone. */
  signal(signal: NodeJS.Signals): void {
    this.#kill(signal);
  }

  /**
   * SIGTERM to the group, and SIGKILL to whatever of it is left after `graceMs`. Resolves when the command has ended, or cannot be ended: then
   * with false.
   */
  async end(graceMs: number): Promise<boolean> {
    this.#kill('SIGTERM');
    // A process that is stopped takes no other signal but SIGKILL.
    this.#kill('SIGCONT');
    const deadlineMs = performance.now() + graceMs;
    while (this.#isAlive() && performance.now() < deadlineMs) await delay(LOOK_EVERY_MS);
    this.#kill('SIGKILL');
    return await Promise.race([this.ended.then(() => true), delay(KILLED_MS_MAX, false)]);
  }

  /** Whether any process of the group is left, also after its first one has ended. */
  #isAlive(): boolean {
    return this.#kill(0);
  }

  #kill(signal: NodeJS.Signals | 0): boolean {
    try {
      process.kill(-this.#groupId, signal);
      return true;
    } catch (thrown) {
      if (thrown instanceof Error && 'code' in thrown && thrown.code === 'ESRCH') return false;
      // EPERM: what is left of the group has changed its user.
      return this.#child.exitCode === null && this.#child.signalCode === null;
    }
  }
}
