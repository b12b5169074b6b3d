import { readdirSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { LIMITS } from '../domain/limits.ts';
import type { VolumePolicy } from '../domain/volume.ts';

/** Threads for everything that is no volume: the journal's look-ups, DNS, random numbers, the gateway's own files. */
const SPARE_THREADS = 8;
/** V8's own workers, which a process has in any case: they must not be taken for threads of the pool. */
const OTHER_THREADS = 4;

/** Enough that every volume may hang with all its operations in flight and the rest still goes on (trap X4). */
export function threadsNeeded(volumes: readonly VolumePolicy[]): number {
  return volumes.reduce((sum, volume) => sum + (volume.path === null ? 0 : volume.limits.inFlight), SPARE_THREADS);
}

/**
 * Proves that the pool has the threads that the volumes need: a setting that came too late would be ignored without a word.
 * @returns `null`, or the line that says what to do.
 */
export async function poolProblem(volumes: readonly VolumePolicy[]): Promise<string | null> {
  const needed = threadsNeeded(volumes);
  // The first use of the pool starts all its threads.
  await stat('/');
  const threads = readdirSync('/proc/self/task').length;
  if (threads > needed + OTHER_THREADS) return null;
  const size = Math.max(needed, LIMITS.threadPoolSize);
  return `the thread pool is too small for the volumes: set UV_THREADPOOL_SIZE to ${size}, and start the gateway with bin/fencegate.cjs`;
}
