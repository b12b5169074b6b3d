/**
 * Calls that threads of ours are inside of. The process has one such number, because it ends as a whole: `process.exit` waits for its threads,
 * and one inside a dead mount does not come back (trap X5).
 */
let inside = 0;

export function threadEntered(): void {
  inside += 1;
}

export function threadLeft(): void {
  inside -= 1;
}

/** In the form of `process.getActiveResourcesInfo`, which does not know them. */
export function threadsInside(): readonly string[] {
  return inside === 0 ? [] : [THREAD_CALL];
}

export const THREAD_CALL = 'ThreadCall';
