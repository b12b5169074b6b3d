import type { Claim } from '../coordinator.ts';
import type { Contender, ResourceEntry } from './resource-entry.ts';

/** What one party (a session, or one token-less write) holds and waits for: the ground of inheritance and cycles. */
export interface PartyPlaces<C extends Claim> {
  readonly held: Set<ResourceEntry<C>>;
  readonly waiting: Set<Contender<C>>;
  readonly upgrading: Set<C>;
}

export class Parties<C extends Claim> {
  readonly #places = new Map<object, PartyPlaces<C>>();

  /** Made when it is not there. */
  of(party: object): PartyPlaces<C> {
    const found = this.#places.get(party);
    if (found !== undefined) return found;
    const places: PartyPlaces<C> = { held: new Set(), waiting: new Set(), upgrading: new Set() };
    this.#places.set(party, places);
    return places;
  }

  find(party: object): PartyPlaces<C> | undefined {
    return this.#places.get(party);
  }

  forgetIfIdle(party: object): void {
    const places = this.#places.get(party);
    if (places !== undefined && places.held.size + places.waiting.size + places.upgrading.size === 0) this.#places.delete(party);
  }
}
