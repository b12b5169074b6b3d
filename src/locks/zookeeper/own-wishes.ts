import type { Clock } from '../../domain/clock.ts';
import type { Claim } from '../coordinator.ts';
import type { ResourceEntry } from '../embedded/resource-entry.ts';
import { unavailable } from './contact-refusals.ts';
import { LockDelay } from './lock-delay.ts';
import { NumberRequests } from './number-requests.ts';
import type { NextState, NodeState } from './resource-node.ts';
import type { Stand } from './stand.ts';
import { wantedState } from './wanted-state.ts';

/** What we want one node to say beyond grants: that ours left, whom we break, that a delay is over, and numbers that nobody gets. */
export class OwnWishes<C extends Claim> {
  readonly #entry: ResourceEntry<C>;
  readonly #stands: ReadonlyMap<string, Stand<C>>;
  readonly #numbers = new NumberRequests();
  readonly #delay: LockDelay;
  /** A break's grace period runs here until then, wall clock ms. */
  breakUntilMs: number | null = null;

  constructor(clock: Clock, entry: ResourceEntry<C>, stands: ReadonlyMap<string, Stand<C>>, onDelayOver: () => void) {
    this.#entry = entry;
    this.#stands = stands;
    this.#delay = new LockDelay(clock, entry, onDelayOver);
  }

  /** How many wait for a number. */
  get numbers(): number {
    return this.#numbers.count;
  }

  /** Nothing is wanted, nor will be when a time is up. */
  get none(): boolean {
    return this.#numbers.count === 0 && !this.#delay.running;
  }

  /** The number of the next change. */
  number(): Promise<bigint> {
    return this.#numbers.ask();
  }

  /** `null`: it says so already. */
  next(state: NodeState): NextState | null {
    const { upgrader } = this.#entry;
    const wishes = { stands: this.#stands, upgrader, delayOver: this.#delay.over, breakUntilMs: this.breakUntilMs };
    return wantedState(state, wishes) ?? (this.#numbers.count > 0 ? state : null);
  }

  /** @param asked how many had asked for a number when the change was sent. */
  changed(next: NextState, asked: number, mzxid: bigint): void {
    this.#numbers.answer(asked, mzxid);
    if (next.delay === null) this.#delay.cleared();
    else if (next.delay.untilMs === null) this.#delay.begin(next.delay.ms);
  }

  seen({ delay }: NodeState): void {
    if (delay === null) this.#delay.cleared();
  }

  heldBack({ delay }: NodeState): void {
    this.#delay.begin(delay?.ms ?? 0);
  }

  stop(): void {
    this.#delay.stop();
    this.#numbers.reject(unavailable());
  }
}
