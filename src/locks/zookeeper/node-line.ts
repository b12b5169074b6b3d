import { GatewayError } from '../../domain/errors.ts';
import type { Claim } from '../coordinator.ts';
import type { Contender, ResourceEntry } from '../embedded/resource-entry.ts';
import { ChildWatches } from './child-watches.ts';
import { Children } from './children.ts';
import { unavailable } from './contact-refusals.ts';
import type { KnownNodes } from './known-nodes.ts';
import { SEQUENCE_RENEW } from './lock-node.ts';
import { Looking } from './looking.ts';
import { foreignOf, type InspectedLine } from './node-inspection.ts';
import { isSpent, type View } from './node-look.ts';
import { OwnWishes } from './own-wishes.ts';
import { decide } from './protocol.ts';
import { FREE, type HolderEntry, isFree, type NextState, type Versioned } from './resource-node.ts';
import { type NodeLineHost, newStand, type Stand, standAnew } from './stand.ts';
import { announce, everyLeaves, heldByChild, keptChildren, leftWithout, noteChildren, queued, upgraderTarget, waitingByChild } from './stands.ts';
import { StepLoop } from './step-loop.ts';
import { type Granted, setGrant, setState, setUpgrade } from './version-checked.ts';
import { oweWeaker, tellWeaker } from './weaker.ts';

/**
 * Our claims at the node of one resource: looks, decides by `protocol.ts`, and changes the node by version-checked `set` (R1, R7).
 * After any unknown outcome the next look begins with `sync`.
 */
export class NodeLine<C extends Claim> implements InspectedLine {
  readonly entry: ResourceEntry<C>;
  readonly path: string;
  view: View | null = null;
  readonly #host: NodeLineHost<C>;
  readonly #known: KnownNodes;
  readonly #children: Children;
  readonly #stands = new Map<string, Stand<C>>();
  readonly #wishes: OwnWishes<C>;
  readonly #watches: ChildWatches;
  readonly #looking: Looking<C>;
  readonly #steps: StepLoop;
  readonly nudge = (): void => this.#steps.nudge();
  /** What the node had after our last grant, until somebody looks again. */
  #written: Versioned | null = null;

  constructor(host: NodeLineHost<C>, entry: ResourceEntry<C>, path: string, known: KnownNodes) {
    this.#host = host;
    this.entry = entry;
    this.path = path;
    this.#known = known;
    this.#children = new Children(host.client, path, known);
    this.#watches = new ChildWatches(host.client, path, (guid) => this.isStanding(guid));
    this.#wishes = new OwnWishes(host.clock, entry, this.#stands, this.nudge);
    const onlyGrants = (): boolean => this.#wishes.none;
    this.#looking = new Looking({ host, entry, path, known, children: this.#children, stands: this.#stands, onlyGrants, again: this.nudge });
    this.#steps = new StepLoop({
      clock: host.clock,
      step: () => this.#lookAndAct(),
      over: () => host.over(),
      onFailed: () => this.#looking.doubt(),
      refusal: () => host.refusal(),
      isNeeded: () => this.#stands.size > 0 || !this.#wishes.none,
      isAsked: () => this.queueing > 0,
      onRest: () => this.#rest(),
    });
  }

  join(claim: C, contender: Contender<C>): Stand<C> {
    const stand = newStand(claim, contender, this.#host.random);
    this.#stands.set(claim.leaseRef, stand);
    this.nudge();
    return stand;
  }

  /** From now on it holds nothing; the node follows in the background until that is certain (trap T17). */
  leave(stand: Stand<C>, holdBackMs: number): void {
    stand.phase = 'leaving';
    stand.holdBackMs = holdBackMs;
    this.nudge();
  }

  /** A break's grace period begins, or is over (`null`): the node says so, for whoever looks at it. */
  breaking(untilMs: number | null): void {
    this.#wishes.breakUntilMs = untilMs;
    this.entry.closed = untilMs !== null;
    this.nudge();
  }

  /** Mints a number that nobody gets. */
  fence(): Promise<bigint> {
    const minted = this.#wishes.number();
    this.nudge();
    return minted;
  }

  /** Resolves after a look that began with `sync` (R26). */
  refresh(): Promise<void> {
    this.#looking.doubt();
    return this.#steps.next();
  }

  stand(claim: C): Stand<C> | null {
    return this.#stands.get(claim.leaseRef) ?? null;
  }

  isStanding(guid: string): boolean {
    return [...this.#stands.values()].some((stand) => stand.guid === guid);
  }

  /** How many of ours stand in line, or are about to. */
  get queueing(): number {
    return queued(this.#stands.values()).length;
  }

  get idle(): boolean {
    return !this.#steps.running && this.#stands.size === 0 && this.#wishes.none && this.entry.idle;
  }

  /** A watch on a child fired. */
  changed(child: string): void {
    this.#watches.fired(child);
    this.nudge();
  }

  /** After a reconnect: replies may be missing. */
  distrust(): void {
    this.#looking.doubt();
    this.#watches.distrust();
    this.nudge();
  }

  stop(): void {
    this.#steps.refuse(unavailable());
    this.#wishes.stop();
  }

  #rest(): void {
    if (!this.idle) return;
    if (this.view !== null && isSpent(this.view) && !this.#host.over()) this.#children.forget(this.view.version);
    this.#host.idle(this);
  }

  async #lookAndAct(): Promise<void> {
    if (await this.#giveBack()) return;
    const view = await this.#looking.look().catch((thrown: unknown) => this.#unreadable(thrown));
    if (view === null) return this.nudge();
    if (view === 'no_node') return this.#nodeGone();
    this.view = view;
    this.entry.foreign = foreignOf(view.children);
    noteChildren(this.#stands.values(), view.children, (stand) => this.#childGone(stand));
    if (view.ahead !== 'refused') return this.#judgeAhead(view, view.ahead);
    await this.#adopt(view);
    this.#wishes.seen(view.state);
    const next = this.#wishes.next(view.state);
    if (next !== null) return this.#change(view, next);
    await tellWeaker(view.state, this.#stands.values(), this.#children);
    await this.#removeLeft(view.state);
    if (this.#host.mayGrant(this.entry)) await this.#decide(view);
    else if (!this.#looking.isJudged) announce(this.#host, this.entry, view.state, this.#stands.values());
  }

  /** All of ours leave, and the last change was ours: its version says whether the node still has what it wrote, so nobody need look. */
  async #giveBack(): Promise<boolean> {
    const last = this.#written;
    this.#written = null;
    if (last === null || this.#looking.inDoubt || this.#steps.awaited > 0 || !everyLeaves(this.#stands.values())) return false;
    const next = this.#wishes.next(last.state);
    if (next === null) return false;
    // Should the node refuse it, an entry without its child would hold others back for its lock-delay.
    const undelayed = last.state.holders.every(({ lockDelayMs }) => lockDelayMs === 0);
    await this.#change(last, next, undelayed ? [...this.#stands.values()] : []);
    return true;
  }

  /** Nobody of ours holds anything in what another program wrote; a child that stayed would keep the node from whoever is to remove it. */
  async #unreadable(thrown: unknown): Promise<never> {
    if (!(thrown instanceof GatewayError)) throw thrown;
    for (const stand of queued(this.#stands.values())) this.#host.refused(stand, thrown);
    await this.#removeLeft(FREE);
    throw thrown;
  }

  /** Nobody has anything there. It is made anew for whoever stands in line, or wants a number of it; for others there is nothing to do. */
  async #nodeGone(): Promise<void> {
    this.view = null;
    this.entry.foreign = [];
    this.#children.unknown();
    noteChildren(this.#stands.values(), [], (stand) => this.#childGone(stand));
    await this.#removeLeft(FREE);
    if (this.#wishes.numbers > 0) await this.#children.makeNode();
    if (this.#wishes.numbers > 0 || this.queueing > 0) this.nudge();
  }

  #childGone(stand: Stand<C>): void {
    if (stand.phase === 'holding') {
      stand.phase = 'gone';
      this.#host.deleted(stand);
    } else if (stand.phase === 'leaving') stand.child = null;
    else if (stand.phase !== 'gone') {
      if (stand.phase === 'waiting') this.entry.line.remove(stand.contender);
      standAnew(stand, this.#host.random);
      this.nudge();
    }
  }

  /** A grant of ours whose reply was lost, or came while nothing could be told: its number is in the node. */
  async #adopt(view: View): Promise<void> {
    for (const holder of view.state.holders) {
      const stand = this.#stands.get(holder.lease);
      if (stand === undefined || stand.child?.name !== holder.node) continue;
      if (stand.ahead && !(await this.#looking.isRightful(view, stand))) continue;
      if (!this.#host.mayGrant(this.entry)) return;
      if (stand.phase === 'waiting') this.#take(stand, holder.token);
      else if (stand.phase === 'holding' && holder.mode === 'exclusive' && this.entry.upgrader === stand.claim)
        this.#host.upgraded(this, stand, holder.token);
    }
  }

  async #judgeAhead(view: View, ahead: Granted | null): Promise<void> {
    const [stand] = this.#stands.values();
    const rightful = stand !== undefined && ahead !== null && (await this.#looking.isRightful(view, stand));
    this.#granted(stand, rightful ? ahead : null);
  }

  /** The node has it; whether it is taken depends on who is still there, and may be let in. */
  #granted(stand: Stand<C> | undefined, granted: Granted | null): void {
    if (stand?.phase === 'waiting' && granted !== null && this.#host.mayGrant(this.entry)) this.#take(stand, granted.mzxid);
    this.#written = granted?.now ?? null;
    if (stand?.phase !== 'holding' || this.#stands.size > 1) this.nudge();
  }

  #take(stand: Stand<C>, mzxid: bigint): void {
    stand.phase = 'holding';
    stand.ahead = false;
    stand.untold = false;
    this.entry.line.remove(stand.contender);
    this.entry.hold(stand.claim);
    this.#host.took(stand, mzxid);
  }

  /** @param leaving whose children are deleted right behind it. */
  async #change(view: Versioned, next: NextState, leaving: readonly Stand<C>[] = []): Promise<void> {
    const asked = this.#wishes.numbers;
    oweWeaker(view.state, next, this.#stands);
    const set = setState(this.#host.client, this.path, next, view.version);
    await Promise.allSettled([set, ...leaving.map((stand) => this.#children.leave(stand))]);
    const stat = await set;
    if (stat === null) return this.nudge();
    this.#wishes.changed(next, asked, stat.mzxid);
    if (isFree(next) && this.entry.foreign.length === 0) this.#known.leftFree(this.path, stat);
    await tellWeaker(next, this.#stands.values(), this.#children);
    await this.#removeLeft(next);
    this.#goOn();
  }

  /** Unless nobody of ours needs one: whoever comes next looks anyway. */
  #goOn(): void {
    if (this.#stands.size > 0 || this.#wishes.numbers > 0 || (this.view?.cversion ?? 0) > SEQUENCE_RENEW) this.nudge();
  }

  /** Deletes the children of those who left and hold nothing in the node. */
  async #removeLeft(state: Pick<NextState, 'holders'>): Promise<void> {
    const left = leftWithout(state, this.#stands.values());
    await Promise.all(left.map((stand) => this.#children.leave(stand)));
    for (const { claim } of left) this.#stands.delete(claim.leaseRef);
    if (left.length > 0) this.#goOn();
  }

  async #decide(view: View): Promise<void> {
    const { state } = view;
    const own = waitingByChild(this.#stands.values());
    const children = [...view.children, ...keptChildren(state, this.#stands)];
    const step = decide({ state, children, own: new Set([...own.keys(), ...heldByChild(this.#stands.values())]) });
    if (step.kind === 'clear') await this.#change(view, step.next);
    else if (step.kind === 'delayed') this.#wishes.heldBack(state);
    else if ((step.kind === 'upgrade' || step.kind === 'grant') && !(await this.#looking.isCleared(view))) return;
    else if (step.kind === 'upgrade') await this.#upgrade(view, step.holder);
    else if (step.kind === 'grant') await this.#grant(view, own.get(step.child.name));
    else if (await this.#watches.watch(new Set([...step.watches.values(), ...upgraderTarget(state, this.#stands)]))) this.nudge();
    if (step.kind === 'delayed' || step.kind === 'wait') announce(this.#host, this.entry, state, this.#stands.values());
  }

  async #grant(view: View, stand: Stand<C> | undefined): Promise<void> {
    if (stand === undefined || !stand.claim.isLive()) {
      this.nudge();
      if (stand !== undefined) this.#host.lapsed(stand);
      return;
    }
    const made = stand.child === null ? null : await setGrant(this.#host.client, this.path, view, stand, stand.child.name);
    this.#granted(stand, made === 'refused' ? null : made);
  }

  async #upgrade(view: View, holder: HolderEntry): Promise<void> {
    const stand = this.#stands.get(holder.lease);
    if (stand === undefined || stand.phase !== 'holding' || this.entry.upgrader !== stand.claim) return;
    this.nudge();
    const mzxid = await setUpgrade(this.#host.client, this.path, view, holder);
    if (mzxid === null) return;
    // Whoever watches it wakes: its mode has changed.
    await this.#children.touch(stand);
    if (stand.phase === 'holding' && this.entry.upgrader === stand.claim) this.#host.upgraded(this, stand, mzxid);
  }
}
