import type { Clock } from '../../domain/clock.ts';
import type { FencingToken } from '../../domain/fencing-token.ts';
import type { Resource } from '../../domain/resource.ts';
import type { Claim, ResourceLook, SeatingCoordinator, WaitLink } from '../coordinator.ts';
import { admit } from '../decision.ts';
import { queueFull } from '../lock-refusals.ts';
import { contenderPath, znodePath } from '../znode-path.ts';
import { DeadlockWatch } from './deadlock-watch.ts';
import { HoldBacks } from './hold-backs.ts';
import type { Mint } from './mint.ts';
import { downgraded, upgradeBegins, upgradeDone, upgradeGivenUp } from './mode-changes.ts';
import { Parties, type PartyPlaces } from './parties.ts';
import { inherit, rekeyWaits } from './priority-inheritance.ts';
import { type Contender, type Place, ResourceEntry } from './resource-entry.ts';

export interface EmbeddedCoordinatorOptions {
  readonly clock: Clock;
  readonly mint: Mint;
  /** How many may wait at one resource of the volume. */
  readonly queueMax: (volume: string) => number;
}

/** The coordinator of a single gateway: the lines in memory, tokens from one counter. */
export class EmbeddedCoordinator<C extends Claim> implements SeatingCoordinator<C> {
  readonly kind = 'embedded';
  readonly #options: EmbeddedCoordinatorOptions;
  readonly #entries = new Map<string, ResourceEntry<C>>();
  readonly #places = new Map<C, Place<C>>();
  readonly #parties = new Parties<C>();
  readonly #holdBacks: HoldBacks<C>;
  readonly #deadlocks: DeadlockWatch<C>;
  #entryCount = 0;

  constructor(options: EmbeddedCoordinatorOptions) {
    this.#options = options;
    this.#holdBacks = new HoldBacks(options.clock, (entry) => this.#decide(entry));
    this.#deadlocks = new DeadlockWatch({
      clock: options.clock,
      placesOf: (party) => this.#parties.find(party),
      entryOf: (key) => this.#entries.get(key),
    });
  }

  enter(claim: C): void {
    this.#places.set(claim, { taken: [], standing: null });
    this.#standNext(claim);
  }

  leave(claim: C, holdBackMs: number): void {
    const place = this.#places.get(claim);
    if (place === undefined) return;
    this.#places.delete(claim);
    const party = this.#parties.of(claim.party);
    party.upgrading.delete(claim);
    const touched = new Set<ResourceEntry<C>>();
    if (place.standing !== null) {
      touched.add(place.standing.entry);
      this.#unstand(place, party);
    }
    for (const entry of place.taken) {
      entry.unhold(claim);
      party.held.delete(entry);
      if (holdBackMs > 0) this.#holdBacks.set(entry, holdBackMs);
      touched.add(entry);
    }
    // What it kept waiting by this it keeps waiting no more: its other waits go back to their own priority.
    this.#inherit(this.#rekeyed(party));
    this.#parties.forgetIfIdle(claim.party);
    for (const entry of touched) this.#changed(entry);
  }

  upgrade(claim: C): boolean {
    const entries = claim.resources.map((resource) => this.#entry(resource));
    if (!upgradeBegins(this.#parties, claim, entries)) return false;
    for (const entry of entries) this.#decide(entry);
    if (entries.some((entry) => entry.upgrader === claim)) claim.waits();
    this.#inherit([...entries, ...this.#rekeyed(this.#parties.of(claim.party))]);
    this.#deadlocks.check(claim.party);
    return true;
  }

  cancelUpgrade(claim: C): void {
    for (const entry of upgradeGivenUp(this.#parties, claim, this.#places.get(claim)?.taken ?? [])) this.#changed(entry);
  }

  downgrade(claim: C): void {
    const taken = this.#places.get(claim)?.taken ?? [];
    if (downgraded(claim, taken)) for (const entry of taken) this.#changed(entry);
  }

  fence(claim: C): FencingToken {
    const token = this.#options.mint.next();
    for (const entry of this.#places.get(claim)?.taken ?? []) entry.fenced(token);
    return token;
  }

  tellMark(claim: C, token: FencingToken): void {
    for (const entry of this.#places.get(claim)?.taken ?? []) entry.tellMark(token);
  }

  close(resource: Resource): void {
    this.#entry(resource).closed = true;
  }

  reopen(resource: Resource): void {
    const entry = this.#entries.get(resource.key);
    if (entry === undefined) return;
    entry.closed = false;
    this.#decide(entry);
  }

  seat(claim: C, token: FencingToken): void {
    const place: Place<C> = { taken: [], standing: null };
    this.#places.set(claim, place);
    for (const resource of claim.resources) {
      const entry = this.#entry(resource);
      this.#take(claim, place, entry);
      entry.raiseMark(token);
      entry.tellMark(token);
    }
    this.#options.mint.raiseTo(token);
  }

  holdBack(resource: Resource, delayMs: number): void {
    this.#holdBacks.set(this.#entry(resource), delayMs);
  }

  look(resourceKey: string): ResourceLook<C> | null {
    return this.#entries.get(resourceKey) ?? null;
  }

  /** The line in memory is the authoritative state. */
  async refresh(): Promise<readonly string[]> {
    return [];
  }

  *entries(afterId: number): Generator<{ readonly id: number; readonly look: ResourceLook<C> }, void> {
    for (const entry of this.#entries.values()) if (entry.id > afterId) yield { id: entry.id, look: entry };
  }

  position(claim: C): number | null {
    const contender = this.#places.get(claim)?.standing ?? null;
    return contender === null ? null : contender.entry.placeOf(contender);
  }

  waitFor(limit: number): readonly WaitLink[] {
    return this.#deadlocks.allLinks(this.#entries.values(), limit);
  }

  resourcePath(resource: Resource): string {
    return znodePath(resource);
  }

  nodePath(claim: C, resource?: Resource): string {
    return contenderPath(resource === undefined ? claim.resources : [resource], claim.leaseRef);
  }

  stop(): void {
    for (const entry of this.#entries.values()) entry.holdBackTimer?.cancel();
  }

  #standNext(claim: C): void {
    const place = this.#places.get(claim);
    const resource = claim.resources[place?.taken.length ?? 0];
    if (place === undefined || resource === undefined) return;
    const entry = this.#entry(resource);
    const party = this.#parties.of(claim.party);
    const contender: Contender<C> = {
      claim,
      entry,
      mode: claim.mode,
      sequence: entry.nextSequence(),
      priority: claim.priority,
      next: null,
      previous: null,
    };
    place.standing = contender;
    entry.line.add(contender);
    party.waiting.add(contender);
    this.#decide(entry);
    if (place.standing !== contender) return;
    const max = this.#options.queueMax(resource.volume);
    if (entry.line.size > max) {
      this.leave(claim, 0);
      claim.refused(queueFull(resource, max));
      return;
    }
    claim.waits();
    this.#inherit([entry, ...this.#rekeyed(party)]);
    this.#deadlocks.check(claim.party);
  }

  /** Lets in whoever may hold now. Never nests: a change made by a callback asks for another turn. */
  #decide(entry: ResourceEntry<C>): void {
    if (entry.deciding) {
      entry.again = true;
      return;
    }
    entry.deciding = true;
    do {
      entry.again = false;
      this.#letIn(entry);
    } while (entry.again);
    entry.deciding = false;
    if (entry.idle && this.#entries.get(entry.resource.key) === entry) this.#entries.delete(entry.resource.key);
  }

  #letIn(entry: ResourceEntry<C>): void {
    if (entry.closed || entry.heldBackUntilMs > this.#options.clock.monotonicMs()) return;
    const { upgrade, admitted } = admit(entry.holding(), entry.line.inOrder());
    // One that was ended together with whom it waited for leaves next, as the reader it is.
    if (upgrade && entry.upgrader?.isLive() === true) this.#upgradeWhenAlone(entry.upgrader);
    const dead = admitted.filter(({ claim }) => !claim.isLive());
    if (dead.length > 0) {
      for (const { claim } of dead) {
        claim.lapse();
        this.leave(claim, 0);
      }
      entry.again = true;
      return;
    }
    for (const { claim } of admitted) {
      const place = this.#places.get(claim);
      if (place === undefined) continue;
      this.#unstand(place, this.#parties.of(claim.party));
      this.#take(claim, place, entry);
    }
    for (const { claim } of admitted) this.#goOn(claim);
    if (admitted.length === 0) return;
    // Whoever came in takes over from the line what it waits with elsewhere.
    const rekeyed = admitted.flatMap(({ claim }) => this.#rekeyed(this.#parties.of(claim.party)));
    this.#inherit([entry, ...rekeyed]);
  }

  /** The next resource of the claim, or the grant: minted here, in the order of grants, and the mark raised with it. */
  #goOn(claim: C): void {
    const place = this.#places.get(claim);
    if (place === undefined) return;
    if (place.taken.length < claim.resources.length) {
      this.#standNext(claim);
      return;
    }
    this.#grant(claim, place);
    if (this.#parties.of(claim.party).waiting.size > 0) this.#deadlocks.check(claim.party);
  }

  #grant(claim: C, place: Place<C>): void {
    const token = this.#options.mint.next();
    for (const entry of place.taken) entry.raiseMark(token);
    claim.granted(token);
  }

  #upgradeWhenAlone(claim: C): void {
    const place = this.#places.get(claim);
    if (place === undefined || place.taken.some((entry) => entry.holderCount > 1)) return;
    upgradeDone(this.#parties, claim, place.taken);
    this.#inherit(place.taken);
    this.#grant(claim, place);
  }

  #take(claim: C, place: Place<C>, entry: ResourceEntry<C>): void {
    entry.hold(claim);
    place.taken.push(entry);
    this.#parties.of(claim.party).held.add(entry);
  }

  #unstand(place: Place<C>, party: PartyPlaces<C>): void {
    const contender = place.standing;
    if (contender === null) return;
    contender.entry.line.remove(contender);
    party.waiting.delete(contender);
    place.standing = null;
  }

  #changed(entry: ResourceEntry<C>): void {
    this.#decide(entry);
    this.#inherit([entry]);
  }

  #inherit(changed: readonly ResourceEntry<C>[]): void {
    const partyOf = (party: object) => this.#parties.find(party);
    inherit(changed, partyOf, (entry) => this.#decide(entry));
  }

  #rekeyed(party: PartyPlaces<C>): readonly ResourceEntry<C>[] {
    return rekeyWaits(party, (entry) => this.#decide(entry));
  }

  #entry(resource: Resource): ResourceEntry<C> {
    const found = this.#entries.get(resource.key);
    if (found !== undefined) return found;
    const entry = new ResourceEntry<C>(++this.#entryCount, resource);
    this.#entries.set(resource.key, entry);
    return entry;
  }
}
