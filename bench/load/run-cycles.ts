import type { CyclePlan } from './cycle-plan.ts';
import { type CycleClient, cycleClient } from './cycles/cycle-client.ts';
import type { LoadResult } from './plan.ts';
import { Timed } from './timed.ts';

/** @throws Error at the first cycle that did not go as it should: a figure made of errors is no figure. */
export async function runCycles(plan: CyclePlan): Promise<LoadResult> {
  const clients = await Promise.all(Array.from({ length: plan.clients }, (_, index) => cycleClient(plan.port, plan.cycle, index)));
  try {
    const timed = new Timed(plan.amount);
    await Promise.all(clients.map((client) => repeat(client, timed)));
    return timed.result();
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

async function repeat(client: CycleClient, timed: Timed): Promise<void> {
  let sentMs = performance.now();
  for (let left = timed.repeatsMax; left > 0 && sentMs < timed.untilMs; left--) {
    const doneMs = await client.run();
    const nowMs = performance.now();
    timed.count(sentMs, nowMs, doneMs ?? nowMs);
    sentMs = nowMs;
  }
}
