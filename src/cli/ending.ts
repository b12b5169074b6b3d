import { setTimeout as delay } from 'node:timers/promises';
import { THREAD_CALL } from '../domain/threads-inside.ts';

/**
 * Ending the process although a volume hangs. `process.exit` waits for the threads of the pool and for our own, and a thread inside a dead mount
 * does not come back (trap X5); only SIGKILL ends such a process. Everything that must be durable is so by then.
 */

/** How long operations that are about to return may take to do so. */
const SETTLE_MS_MAX = 500;
const SETTLE_STEP_MS = 20;

export interface EndableProcess {
  exit(code: number): void;
  /** SIGKILL to ourselves. */
  kill(): void;
  /** What keeps the process busy: what `process.getActiveResourcesInfo` tells, and `threadsInside`. */
  busyWith(): readonly string[];
}

/** Operations of the file system that a thread is inside of, or that wait for one. */
function threadsAreBusy(own: EndableProcess): boolean {
  return own.busyWith().some((resource) => resource.startsWith('FSReq') || resource === THREAD_CALL);
}

/** Ends with `code`, or with SIGKILL when a thread is stuck. */
export async function endProcess(own: EndableProcess, code: number): Promise<void> {
  for (let waitedMs = 0; threadsAreBusy(own) && waitedMs < SETTLE_MS_MAX; waitedMs += SETTLE_STEP_MS) await delay(SETTLE_STEP_MS);
  endProcessNow(own, code);
}

export function endProcessNow(own: EndableProcess, code: number): void {
  if (threadsAreBusy(own)) own.kill();
  own.exit(code);
}
