import { LIMITS } from '../../domain/limits.ts';
import type { Claim } from '../coordinator.ts';
import type { PartyPlaces } from './parties.ts';
import type { ResourceEntry } from './resource-entry.ts';

/**
 * An important waiter must not be stuck behind an unimportant holder that itself waits elsewhere: whoever waits while holding
 * waits with the highest priority among those it keeps waiting. Goes along chains, and back when the reason is gone.
 * @param changed entries whose lines or upgrades changed.
 * @param placesOf what a party holds and waits for.
 * @param rekeyed called for each entry whose line was put in another order.
 */
export function inherit<C extends Claim>(
  changed: readonly ResourceEntry<C>[],
  placesOf: (party: object) => PartyPlaces<C> | undefined,
  rekeyed: (entry: ResourceEntry<C>) => void,
): void {
  const work = [...changed];
  // A cycle of waits could pass a priority round and round; it settles after one round, and the bound ends anything else.
  for (let steps = 0; steps < LIMITS.inheritanceStepsMax; steps += 1) {
    const entry = work.pop();
    if (entry === undefined) return;
    const { inherited } = entry;
    const now = { line: entry.line.topPriority(), upgrade: entry.upgradePriority };
    if (now.line === inherited.line && now.upgrade === inherited.upgrade) continue;
    entry.inherited = now;
    for (const holder of entry.eachHolder()) {
      const places = placesOf(holder.party);
      if (places !== undefined) work.push(...rekeyWaits(places, rekeyed));
    }
  }
}

/** Gives every wait of one party the priority it has by now; returns the entries that changed. */
export function rekeyWaits<C extends Claim>(places: PartyPlaces<C>, rekeyed: (entry: ResourceEntry<C>) => void): ResourceEntry<C>[] {
  if (places.waiting.size + places.upgrading.size === 0) return [];
  const itUpgrades = ({ upgrader }: ResourceEntry<C>): boolean => upgrader !== null && places.upgrading.has(upgrader);
  let inherited = -1;
  for (const held of places.held) inherited = Math.max(inherited, held.priorityBehind(itUpgrades(held)));
  const changed: ResourceEntry<C>[] = [];
  for (const contender of places.waiting) {
    const priority = Math.max(contender.claim.priority, inherited);
    if (priority === contender.priority) continue;
    contender.entry.line.rekey(contender, priority);
    changed.push(contender.entry);
    rekeyed(contender.entry);
  }
  // An upgrade is before its line whatever its importance; but those whom it waits for have it, too.
  for (const held of places.held) {
    if (held.upgrader === null || !itUpgrades(held)) continue;
    const priority = Math.max(held.upgrader.priority, inherited);
    if (priority === held.upgraderPriority) continue;
    held.upgraderPriority = priority;
    changed.push(held);
  }
  return changed;
}
