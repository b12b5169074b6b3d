import { setTimeout as pause } from 'node:timers/promises';

const EVERY_MS = 20;

/**
 * For what has no event to wait for: the disk, another process. Resolves with the first value that is not `null`, asked for again
 * and again; the time limit of the test is the limit.
 */
export async function until<T>(look: () => Promise<T | null> | T | null): Promise<T> {
  for (;;) {
    const seen = await look();
    if (seen !== null) return seen;
    await pause(EVERY_MS);
  }
}
