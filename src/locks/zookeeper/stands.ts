import type { Claim } from '../coordinator.ts';
import { watchedByUpgrader } from '../decision.ts';
import type { ResourceEntry } from '../embedded/resource-entry.ts';
import { type Child, lineSequence, parseChild } from './lock-node.ts';
import type { NextState, NodeState } from './resource-node.ts';
import type { NodeLineHost, Stand } from './stand.ts';

/** Those whom the next decision may let in, by the name of their child. */
export function waitingByChild<C extends Claim>(stands: Iterable<Stand<C>>): ReadonlyMap<string, Stand<C>> {
  const waiting = new Map<string, Stand<C>>();
  for (const stand of stands) if (stand.phase === 'waiting' && stand.child !== null) waiting.set(stand.child.name, stand);
  return waiting;
}

/** Names of the children of those who hold. */
export function heldByChild<C extends Claim>(stands: Iterable<Stand<C>>): readonly string[] {
  return [...stands].flatMap(({ phase, child }) => (phase === 'holding' && child !== null ? [child.name] : []));
}

/** Those who stand in line, or are about to. */
export function queued<C extends Claim>(stands: Iterable<Stand<C>>): readonly Stand<C>[] {
  return [...stands].filter(({ phase }) => phase === 'joining' || phase === 'waiting');
}

/** 1 = next; who is about to join comes last. */
export function positionOf<C extends Claim>({ phase, contender }: Stand<C>): number {
  const { entry } = contender;
  return phase === 'waiting' ? entry.placeOf(contender) : entry.queueLength + 1;
}

/** Those whose child is to be made by the next look. */
export function childless<C extends Claim>(stands: Iterable<Stand<C>>): readonly Stand<C>[] {
  return [...stands].filter(({ phase, child }) => phase === 'joining' && child === null);
}

export function everyLeaves<C extends Claim>(stands: Iterable<Stand<C>>): boolean {
  return [...stands].every(({ phase }) => phase === 'leaving');
}

/** Those who left and hold nothing in the node: their children may go. */
export function leftWithout<C extends Claim>({ holders }: Pick<NextState, 'holders'>, stands: Iterable<Stand<C>>): readonly Stand<C>[] {
  return [...stands].filter(({ phase, claim }) => phase === 'leaving' && !names({ holders }, claim));
}

/** `state` is what was looked at: who asked since then is not judged by it. */
export function announce<C extends Claim>(
  host: Pick<NodeLineHost<C>, 'waits'>,
  { upgrader }: ResourceEntry<C>,
  state: NodeState,
  stands: Iterable<Stand<C>>,
): void {
  if (upgrader !== null && upgrader.leaseRef === state.upgrade) upgrader.waits();
  for (const stand of newlyWaiting(stands)) host.waits(stand);
}

/** Those of whom nobody was told yet that they wait; from now on they were. */
function newlyWaiting<C extends Claim>(stands: Iterable<Stand<C>>): readonly Stand<C>[] {
  const waiting = [...stands].filter(({ phase, announced }) => phase === 'waiting' && !announced);
  for (const stand of waiting) stand.announced = true;
  return waiting;
}

/** A holder of ours whose child somebody deleted stays in the node until its commit sections have left (I1). */
export function keptChildren<C extends Claim>({ holders }: NodeState, stands: ReadonlyMap<string, Stand<C>>): readonly Child[] {
  return holders.filter(({ lease }) => stands.get(lease)?.phase === 'gone').map(({ node }) => parseChild(node));
}

/** Whom our holder that asks to become exclusive watches: any other holder. */
export function upgraderTarget<C extends Claim>({ holders, upgrade }: NodeState, stands: ReadonlyMap<string, Stand<C>>): readonly string[] {
  const self = holders.find(({ lease }) => lease === upgrade);
  const target = self === undefined || !stands.has(self.lease) ? null : watchedByUpgrader(self, holders);
  return target === null ? [] : [target.node];
}

/** Whether the node says that the claim holds. */
function names({ holders }: Pick<NextState, 'holders'>, { leaseRef }: Claim): boolean {
  return holders.some(({ lease }) => lease === leaseRef);
}

/** New contenders take their place in line; `onGone` is told of those whose child somebody deleted, be it before anybody saw it. */
export function noteChildren<C extends Claim>(stands: Iterable<Stand<C>>, children: readonly Child[], onGone: (stand: Stand<C>) => void): void {
  const byName = new Map(children.map((child) => [child.name, child]));
  for (const stand of stands) {
    const known = stand.child === null ? undefined : byName.get(stand.child.name);
    if (known === undefined) {
      if (stand.child !== null) onGone(stand);
      continue;
    }
    stand.child = known;
    if (stand.phase !== 'joining') continue;
    stand.phase = 'waiting';
    stand.contender.sequence = lineSequence(known);
    stand.contender.entry.line.add(stand.contender);
  }
}
