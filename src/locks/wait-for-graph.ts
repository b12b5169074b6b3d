/**
 * The graph of who waits for whom, and what to do about a cycle in it. Pure; the nodes are parties (sessions), the edges are
 * waits, given by a function so that only the part that is looked at is ever built.
 */

export interface WaitEdge<N, W> {
  readonly to: N;
  /** What the waiting party waits with: the answer to "which of its waits must end to break the cycle". */
  readonly wait: W;
}

export interface CycleStep<N, W> {
  readonly from: N;
  readonly to: N;
  readonly wait: W;
}

/**
 * Looks for the shortest cycle through `start`: breadth first, every node once. The shortest, because everybody in it is needed
 * for the deadlock, so that no bystander in a line is made to give way.
 * @param visitsMax how many nodes are looked at; beyond it the answer is `null` and wait limits end a deadlock instead.
 */
export function findCycle<N, W>(start: N, edges: (node: N) => Iterable<WaitEdge<N, W>>, visitsMax: number): readonly CycleStep<N, W>[] | null {
  const reachedBy = new Map<N, CycleStep<N, W>>();
  const queue: N[] = [start];
  for (let i = 0; i < queue.length && i < visitsMax; i += 1) {
    const from = queue[i] as N;
    for (const { to, wait } of edges(from)) {
      const step = { from, to, wait };
      if (to === start) return pathTo(step, reachedBy);
      if (reachedBy.has(to)) continue;
      reachedBy.set(to, step);
      queue.push(to);
    }
  }
  return null;
}

function pathTo<N, W>(last: CycleStep<N, W>, reachedBy: ReadonlyMap<N, CycleStep<N, W>>): CycleStep<N, W>[] {
  const path = [last];
  for (let step = reachedBy.get(last.from); step !== undefined; step = reachedBy.get(step.from)) path.push(step);
  return path.reverse();
}

export interface Victim {
  readonly priority: number;
  /** Grows with time: the youngest has the highest. */
  readonly createdOrder: number;
}

/** Who gives way: the least important, among equals the youngest. Throws `RangeError` on an empty list. */
export function chooseVictim<V extends Victim>(waits: readonly V[]): V {
  let chosen = waits[0];
  if (chosen === undefined) throw new RangeError('a cycle has at least one wait');
  for (const wait of waits) {
    if (wait.priority < chosen.priority || (wait.priority === chosen.priority && wait.createdOrder > chosen.createdOrder)) chosen = wait;
  }
  return chosen;
}
