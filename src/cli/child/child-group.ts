import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { EXIT } from '../exit-codes.ts';
import { familyOf, type ProcessFacts } from './descendants.ts';

const LOOK_EVERY_MS = 20;
/** After SIGKILL: a process inside a dead mount does not end. */
const KILLED_MS_MAX = 2_000;
/** How often what was started while it was looked for is looked for again. */
const KILL_ROUNDS_MAX = 5;

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
 * offers no other way to a group. So a key that the terminal turns into a signal reaches it only through us, once. It never outlives us where we
 * can help it: what ends this process before the command has ended, such as an error that nobody caught, kills it.
 */
export class ChildGroup {
  readonly #child: ChildProcess;
  readonly #groupId: number;
  /** What a shell would show: the exit code, or 128 + the number of the signal that ended it. */
  readonly ended: Promise<number>;

  private constructor(child: ChildProcess, groupId: number) {
    this.#child = child;
    this.#groupId = groupId;
    const abandoned = (): void => this.#killAll([]);
    process.once('exit', abandoned);
    this.ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        process.off('exit', abandoned);
        resolve(signal === null ? (code ?? EXIT.failed) : 128 + constants.signals[signal]);
      });
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
   * SIGTERM to the group, and SIGKILL to whatever is left when `leftMs` says 0: of the group, and of what it has started in groups of its own,
   * such as the command of another `exec` inside. Resolves when that has ended, or cannot be ended: then with false.
   */
  async end(leftMs: () => number): Promise<boolean> {
    // Seen before its parents end, who are how it is found.
    const family = familyOf(this.#groupId, []);
    this.#kill('SIGTERM');
    // A process that is stopped takes no other signal but SIGKILL; it is not woken up for a time that it has not got.
    if (leftMs() > 0) this.#kill('SIGCONT');
    while (this.#isAlive() && leftMs() > 0) await delay(LOOK_EVERY_MS);
    this.#killAll(family);
    const deadlineMs = performance.now() + KILLED_MS_MAX;
    while (familyOf(this.#groupId, family).length > 0 && performance.now() < deadlineMs) await delay(LOOK_EVERY_MS);
    return await Promise.race([this.ended.then(() => true), delay(Math.max(LOOK_EVERY_MS, deadlineMs - performance.now()), false)]);
  }

  /** SIGKILL by groups: a process cannot start another one past that. */
  #killAll(known: readonly ProcessFacts[]): void {
    let family = familyOf(this.#groupId, known);
    this.#kill('SIGKILL');
    for (let round = 0; family.length > 0 && round < KILL_ROUNDS_MAX; round += 1) {
      for (const group of new Set(family.map((one) => one.group))) killGroup(group);
      family = familyOf(this.#groupId, [...known, ...family]);
    }
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

function killGroup(group: number): void {
  // To the system these are "my own" and "everybody".
  if (group <= 1) return;
  try {
    process.kill(-group, 'SIGKILL');
  } catch {
    // It is gone, or has changed its user: then nothing can be done about it.
  }
}
