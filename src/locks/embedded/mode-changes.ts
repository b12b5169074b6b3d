import type { Claim } from '../coordinator.ts';
import type { Parties } from './parties.ts';
import type { ResourceEntry } from './resource-entry.ts';

/** What a conversion changes in memory, whichever coordinator decides it. `entries`: everything that the claim has taken. */

/** False: somebody else upgrades already. */
export function upgradeBegins<C extends Claim>(parties: Parties<C>, claim: C, entries: readonly ResourceEntry<C>[]): boolean {
  if (entries.some(({ upgrader }) => upgrader !== null)) return false;
  parties.of(claim.party).upgrading.add(claim);
  for (const entry of entries) {
    entry.upgrader = claim;
    entry.upgraderPriority = claim.priority;
  }
  return true;
}

export function upgradeDone<C extends Claim>(parties: Parties<C>, claim: C, entries: readonly ResourceEntry<C>[]): void {
  claim.mode = 'exclusive';
  for (const entry of entries) {
    entry.upgrader = null;
    entry.converted('exclusive');
  }
  parties.of(claim.party).upgrading.delete(claim);
}

/** @returns those on which it had asked. */
export function upgradeGivenUp<C extends Claim>(parties: Parties<C>, claim: C, entries: readonly ResourceEntry<C>[]): readonly ResourceEntry<C>[] {
  parties.of(claim.party).upgrading.delete(claim);
  const asked = entries.filter(({ upgrader }) => upgrader === claim);
  for (const entry of asked) entry.upgrader = null;
  return asked;
}

/** False: it was a reader already. */
export function downgraded<C extends Claim>(claim: C, entries: readonly ResourceEntry<C>[]): boolean {
  if (claim.mode === 'shared') return false;
  claim.mode = 'shared';
  for (const entry of entries) entry.converted('shared');
  return true;
}
