import type { CoordinatorNode } from '../../domain/administration.ts';
import type { GatewayError } from '../../domain/errors.ts';
import { type FencingToken, fencingToken } from '../../domain/fencing-token.ts';
import type { Resource } from '../../domain/resource.ts';
import type { Claim, Coordinator, ResourceLook, WaitLink } from '../coordinator.ts';
import { DeadlockWatch } from '../embedded/deadlock-watch.ts';
import { downgraded, upgradeBegins, upgradeDone, upgradeGivenUp } from '../embedded/mode-changes.ts';
import { Parties } from '../embedded/parties.ts';
import type { Contender, ResourceEntry } from '../embedded/resource-entry.ts';
import { queueFull } from '../lock-refusals.ts';
import { contenderPath, znodePath } from '../znode-path.ts';
import { notOwned, suspended, unavailable } from './contact-refusals.ts';
import { foreignAt, inspectNodes, removeOrphan } from './node-inspection.ts';
import type { NodeLine } from './node-line.ts';
import { NodeLines } from './node-lines.ts';
import type { Place, ZkEpoch, ZookeeperCoordinatorOptions } from './place.ts';
import type { NodeLineHost, Stand } from './stand.ts';
import { positionOf } from './stands.ts';

/**
 * The coordinator over an ensemble: what it says is what the nodes say (R7). The lines in memory are a copy for people, for the
 * search for cycles, and to know whom to tell; who holds is decided at the node, by `NodeLine`.
 */
export class ZookeeperCoordinator<C extends Claim> implements Coordinator<C> {
  readonly kind = 'zookeeper';
  readonly #options: ZookeeperCoordinatorOptions;
  readonly #lines: NodeLines<C>;
  readonly #places = new Map<C, Place<C>>();
  readonly #parties = new Parties<C>();
  readonly #deadlocks: DeadlockWatch<C>;
  #epoch: ZkEpoch | null = null;

  constructor(options: ZookeeperCoordinatorOptions) {
    this.#options = options;
    this.#lines = new NodeLines(options.root);
    this.#deadlocks = new DeadlockWatch({
      clock: options.clock,
      placesOf: (party) => this.#parties.find(party),
      entryOf: (key) => this.#lines.get(key)?.entry,
    });
  }

  /** A fresh session: from now on grants are made through it. Nothing of an earlier one may be held any more. */
  begin(epoch: ZkEpoch): void {
    this.#epoch = epoch;
    epoch.client.onWatch((path) => {
      if (this.#epoch === epoch) this.#watchFired(path);
    });
  }

  /** The session is lost: nothing is sent any more. Every claim must leave; `begin` starts anew. */
  end(): void {
    this.#epoch = null;
    this.#lines.stop();
  }

  /** In contact again: what was held up goes on, beginning with a look at what the nodes say by now. */
  resume(): void {
    for (const line of this.#lines.all()) line.distrust();
  }

  enter(claim: C): void {
    this.#places.set(claim, { taken: [], standing: null, upgraded: new Set(), upgradeToken: 0n });
    this.#standNext(claim);
  }

  leave(claim: C, holdBackMs: number): void {
    const place = this.#places.get(claim);
    if (place === undefined) return;
    this.#places.delete(claim);
    const party = this.#parties.of(claim.party);
    party.upgrading.delete(claim);
    for (const line of place.standing === null ? place.taken : [...place.taken, place.standing]) {
      const stand = line.stand(claim);
      if (line === place.standing && stand?.phase === 'waiting') line.entry.line.remove(stand.contender);
      if (stand !== null) party.waiting.delete(stand.contender);
      party.held.delete(line.entry);
      line.entry.unhold(claim);
      if (stand !== null) line.leave(stand, line === place.standing ? 0 : holdBackMs);
    }
    this.#parties.forgetIfIdle(claim.party);
  }

  upgrade(claim: C): boolean {
    this.#assertUsable();
    const lines = this.#places.get(claim)?.taken ?? [];
    if (!upgradeBegins(this.#parties, claim, entriesOf(lines))) return false;
    for (const line of lines) line.nudge();
    this.#deadlocks.check(claim.party);
    return true;
  }

  cancelUpgrade(claim: C): void {
    const place = this.#places.get(claim);
    upgradeGivenUp(this.#parties, claim, entriesOf(place?.taken ?? []));
    if (place === undefined) return;
    place.upgraded.clear();
    place.upgradeToken = 0n;
    for (const line of place.taken) line.nudge();
  }

  downgrade(claim: C): void {
    const lines = this.#places.get(claim)?.taken ?? [];
    if (downgraded(claim, entriesOf(lines))) for (const line of lines) line.nudge();
  }

  async fence(claim: C): Promise<FencingToken> {
    const taken = this.#lines.present(this.#places.get(claim)?.taken ?? []);
    const [first] = taken;
    if (first === undefined) throw unavailable();
    const token = this.#token(await first.fence());
    for (const { entry } of taken) entry.fenced(token);
    return token;
  }

  tellMark(claim: C, token: FencingToken): void {
    for (const { entry } of this.#places.get(claim)?.taken ?? []) entry.tellMark(token);
  }

  close(resource: Resource, untilMs: number): void {
    this.#line(resource).breaking(untilMs);
  }

  reopen(resource: Resource): void {
    this.#lines.get(resource.key)?.breaking(null);
  }

  look(resourceKey: string): ResourceLook<C> | null {
    return this.#lines.get(resourceKey)?.entry ?? null;
  }

  async refresh(resource: Resource): Promise<readonly string[]> {
    this.#assertUsable();
    // Who holds there is known to whoever has the volume.
    if (this.#epoch?.titles.keeps(resource.volume) !== true) throw notOwned(resource.volume);
    const line = this.#lines.get(resource.key);
    await line?.refresh();
    // Else nobody of ours stands there.
    return line?.entry.foreign ?? (this.#epoch === null ? [] : foreignAt(this.#epoch.client, this.resourcePath(resource)));
  }

  *entries(afterId: number): Generator<{ readonly id: number; readonly look: ResourceLook<C> }, void> {
    for (const { entry } of this.#lines.all()) if (entry.id > afterId) yield { id: entry.id, look: entry };
  }

  async nodes(limit: number): Promise<readonly CoordinatorNode[]> {
    return this.#epoch?.usable() === true ? inspectNodes(this.#epoch.client, this.#lines.all().slice(0, limit)) : [];
  }

  async removeOrphan({ resource, node }: CoordinatorNode): Promise<boolean> {
    this.#assertUsable();
    const line = this.#lines.get(resource.key);
    if (line === undefined || this.#epoch === null) return false;
    const removed = await removeOrphan(this.#epoch.client, line, node);
    line.nudge();
    return removed;
  }

  resourcePath(resource: Resource): string {
    return znodePath(resource, this.#options.root);
  }

  position(claim: C): number | null {
    const stand = this.#places.get(claim)?.standing?.stand(claim) ?? null;
    return stand === null ? null : positionOf(stand);
  }

  waitFor(limit: number): readonly WaitLink[] {
    return this.#deadlocks.allLinks(entriesOf(this.#lines.all()), limit);
  }

  nodePath(claim: C, resource = claim.resources[0]): string {
    const line = resource === undefined ? undefined : this.#lines.get(resource.key);
    const name = line?.stand(claim)?.child?.name;
    if (line !== undefined && name !== undefined) return `${line.path}/${name}`;
    return contenderPath(resource === undefined ? [] : [resource], claim.leaseRef, this.#options.root);
  }

  stop(): void {
    this.end();
  }

  /** Throws `coordinator_suspended`, `coordinator_unavailable`. */
  #assertUsable(): void {
    if (this.#epoch === null) throw unavailable();
    if (!this.#epoch.usable()) throw suspended();
  }

  #standNext(claim: C): void {
    const place = this.#places.get(claim);
    const resource = claim.resources[place?.taken.length ?? 0];
    if (place === undefined || resource === undefined) return;
    const refusal = this.#refusalOn(resource);
    if (refusal !== null) {
      this.#refuse(claim, refusal);
      return;
    }
    const line = this.#line(resource);
    const contender: Contender<C> = { claim, entry: line.entry, mode: claim.mode, sequence: 0, priority: claim.priority, next: null, previous: null };
    place.standing = line;
    line.join(claim, contender);
  }

  #refuse(claim: C, refusal: GatewayError): void {
    this.leave(claim, 0);
    claim.refused(refusal);
  }

  #refusalOn(resource: Resource): GatewayError | null {
    if (this.#epoch === null) return unavailable();
    if (!this.#epoch.usable()) return suspended();
    if (!this.#epoch.titles.keeps(resource.volume)) return notOwned(resource.volume);
    const { queueing, entry } = this.#line(resource);
    const max = this.#options.queueMax(resource.volume);
    // Before the child is made: long lists break the client.
    return queueing + entry.foreign.length >= max + (entry.holderCount === 0 ? 1 : 0) ? queueFull(resource, max) : null;
  }

  #host(epoch: ZkEpoch): NodeLineHost<C> {
    const { clock, random } = this.#options;
    return {
      clock,
      random,
      client: epoch.client,
      over: () => this.#epoch !== epoch,
      refusal: () => (epoch.usable() ? null : suspended()),
      mayGrant: (entry) => this.#epoch === epoch && epoch.usable() && !entry.closed && epoch.titles.owns(entry.resource.volume),
      titles: epoch.titles,
      took: (stand, mzxid) => this.#took(stand, mzxid),
      upgraded: (line, stand, mzxid) => this.#upgraded(line, stand, mzxid),
      waits: (stand) => this.#waits(stand),
      lapsed: ({ claim }) => {
        claim.lapse();
        this.leave(claim, 0);
      },
      refused: ({ claim }, refusal) => this.#refuse(claim, refusal),
      deleted: ({ claim }) => claim.vanished(),
      idle: (line) => this.#lines.drop(line),
    };
  }

  #waits({ claim, contender }: Stand<C>): void {
    this.#parties.of(claim.party).waiting.add(contender);
    claim.waits();
    this.#deadlocks.check(claim.party);
  }

  #took({ claim, contender }: Stand<C>, mzxid: bigint): void {
    const place = this.#places.get(claim);
    if (place === undefined || place.standing === null) return;
    const party = this.#parties.of(claim.party);
    party.waiting.delete(contender);
    party.held.add(place.standing.entry);
    place.taken.push(place.standing);
    place.standing = null;
    if (place.taken.length < claim.resources.length) {
      this.#standNext(claim);
      return;
    }
    // The number of the last resource; every earlier one is raised to it before anybody is told.
    this.#grant(claim, place, mzxid);
  }

  #upgraded(line: NodeLine<C>, { claim }: Stand<C>, mzxid: bigint): void {
    const place = this.#places.get(claim);
    if (place === undefined) return;
    place.upgraded.add(line);
    if (mzxid > place.upgradeToken) place.upgradeToken = mzxid;
    if (place.upgraded.size < place.taken.length) return;
    const minted = place.upgradeToken;
    place.upgraded.clear();
    place.upgradeToken = 0n;
    upgradeDone(this.#parties, claim, entriesOf(place.taken));
    this.#grant(claim, place, minted);
  }

  #grant(claim: C, place: Place<C>, mzxid: bigint): void {
    for (const { entry } of place.taken) entry.raiseMark(this.#token(mzxid));
    claim.granted(this.#token(mzxid));
  }

  #token(mzxid: bigint): FencingToken {
    return fencingToken((this.#epoch?.base() ?? 0n) + mzxid);
  }

  #watchFired(path: string): void {
    const slash = path.lastIndexOf('/');
    this.#lines.at(path.slice(0, slash))?.changed(path.slice(slash + 1));
  }

  #line(resource: Resource): NodeLine<C> {
    if (this.#epoch === null) throw unavailable();
    return this.#lines.get(resource.key) ?? this.#lines.make(this.#host(this.#epoch), resource);
  }
}

function entriesOf<C extends Claim>(lines: readonly NodeLine<C>[]): readonly ResourceEntry<C>[] {
  return lines.map(({ entry }) => entry);
}
