import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { ChildReport, TrapOrder } from './gateway-child.ts';
import { gatewayEnvironment, type TestGatewayOptions } from './gateway.ts';

/** A gateway process of the test's own: can be stopped, woken and ended. */
export class GatewayProcess {
  readonly url: string;
  readonly directory: string;
  readonly #child: ChildProcess;
  readonly #reports: ChildReport[];

  private constructor(child: ChildProcess, url: string, directory: string, reports: ChildReport[]) {
    this.#child = child;
    this.url = url;
    this.directory = directory;
    this.#reports = reports;
  }

  /** Rejects with the child's own words when it does not start. */
  static async start(directory: string, options: TestGatewayOptions = {}): Promise<GatewayProcess> {
    const environment = await gatewayEnvironment(directory, options);
    const child = fork(new URL('./gateway-child.ts', import.meta.url), { execArgv: ['--import', 'tsx'], env: { ...process.env, UV_THREADPOOL_SIZE: '32' } });
    const reports: ChildReport[] = [];
    child.on('message', (message) => reports.push(message as ChildReport));
    child.send({ environment, directory });
    const first = await waitFor(child, reports, (r) => r.kind === 'listening' || r.kind === 'failed');
    if (first.kind !== 'listening') throw new Error(first.kind === 'failed' ? first.message : 'unexpected report');
    return new GatewayProcess(child, first.url, directory, reports);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get exitCode(): number | null {
    return this.#child.exitCode;
  }

  /** Lays the trap; resolves when the child has it. */
  async trap(order: TrapOrder): Promise<void> {
    this.#child.send(order);
    await waitFor(this.#child, this.#reports, (r) => r.kind === 'armed');
  }

  /** Resolves with the operation that reached the trap. */
  async reached(): Promise<string> {
    const report = await waitFor(this.#child, this.#reports, (r) => r.kind === 'reached');
    return report.kind === 'reached' ? report.operationId : '';
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async exited(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, 'exit');
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.exited();
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGTERM');
    await this.exited();
  }
}

/** Takes the first report that fits out of the inbox. */
async function waitFor(child: ChildProcess, reports: ChildReport[], fits: (report: ChildReport) => boolean): Promise<ChildReport> {
  for (;;) {
    const at = reports.findIndex(fits);
    if (at >= 0) return reports.splice(at, 1)[0] as ChildReport;
    if (child.exitCode !== null || child.signalCode !== null) return { kind: 'failed', message: `the gateway process ended (${child.exitCode ?? child.signalCode})` };
    await Promise.race([once(child, 'message'), once(child, 'exit')]);
  }
}
