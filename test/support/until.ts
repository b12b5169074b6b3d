import { setTimeout as pause } from 'node:timers/promises';

const EVERY_MS_MIN = 20;
const EVERY_MS_MAX = 100;

/**
 * For what has no event to wait for: the disk, another process. Resolves with the first value that is not `null`, asked for again
 * and again, less often once it has taken long: who asks takes processor time from the tests beside it. The time limit of the test is the limit.
 */
export async function until<T>(look: () => Promise<T | null> | T | null): Promise<T> {
  const begunMs = performance.now();
  for (;;) {
    const seen = await look();
    if (seen !== null) return seen;
    await pause(Math.min(Math.max((performance.now() - begunMs) / 10, EVERY_MS_MIN), EVERY_MS_MAX));
  }
}
