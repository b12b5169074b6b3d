import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { Latencies } from './latencies.ts';
import type { LoadResult } from './plan.ts';

/** The one that the Debian package is for. */
export const PYTHON = '/usr/bin/python3';
const CYCLES = fileURLToPath(new URL('./kazoo/cycles.py', import.meta.url));
const SAID_MAX = 2_000;

export interface KazooPlan {
  /** `host:port,host:port`. */
  readonly hosts: string;
  readonly clients: number;
  /** Spread over so many processes: the threads of one share a lock of Python's. */
  readonly processes: number;
  /** A name of each client's own, known before, or a name never seen for each lock. */
  readonly names: 'own' | 'new';
  readonly warmUpMs: number;
  readonly measureMs: number;
}

interface Told {
  readonly problem: string | null;
  readonly times: readonly number[];
  readonly cycles: number;
  readonly cpu: number;
}

/** The contestant is a client library, so it drives itself. @throws Error when one of its locks was not got. */
export async function runKazoo(plan: KazooPlan): Promise<LoadResult> {
  const processes = shares(plan.clients, plan.processes).map((clients) => new Loops(plan, clients));
  try {
    await Promise.all(processes.map((loops) => loops.line()));
    for (const loops of processes) loops.go();
    const told = await Promise.all(processes.map(async (loops) => JSON.parse(await loops.line()) as Told));
    return resultOf(told, plan);
  } finally {
    await Promise.all(processes.map((loops) => loops.end()));
  }
}

function resultOf(told: readonly Told[], { warmUpMs, measureMs }: KazooPlan): LoadResult {
  const problem = told.find((one) => one.problem !== null)?.problem;
  if (problem !== undefined) throw new Error(`kazoo: ${problem}`);
  const latencies = new Latencies();
  for (const { times } of told) for (const ms of times) latencies.add(ms);
  const [p50Ms, p99Ms] = latencies.percentiles([0.5, 0.99]);
  return {
    requests: latencies.count,
    seconds: measureMs / 1000,
    p50Ms,
    p99Ms,
    requestsAll: told.reduce((sum, { cycles }) => sum + cycles, 0),
    bodyBytesSent: 0,
    driverCpuShare: (told.reduce((sum, { cpu }) => sum + cpu, 0) * 1000) / (warmUpMs + measureMs),
  };
}

/** As even as can be, and nobody with none. */
function shares(clients: number, processes: number): readonly number[] {
  const used = Math.min(clients, processes);
  return Array.from({ length: used }, (_, index) => Math.floor(clients / used) + (index < clients % used ? 1 : 0));
}

class Loops {
  readonly #process: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #lines: AsyncIterator<string>;
  readonly #ended: Promise<unknown>;
  #said = '';

  constructor({ hosts, names, warmUpMs, measureMs }: KazooPlan, clients: number) {
    const args = [CYCLES, hosts, String(clients), names, String(warmUpMs), String(measureMs)];
    this.#process = spawn('setpriv', ['--pdeathsig', 'KILL', '--', PYTHON, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#ended = new Promise((resolve) => this.#process.once('close', resolve));
    this.#process.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#said = (this.#said + text).slice(-SAID_MAX);
    });
    this.#lines = createInterface(this.#process.stdout)[Symbol.asyncIterator]();
  }

  /** The next one that it says. */
  async line(): Promise<string> {
    const { done, value } = await this.#lines.next();
    if (done === true) throw new Error(`kazoo ended: ${this.#said.trim()}`);
    return value;
  }

  go(): void {
    this.#process.stdin.write('\n');
  }

  async end(): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.#ended;
  }
}
