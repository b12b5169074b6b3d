import type { DriverAnswer, DriverPlan, LoadResult } from './plan.ts';
import { runCycles } from './run-cycles.ts';
import { runHandOver } from './run-hand-over.ts';
import { runHeartbeats } from './run-heartbeats.ts';
import { runLoad } from './run-load.ts';

/** The load driver's process: a plan in, a result out, one at a time. It ends when the benchmark lets go of the channel. */
process.on('message', (plan: DriverPlan) => {
  run(plan).then(
    (result) => answer({ result }),
    (thrown: unknown) => answer({ problem: thrown instanceof Error ? thrown.message : String(thrown) }),
  );
});

// Interrupts are for the benchmark, which still wants the channel while it tidies up.
process.on('SIGINT', () => {});
process.on('disconnect', () => process.exit());

function run(plan: DriverPlan): Promise<LoadResult> {
  if (!('plan' in plan)) return runLoad(plan);
  switch (plan.plan) {
    case 'cycles':
      return runCycles(plan);
    case 'hand-over':
      return runHandOver(plan);
    case 'heartbeats':
      return runHeartbeats(plan);
  }
}

function answer(message: DriverAnswer): void {
  process.send?.(message);
}
