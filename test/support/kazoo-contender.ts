import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { WhenFinished } from './gateway-process.ts';

export type KazooLock = 'Lock' | 'ReadLock' | 'WriteLock';

const SCRIPT = fileURLToPath(new URL('./kazoo-contender.py', import.meta.url));
/** The one that the Debian package is for. */
const PYTHON = '/usr/bin/python3';

/** A program over kazoo, which nobody here wrote, that takes the lock of a node so many times; it stays inside until `leave`. */
export class KazooContender {
  readonly #process: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #ended: Promise<number | null>;
  #said = '';
  onIn: () => void = () => undefined;
  onOut: () => void = () => undefined;

  constructor(hosts: string, path: string, rounds: number, kind: KazooLock, whenFinished: WhenFinished) {
    this.#process = spawn(PYTHON, [SCRIPT, hosts, path, String(rounds), kind], { stdio: ['pipe', 'pipe', 'pipe'] });
    whenFinished(() => void this.#process.kill('SIGKILL'));
    this.#process.stderr.setEncoding('utf8').on('data', (text: string) => (this.#said += text));
    createInterface(this.#process.stdout).on('line', (line) => (line.startsWith('in ') ? this.onIn() : this.onOut()));
    this.#ended = new Promise((resolve) => this.#process.once('exit', resolve));
  }

  leave(): void {
    this.#process.stdin.write('\n');
  }

  /** Exit code, and what it said on standard error. */
  async ended(): Promise<readonly [number | null, string]> {
    return [await this.#ended, this.#said];
  }
}
