import type { DeadlockStep } from '../domain/deadlock.ts';
import type { GatewayError } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import type { LeaseMode } from '../domain/lease.ts';
import type { Resource } from '../domain/resource.ts';

/**
 * What a coordinator does: it keeps the lines, decides by `decision.ts` who may hold, and mints the token with the decision.
 * It knows no sessions, no time to live, no journal: the desk above it makes a grant durable and only then tells anybody.
 */

/** One lease's contention. The coordinator calls back; calls happen inside the call that decided, or later (a remote one). */
export interface Claim {
  readonly leaseRef: string;
  readonly clientId: string | null;
  /** Whoever holds and waits as one: a session, or one token-less write. Cycles and inheritance go over these. */
  readonly party: object;
  /** In canonical order; taken one after the other, the earlier held while waiting for the later. */
  readonly resources: readonly Resource[];
  readonly priority: number;
  /** How long nobody is granted after an unclean end, ms. */
  readonly lockDelayMs: number;
  /** Grows with every claim: tells the youngest. */
  readonly createdOrder: number;
  /** The mode asked for, or held; changed by the coordinator when a conversion is decided. */
  mode: LeaseMode;
  /** Judged at this moment: a contender whose own lease is over is never granted. */
  isLive(): boolean;
  /** Called instead of a grant when `isLive` is false; must make the claim leave. */
  lapse(): void;
  /** Everything is taken (or the upgrade done) and the token minted. Nobody has been told. */
  granted(token: FencingToken): void;
  /** It stands in line, or asks to become exclusive, and nobody let it in. May be called again. */
  waits(): void;
  /** The claim has left, because a line was full further on. */
  refused(error: GatewayError): void;
  /** A third party took away what it holds in the coordinator: the lease is over, and must leave. */
  vanished(): void;
  /** Chosen to give way; must leave (a waiter) or give up its upgrade. */
  deadlocked(cycle: readonly DeadlockStep[]): void;
}

export interface WaitLink {
  readonly waiter: Claim;
  readonly blocker: Claim;
  readonly resource: Resource;
}

export interface ResourceLook<C extends Claim> {
  readonly resource: Resource;
  readonly holders: readonly C[];
  /** In the order in which they will be served; first a holder that asks to become exclusive. */
  waiters(): Iterable<C>;
  /** How many those are. */
  readonly queueLength: number;
  readonly upgrader: C | null;
  /** Whoever holds it alone; `null` for readers and when free. */
  readonly exclusiveHolder: C | null;
  /** Highest token granted here since the entry exists; `null` when only the journal knows. */
  readonly mark: FencingToken | null;
  /** The part of it that is durable, or leaves with the end that it was minted for: what a record may name. */
  readonly markTold: FencingToken | null;
  /** Nodes of other recipes, in the order in which they came, as of the last look. */
  readonly foreign: readonly string[];
  /** The grace of a break runs: nobody new is granted. */
  readonly closed: boolean;
  /** Nobody is granted before this moment (lock-delay); 0 when not held back. */
  readonly heldBackUntilMs: number;
}

export interface Coordinator<C extends Claim> {
  readonly kind: 'embedded' | 'zookeeper';
  /** Stands in line. May call `granted` or `refused` before it returns. */
  enter(claim: C): void;
  /** Gives up everything the claim holds and waits for. Idempotent. `holdBackMs`: lock-delay after an unclean end. */
  leave(claim: C, holdBackMs: number): void;
  /** Shared to exclusive: `granted` is called when every other holder is gone. False: somebody else upgrades already. */
  upgrade(claim: C): boolean;
  cancelUpgrade(claim: C): void;
  /** Exclusive to shared, in place, same token; readers in line come in. */
  downgrade(claim: C): void;
  /** Mints a token that nobody gets and raises the mark of every resource of the claim to it. */
  fence(claim: C): FencingToken | Promise<FencingToken>;
  /** The journal has what the claim was granted: the token is a mark that may be told. */
  tellMark(claim: C, token: FencingToken): void;
  /** While closed, nobody new is granted (grace period of a break). `untilMs`: wall clock, for whoever looks from elsewhere. */
  close(resource: Resource, untilMs: number): void;
  reopen(resource: Resource): void;
  look(resourceKey: string): ResourceLook<C> | null;
  /**
   * Resolves when `look` says what the coordinator itself says, and not only what this gateway last saw of it (R26).
   * @returns the nodes of other recipes there.
   */
  refresh(resource: Resource): Promise<readonly string[]>;
  /** Everything that is held or waited for, oldest first, after the entry `afterId`. */
  entries(afterId: number): Iterable<{ readonly id: number; readonly look: ResourceLook<C> }>;
  /** 1 = next; `null` when it does not wait. */
  position(claim: C): number | null;
  waitFor(limit: number): readonly WaitLink[];
  /** The node of a resource. */
  resourcePath(resource: Resource): string;
  /** Where this claim stands at the resource, the first of its own when left out, in the manner of a ZooKeeper path. */
  nodePath(claim: C, resource?: Resource): string;
  stop(): void;
}

/** A coordinator whose holders outlive a restart of the gateway. */
export interface SeatingCoordinator<C extends Claim> extends Coordinator<C> {
  /** Puts a lease from before a restart back as a holder. */
  seat(claim: C, token: FencingToken): void;
  holdBack(resource: Resource, delayMs: number): void;
}
