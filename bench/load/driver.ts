import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Endings } from '../endings.ts';
import type { DriverAnswer, DriverPlan, LoadResult } from './plan.ts';

/** The load driver, in a process of its own so that the benchmark's other work takes nothing from it. */
export class Driver {
  readonly #process: ChildProcess;

  constructor(endings: Endings) {
    this.#process = fork(fileURLToPath(new URL('./driver-process.ts', import.meta.url)), { execArgv: ['--import', 'tsx'] });
    endings.add('the load driver', async () => {
      if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
      const exited = once(this.#process, 'exit');
      this.#process.kill('SIGKILL');
      await exited;
    });
  }

  /** @throws Error when an answer was not as planned, or the driver's process ended. */
  async run(plan: DriverPlan): Promise<LoadResult> {
    const answer = await new Promise<DriverAnswer>((resolve, reject) => {
      const ended = (): void => reject(new Error('the load driver ended in the middle of a load'));
      this.#process.once('exit', ended);
      this.#process.once('message', (message: DriverAnswer) => {
        this.#process.removeListener('exit', ended);
        resolve(message);
      });
      this.#process.send(plan);
    });
    if ('problem' in answer) throw new Error(answer.problem);
    return answer.result;
  }
}
