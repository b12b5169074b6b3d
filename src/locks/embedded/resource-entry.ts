import type { Timer } from '../../domain/clock.ts';
import type { FencingToken } from '../../domain/fencing-token.ts';
import type { LeaseMode } from '../../domain/lease.ts';
import type { Resource } from '../../domain/resource.ts';
import type { Claim, ResourceLook } from '../coordinator.ts';
import type { Holding } from '../decision.ts';
import { ContenderLine, type Queued } from './contender-line.ts';

/** A claim in the line of one resource. */
export interface Contender<C extends Claim> extends Queued<Contender<C>> {
  readonly claim: C;
  readonly entry: ResourceEntry<C>;
  readonly mode: LeaseMode;
}

/** Holders and line of one resource; exists only while somebody holds, waits or is held back (R8: a million idle resources cost nothing). */
export class ResourceEntry<C extends Claim> implements ResourceLook<C> {
  readonly id: number;
  readonly resource: Resource;
  readonly line = new ContenderLine<Contender<C>>();
  readonly #holders = new Set<C>();
  #exclusive = 0;
  #sequence = 0;
  upgrader: C | null = null;
  /** The priority in force with which it waits for the other holders: its own, or one that it inherited. */
  upgraderPriority = -1;
  mark: FencingToken | null = null;
  markTold: FencingToken | null = null;
  foreign: readonly string[] = [];
  heldBackUntilMs = 0;
  holdBackTimer: Timer | null = null;
  closed = false;
  /** The priorities that its holders have inherited from its line, and all but the upgrader from that one; -1: none. */
  inherited = { line: -1, upgrade: -1 };
  /** Set while the entry is being decided: a change from inside asks for another turn instead of nesting. */
  deciding = false;
  again = false;

  constructor(id: number, resource: Resource) {
    this.id = id;
    this.resource = resource;
  }

  get holders(): readonly C[] {
    return [...this.#holders];
  }

  get exclusiveHolder(): C | null {
    if (this.#exclusive === 0) return null;
    for (const holder of this.#holders) return holder;
    return null;
  }

  get holderCount(): number {
    return this.#holders.size;
  }

  eachHolder(): Iterable<C> {
    return this.#holders;
  }

  /** The highest priority of those whom a holder keeps waiting; -1: nobody. Who asks to become exclusive waits for all others, not for itself. */
  priorityBehind(itUpgrades: boolean): number {
    return Math.max(this.line.topPriority(), itUpgrades ? -1 : this.upgradePriority);
  }

  get upgradePriority(): number {
    return this.upgrader === null ? -1 : this.upgraderPriority;
  }

  /** Who asks to become exclusive waits like everybody in the line, and before them. */
  get queueLength(): number {
    return this.line.size + (this.upgrader === null ? 0 : 1);
  }

  *waiters(): Generator<C, void> {
    if (this.upgrader !== null) yield this.upgrader;
    for (const contender of this.line.inOrder()) yield contender.claim;
  }

  /** 1 = next. The contender is in the line. */
  placeOf(contender: Contender<C>): number {
    return this.line.countBefore(contender) + (this.upgrader === null ? 1 : 2);
  }

  holding(): Holding {
    return { shared: this.#holders.size - this.#exclusive, exclusive: this.#exclusive, upgrading: this.upgrader !== null };
  }

  nextSequence(): number {
    this.#sequence += 1;
    return this.#sequence;
  }

  hold(claim: C): void {
    this.#holders.add(claim);
    if (claim.mode === 'exclusive') this.#exclusive += 1;
  }

  /** False when it did not hold. */
  unhold(claim: C): boolean {
    if (!this.#holders.delete(claim)) return false;
    if (claim.mode === 'exclusive') this.#exclusive -= 1;
    if (this.upgrader === claim) this.upgrader = null;
    return true;
  }

  /** Called beside the change of `claim.mode`. */
  converted(to: LeaseMode): void {
    this.#exclusive += to === 'exclusive' ? 1 : -1;
  }

  raiseMark(token: FencingToken): void {
    if (this.mark === null || token > this.mark) this.mark = token;
  }

  tellMark(token: FencingToken): void {
    if (this.markTold === null || token > this.markTold) this.markTold = token;
  }

  /** Nobody gets the token, and it leaves with the end that it was minted for. */
  fenced(token: FencingToken): void {
    this.raiseMark(token);
    this.tellMark(token);
  }

  get idle(): boolean {
    return this.#holders.size === 0 && this.line.size === 0 && this.holdBackTimer === null && !this.closed;
  }
}

/** Where one claim stands: how many of its resources it has taken, and the line it is in for the next. */
export interface Place<C extends Claim> {
  readonly taken: ResourceEntry<C>[];
  standing: Contender<C> | null;
}
