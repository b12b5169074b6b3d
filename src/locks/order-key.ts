/**
 * The order in which contenders are served. The key is fixed when a contender arrives, so nobody's place depends on how long
 * somebody else has waited, and a more important contender passes at most `PASS_PER_STEP` others per step of priority.
 */

export const PRIORITY_MAX = 9;
export const PRIORITY_DEFAULT = 5;
/** How many places one step of priority is worth: the bound on being passed. */
export const PASS_PER_STEP = 16;

export interface Ordered {
  /** Counts arrivals at one resource. */
  readonly sequence: number;
  /** 0 (least important) to 9. */
  readonly priority: number;
}

export function orderKey(sequence: number, priority: number): number {
  return sequence + PASS_PER_STEP * (PRIORITY_MAX - priority);
}

/** Negative when `a` is served before `b`. Equal keys: who came first. */
export function compareOrder(a: Ordered, b: Ordered): number {
  return orderKey(a.sequence, a.priority) - orderKey(b.sequence, b.priority) || a.sequence - b.sequence;
}
