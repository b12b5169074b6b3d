import { admit, holdingOf, type Standing, watched } from '../decision.ts';
import { byArrival, byOrder, type Child } from './lock-node.ts';
import type { HolderEntry, NextState, NodeState } from './resource-node.ts';

/**
 * What one look at a resource's node leads to. The look must be: `get` of the node first, `children` after it, on one connection;
 * a holder counts as gone only by a list that was read after the state that names it. In the other order two may hold (R1); the
 * exhaustive check in the tests finds it. Pure: no clock, no I/O.
 */
export interface Look {
  readonly state: NodeState;
  readonly children: readonly Child[];
  /** Names of the children that the reader may grant: its own contenders that wait, and its own holder that asks to become exclusive. */
  readonly own: ReadonlySet<string>;
}

export type Step =
  /** Holders whose child is gone ended uncleanly: they go first, and their lock-delay begins. */
  | { readonly kind: 'clear'; readonly gone: readonly HolderEntry[]; readonly next: NextState }
  | { readonly kind: 'delayed' }
  | { readonly kind: 'upgrade'; readonly holder: HolderEntry }
  | { readonly kind: 'grant'; readonly child: Child }
  /** Nothing to do until one of these children changes: whom each own contender watches. */
  | { readonly kind: 'wait'; readonly watches: ReadonlyMap<string, string> };

export function decide({ state, children, own }: Look): Step {
  const names = new Set(children.map(({ name }) => name));
  const gone = state.holders.filter(({ node }) => !names.has(node));
  if (gone.length > 0) return { kind: 'clear', gone, next: without(state, gone, false) };
  if (state.delay !== null) return { kind: 'delayed' };
  const upgrader = state.holders.find(({ lease }) => lease === state.upgrade) ?? null;
  const line = lineOf(state, children);
  // Somebody is being broken: until he is gone nobody is let in.
  const broken = state.holders.find(({ lease }) => state.breaks.some((entry) => entry.lease === lease)) ?? null;
  if (broken !== null) return { kind: 'wait', watches: watches(state, line, own, broken) };
  const { upgrade, admitted } = admit(holdingOf(state.holders.map((holder) => ({ ...holder, upgrading: holder === upgrader }))), line);
  // That of another gateway is its own to grant: ours wait for it.
  if (upgrade && upgrader !== null && own.has(upgrader.node)) return { kind: 'upgrade', holder: upgrader };
  const mine = admitted.find(({ child }) => own.has(child.name));
  if (mine !== undefined) return { kind: 'grant', child: mine.child };
  return { kind: 'wait', watches: watches(state, line, own) };
}

interface InLine extends Standing {
  readonly child: Child;
}

/** Contenders in the order in which they are served. Nobody passes a child of another recipe that came earlier. */
function lineOf(state: NodeState, children: readonly Child[]): readonly InLine[] {
  const holding = new Set(state.holders.map(({ node }) => node));
  const waiting = children.filter(({ name }) => !holding.has(name));
  const barrier = waiting.filter(({ contender }) => contender === null).sort(byArrival)[0] ?? null;
  const before = (child: Child): boolean => barrier === null || byArrival(child, barrier) < 0;
  const ours = waiting.filter(({ contender }) => contender !== null);
  const first = ours.filter(before).sort(byOrder);
  const later = ours.filter((child) => !before(child)).sort(byOrder);
  const others = waiting.filter(({ contender }) => contender === null).sort(byArrival);
  return [...first.map(standing), ...others.map(foreign), ...later.map(standing)];
}

function standing(child: Child): InLine {
  return { child, mode: child.contender?.mode ?? 'exclusive' };
}

function foreign(child: Child): InLine {
  return { child, mode: 'exclusive', foreign: true };
}

/** `barrier`: whom those wait for who could be let in beside all others. */
function watches(
  state: NodeState,
  line: readonly InLine[],
  own: ReadonlySet<string>,
  barrier: HolderEntry | null = null,
): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const holders = state.holders.map(({ node, mode, lease }) => ({ mode, upgrading: lease === state.upgrade, node }));
  for (const [i, self] of line.entries()) {
    if (!own.has(self.child.name)) continue;
    const target = watched<Standing & { readonly node?: string; readonly child?: Child }>(self, holders, line.slice(0, i));
    const name = target?.node ?? target?.child?.name ?? barrier?.node;
    if (name !== undefined) found.set(self.child.name, name);
  }
  return found;
}

/**
 * The state without these holders; the longest of their lock-delays begins with the `set` (its own mtime), a running one stays.
 * `clean`: their own gateway takes them out.
 */
export function without(state: NodeState, gone: readonly HolderEntry[], clean: boolean): NextState {
  const delayMs = Math.max(0, ...gone.map(({ lockDelayMs }) => lockDelayMs));
  const holders = state.holders.filter((holder) => !gone.includes(holder));
  const upgrade = holders.some(({ lease }) => lease === state.upgrade) ? state.upgrade : null;
  const breaks = state.breaks.filter(({ lease }) => holders.some((holder) => holder.lease === lease));
  return {
    holders,
    upgrade,
    breaks,
    clean: gone.length === 0 ? state.clean : clean,
    delay: delayMs > 0 ? { ms: Math.max(delayMs, state.delay?.ms ?? 0), untilMs: null } : state.delay,
  };
}
