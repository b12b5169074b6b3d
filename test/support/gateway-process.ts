import { type ChildProcess, fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { onTestFinished } from 'vitest';
import { childScript } from './child-bundle.ts';
import type { ChildReport, ChildSettings, HoldOrder, HoldPoint } from './gateway-child.ts';
import { gatewayEnvironment, type TestGatewayOptions } from './gateway-settings.ts';
import { volumesOpen } from './volumes-open.ts';

/** Says what is to be done when a test is over. */
export type WhenFinished = (end: () => Promise<void> | void) => void;

export interface GatewayProcessOptions extends Omit<TestGatewayOptions, 'directory' | 'steps'> {
  /** Overrides what the configuration allows at least. */
  readonly takeoverAfterMs?: number;
  readonly zookeeperSessionMs?: number;
  /** In a pid namespace of its own: no process outside of it may be judged by, or killed by, its pid. Needs root. */
  readonly ownPidNamespace?: boolean;
  /** Directories that the gateway takes for an NFS mount. */
  readonly asNetwork?: readonly string[];
  /** Shorter bounds than those of the product. */
  readonly limits?: ChildSettings['limits'];
  /** It serves several tests; the suite ends it. */
  readonly outlivesTest?: boolean;
  /** Of the test's own context, where several tests run at once. */
  readonly whenFinished?: WhenFinished;
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
}

/** A gateway process of the test's own: can be held at a step, stopped, woken and ended. Ends with the test that started it. */
export class GatewayProcess {
  readonly directory: string;
  readonly #child: ChildProcess;
  readonly #reports: ChildReport[] = [];
  #url = '';
  #stderr = '';
  #log = '';
  readonly #waiting = new Set<() => void>();
  #closed = false;

  private constructor(child: ChildProcess, directory: string) {
    this.#child = child;
    this.directory = directory;
    child.on('message', (message) => this.#changed(() => this.#reports.push(message as ChildReport)));
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.#log += text));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => this.#changed(() => (this.#stderr += text)));
    child.once('close', () => this.#changed(() => (this.#closed = true)));
  }

  /** Rejects with the process's own words when it does not start. */
  static async start(directory: string, options: GatewayProcessOptions = {}): Promise<GatewayProcess> {
    const gateway = await GatewayProcess.spawn(directory, options);
    await gateway.listening();
    return gateway;
  }

  /** A start that is to fail: how it ended. */
  static async failing(directory: string, options: GatewayProcessOptions = {}): Promise<Ended> {
    return (await GatewayProcess.spawn(directory, options)).ended();
  }

  static async spawn(directory: string, options: GatewayProcessOptions): Promise<GatewayProcess> {
    const environment = await gatewayEnvironment(directory, options);
    const settings: ChildSettings = {
      takeoverAfterMs: options.takeoverAfterMs ?? null,
      zookeeperSessionMs: options.zookeeperSessionMs ?? null,
      asNetwork: options.asNetwork ?? [],
      limits: options.limits ?? {},
    };
    const apart = options.ownPidNamespace === true;
    const child = fork(childScript('gateway-child'), [JSON.stringify(settings)], {
      ...(apart ? { execPath: 'unshare', execArgv: ['--pid', '--fork', '--kill-child', process.execPath] } : { execArgv: [] }),
      cwd: directory,
      env: { PATH: process.env['PATH'], UV_THREADPOOL_SIZE: '64', ...environment },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    const gateway = new GatewayProcess(child, directory);
    if (options.outlivesTest !== true) (options.whenFinished ?? onTestFinished)(() => gateway.signal('SIGKILL'));
    return gateway;
  }

  listening(): Promise<void> {
    return this.#says('listening');
  }

  /** Resolves when it answers while its start waits for the coordinator. */
  waiting(): Promise<void> {
    return this.#says('waiting');
  }

  async #says(word: 'listening' | 'waiting'): Promise<void> {
    await this.#until(() => this.#reports.some(({ kind }) => kind === word) || this.#closed);
    const report = this.#take((one) => one.kind === word);
    if (report === undefined || !('url' in report)) throw new Error(`the gateway did not start: ${this.#stderr}${this.#log}`);
    this.#url = report.url;
    while (this.#take(({ kind }) => kind === 'spawned') !== undefined);
  }

  /** Resolves once it serves every volume. */
  async opened(): Promise<void> {
    await volumesOpen(this.#url);
  }

  /** Processes that it has started since it serves. */
  get spawned(): number {
    return this.#reports.filter(({ kind }) => kind === 'spawned').length;
  }

  get url(): string {
    return this.#url;
  }

  get port(): number {
    return Number(new URL(this.#url).port);
  }

  /** What it said on standard error. */
  get stderr(): string {
    return this.#stderr;
  }

  /** Its log, for a test that failed. */
  get log(): string {
    return this.#log;
  }

  /** Of the gateway itself, as seen from here, also when it lives in a namespace of its own. */
  get pid(): number {
    const pid = this.#child.pid ?? 0;
    if (this.#child.spawnfile !== 'unshare') return pid;
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim());
  }

  get isRunning(): boolean {
    return !this.#closed;
  }

  /** From now on every write (or start of a volume) that reaches `step` waits there, beside those that wait at another; `null` lets all go on. Resolves when the process knows. */
  async hold(step: HoldPoint | null): Promise<void> {
    this.order(step);
    await this.#until(() => this.#reports.some(({ kind }) => kind === 'ordered') || this.#closed);
    this.#take(({ kind }) => kind === 'ordered');
  }

  /** The same for a process that is stopped: it will know when it wakes. */
  order(step: HoldPoint | null): void {
    this.#child.send({ hold: step } satisfies HoldOrder);
  }

  /** The operations that have reached the step at which they are held, and the directories that wait to be made. */
  held(): ReadonlySet<string> {
    return new Set(this.#reports.flatMap((report) => (report.kind === 'reached' ? [report.operationId] : [])));
  }

  /** Resolves once `done` holds, judged whenever an operation reaches its step, and whenever `nudge` is called. */
  async until(done: () => boolean): Promise<void> {
    await this.#until(() => done() || this.#closed);
  }

  nudge(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  signal(signal: NodeJS.Signals): void {
    if (this.#closed) return;
    try {
      process.kill(this.pid, signal);
    } catch (thrown) {
      // It was faster.
      if (!(thrown instanceof Error && 'code' in thrown && (thrown.code === 'ESRCH' || thrown.code === 'ENOENT'))) throw thrown;
    }
  }

  async ended(): Promise<Ended> {
    await this.#until(() => this.#closed);
    return { code: this.#child.exitCode, signal: this.#child.signalCode, stderr: this.#stderr };
  }

  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.ended();
  }

  async stop(): Promise<Ended> {
    this.signal('SIGTERM');
    return this.ended();
  }

  #take(fits: (report: ChildReport) => boolean): ChildReport | undefined {
    const at = this.#reports.findIndex(fits);
    return at < 0 ? undefined : this.#reports.splice(at, 1)[0];
  }

  #changed(change: () => void): void {
    change();
    this.nudge();
  }

  async #until(done: () => boolean): Promise<void> {
    while (!done()) {
      await new Promise<void>((resolve) => void this.#waiting.add(resolve));
    }
  }
}
