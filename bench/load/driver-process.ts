import type { DriverAnswer, LoadPlan } from './plan.ts';
import { runLoad } from './run-load.ts';

/** The load driver's process: a plan in, a result out, one at a time. It ends when the benchmark lets go of the channel. */
process.on('message', (plan: LoadPlan) => {
  runLoad(plan).then(
    (result) => answer({ result }),
    (thrown: unknown) => answer({ problem: thrown instanceof Error ? thrown.message : String(thrown) }),
  );
});

// Interrupts are for the benchmark, which still wants the channel while it tidies up.
process.on('SIGINT', () => {});
process.on('disconnect', () => process.exit());

function answer(message: DriverAnswer): void {
  process.send?.(message);
}
