import type { Claim } from '../coordinator.ts';
import { without } from './protocol.ts';
import type { BreakEntry, HolderEntry, NextState, NodeState } from './resource-node.ts';
import type { Stand } from './stand.ts';

export interface Wishes<C extends Claim> {
  /** By lease. */
  readonly stands: ReadonlyMap<string, Stand<C>>;
  readonly upgrader: C | null;
  /** The lock-delay has been waited out. */
  readonly delayOver: boolean;
  /** A break's grace period runs here until then, wall clock ms. */
  readonly breakUntilMs: number | null;
}

/** What our own claims want the node to say: who left or was let in by nobody, who became a reader, who asks to become the writer, who is being broken. `null`: it says so. */
export function wantedState<C extends Claim>(state: NodeState, wishes: Wishes<C>): NextState | null {
  const { stands, upgrader, delayOver } = wishes;
  const left = state.holders.filter(({ lease }) => mustGo(stands.get(lease)));
  const asTheyEnded = left.map((holder) => ({ ...holder, lockDelayMs: stands.get(holder.lease)?.holdBackMs ?? 0 }));
  const rest = without(state, asTheyEnded, true);
  const delay = delayOver ? null : rest.delay;
  const holders = state.holders.filter((holder) => !left.includes(holder)).map((holder) => asWanted(holder, stands, upgrader));
  const ours = state.upgrade !== null && stands.has(state.upgrade);
  const asked = upgrader !== null && upgrader.mode === 'shared' ? upgrader.leaseRef : ours ? null : state.upgrade;
  const upgrade = holders.some(({ lease, mode }) => lease === asked && mode === 'shared') ? asked : null;
  const breaks = asBroken(rest, wishes);
  const same =
    left.length === 0 &&
    upgrade === state.upgrade &&
    delay === state.delay &&
    sameBreaks(breaks, state.breaks) &&
    holders.every((holder, i) => holder === state.holders[i]);
  return same ? null : { holders, upgrade, delay, breaks, clean: rest.clean };
}

function mustGo<C extends Claim>(stand: Stand<C> | undefined): boolean {
  return stand?.phase === 'leaving' || stand?.ahead === true;
}

/** Those of other gateways stay as they are: their homes end them. */
function asBroken<C extends Claim>({ holders, breaks }: NextState, { stands, breakUntilMs }: Wishes<C>): readonly BreakEntry[] {
  const others = breaks.filter(({ lease }) => !stands.has(lease));
  if (breakUntilMs === null) return others;
  const ours = holders.filter(({ lease }) => stands.get(lease)?.phase === 'holding');
  return [...others, ...ours.map(({ lease }) => ({ lease, untilMs: breakUntilMs }))];
}

function sameBreaks(one: readonly BreakEntry[], other: readonly BreakEntry[]): boolean {
  return one.length === other.length && one.every(({ lease, untilMs }) => other.some((entry) => entry.lease === lease && entry.untilMs === untilMs));
}

/** In place, with its number: a downgrade, or an upgrade that was given up after this node had it. */
function asWanted<C extends Claim>(holder: HolderEntry, stands: ReadonlyMap<string, Stand<C>>, upgrader: C | null): HolderEntry {
  const claim = stands.get(holder.lease)?.claim;
  if (claim === undefined || holder.mode === 'shared' || claim.mode === 'exclusive' || claim === upgrader) return holder;
  return { ...holder, mode: 'shared' };
}
