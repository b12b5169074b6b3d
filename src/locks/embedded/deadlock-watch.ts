import type { Clock } from '../../domain/clock.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Claim, WaitLink } from '../coordinator.ts';
import { conflict } from '../decision.ts';
import { compareOrder } from '../order-key.ts';
import { type CycleStep, chooseVictim, findCycle, type WaitEdge } from '../wait-for-graph.ts';
import type { PartyPlaces } from './parties.ts';
import type { Contender, ResourceEntry } from './resource-entry.ts';

export interface DeadlockWatchOptions<C extends Claim> {
  readonly clock: Clock;
  readonly placesOf: (party: object) => PartyPlaces<C> | undefined;
  readonly entryOf: (resourceKey: string) => ResourceEntry<C> | undefined;
}

/** Looks for cycles of waits whenever a wait begins, confirms them after a short while, and lets the least important give way (R19). */
export class DeadlockWatch<C extends Claim> {
  readonly #options: DeadlockWatchOptions<C>;
  readonly #confirming = new Set<object>();

  constructor(options: DeadlockWatchOptions<C>) {
    this.#options = options;
  }

  /** Cheap unless the party both waits and keeps others waiting: nobody else can be in a new cycle. */
  check(party: object): void {
    if (this.#confirming.has(party) || !this.#mayBeInCycle(party) || this.#cycle(party) === null) return;
    this.#confirming.add(party);
    this.#options.clock.after(LIMITS.deadlockConfirmMs, () => {
      this.#confirming.delete(party);
      const cycle = this.#cycle(party);
      if (cycle === null) return;
      const steps = cycle.map(({ wait }) => ({
        waiterLeaseRef: wait.claim.leaseRef,
        waiterClientId: wait.claim.clientId,
        resource: wait.entry.resource.name,
      }));
      chooseVictim(cycle.map(({ wait }) => wait.claim)).deadlocked(steps);
      // Another cycle may go through the same party.
      this.check(party);
    });
  }

  /** Every wait and what stands in its way, at most `limit`. */
  allLinks(entries: Iterable<ResourceEntry<C>>, limit: number): readonly WaitLink[] {
    const links: WaitLink[] = [];
    for (const entry of entries) {
      if (links.length >= limit) break;
      if (entry.queueLength > 0) links.push(...this.#links(entry, limit - links.length));
    }
    return links;
  }

  #links(entry: ResourceEntry<C>, limit: number): WaitLink[] {
    const links: WaitLink[] = [];
    const add = (waiter: C, blockers: Iterable<C>): void => {
      for (const blocker of blockers) {
        if (links.length >= limit) return;
        if (blocker.party !== waiter.party) links.push({ waiter, blocker, resource: entry.resource });
      }
    };
    if (entry.upgrader !== null) add(entry.upgrader, entry.eachHolder());
    for (const contender of entry.line.inOrder()) add(contender.claim, blockersOf(contender));
    return links;
  }

  #mayBeInCycle(party: object): boolean {
    const places = this.#options.placesOf(party);
    if (places === undefined || places.waiting.size + places.upgrading.size === 0) return false;
    return places.held.size > 0 || places.waiting.size > 1;
  }

  #cycle(party: object): readonly CycleStep<object, Wait<C>>[] | null {
    const walked = new Map<ResourceEntry<C>, Walked<C>>();
    return findCycle(party, (node) => this.#edges(node, walked), LIMITS.deadlockVisitsMax);
  }

  /** From a party to everybody it waits for. A line that was walked from further back has nothing new: it is not walked again. */
  *#edges(party: object, walked: Map<ResourceEntry<C>, Walked<C>>): Generator<WaitEdge<object, Wait<C>>, void> {
    const places = this.#options.placesOf(party);
    if (places === undefined) return;
    for (const claim of places.upgrading) {
      for (const { key } of claim.resources) {
        const entry = this.#options.entryOf(key);
        for (const holder of entry?.eachHolder() ?? []) {
          if (entry !== undefined && holder.party !== party) yield { to: holder.party, wait: { claim, entry } };
        }
      }
    }
    for (const contender of places.waiting) {
      const { claim, entry } = contender;
      if (alreadyWalked(contender, walked)) continue;
      for (const blocker of blockersOf(contender)) {
        if (blocker.party !== party) yield { to: blocker.party, wait: { claim, entry } };
      }
    }
  }
}

/** How far back a line was walked: from a writer everybody is seen, from a reader only the writers. */
interface Walked<C extends Claim> {
  exclusive: Contender<C> | null;
  shared: Contender<C> | null;
}

function alreadyWalked<C extends Claim>(contender: Contender<C>, walked: Map<ResourceEntry<C>, Walked<C>>): boolean {
  const before = walked.get(contender.entry) ?? { exclusive: null, shared: null };
  walked.set(contender.entry, before);
  if (before.exclusive !== null && compareOrder(contender, before.exclusive) <= 0) return true;
  if (contender.mode === 'shared' && before.shared !== null && compareOrder(contender, before.shared) <= 0) return true;
  before[contender.mode] = contender;
  return false;
}

interface Wait<C extends Claim> {
  readonly claim: C;
  readonly entry: ResourceEntry<C>;
}

/** All conflicting holders (any, while one of them upgrades) and earlier contenders. */
function* blockersOf<C extends Claim>(contender: Contender<C>): Generator<C, void> {
  const { entry, mode } = contender;
  for (const holder of entry.eachHolder()) {
    if (entry.upgrader === holder || conflict(mode, holder.mode)) yield holder;
  }
  for (const earlier of entry.line.inOrder()) {
    if (earlier === contender) return;
    if (conflict(mode, earlier.mode)) yield earlier.claim;
  }
}
