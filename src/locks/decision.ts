import type { LeaseMode } from '../domain/lease.ts';

/**
 * Who may hold now, and whom does each waiter watch: the one rule that every coordinator follows. Pure: no clock, no I/O.
 * Safety (R1, R6) rests on `admit`; that nobody sleeps for ever rests on `watched`.
 */

/** What the rule needs to know of the present holders. */
export interface Holding {
  readonly shared: number;
  readonly exclusive: number;
  /** One of the shared holders asks to become exclusive. It comes before everybody who waits. */
  readonly upgrading: boolean;
}

export interface Waiting {
  readonly mode: LeaseMode;
  /** Made by another recipe on the same node: nobody is granted past it, and we never grant it. */
  readonly foreign?: boolean;
}

export interface Decision<C> {
  /** The upgrading holder is alone and becomes exclusive. */
  readonly upgrade: boolean;
  /** In order; several only when all are readers. */
  readonly admitted: readonly C[];
}

export function conflict(a: LeaseMode, b: LeaseMode): boolean {
  return a === 'exclusive' || b === 'exclusive';
}

/** Summary of a list of holders, for coordinators that keep lists. */
export function holdingOf(holders: Iterable<{ readonly mode: LeaseMode; readonly upgrading?: boolean }>): Holding {
  let shared = 0;
  let exclusive = 0;
  let upgrading = false;
  for (const holder of holders) {
    if (holder.mode === 'shared') shared += 1;
    else exclusive += 1;
    upgrading ||= holder.upgrading === true;
  }
  return { shared, exclusive, upgrading };
}

/**
 * Who may hold beside `holding`. Reads no further down the line than the first contender that must wait, so the work does not
 * grow with the queue.
 * @param line contenders in the order of their keys, foreign ones included.
 */
export function admit<C extends Waiting>(holding: Holding, line: Iterable<C>): Decision<C> {
  if (holding.exclusive > 0) return { upgrade: false, admitted: [] };
  if (holding.upgrading) return { upgrade: holding.shared === 1, admitted: [] };
  const admitted: C[] = [];
  for (const contender of line) {
    if (contender.foreign === true) break;
    if (contender.mode === 'exclusive') {
      if (holding.shared === 0 && admitted.length === 0) admitted.push(contender);
      break;
    }
    admitted.push(contender);
  }
  return { upgrade: false, admitted };
}

export interface Standing extends Waiting {
  readonly upgrading?: boolean;
}

/**
 * Whom a waiter watches: the nearest one before it, in the order (holders, then line), that it cannot share with. A reader
 * therefore waits on a writer only, a writer on whoever is next before it; always someone earlier, so watches form no cycle.
 * @param holders in any fixed order.
 * @param earlier the contenders before it, in the order of their keys.
 */
export function watched<P extends Standing>(self: P, holders: readonly P[], earlier: readonly P[]): P | null {
  for (let i = earlier.length - 1; i >= 0; i -= 1) {
    const other = earlier[i];
    if (other !== undefined && (other.foreign === true || conflict(self.mode, other.mode))) return other;
  }
  for (let i = holders.length - 1; i >= 0; i -= 1) {
    const other = holders[i];
    if (other !== undefined && (other.upgrading === true || conflict(self.mode, other.mode))) return other;
  }
  return null;
}

/** Whom a holder that asks to become exclusive watches: any other holder. */
export function watchedByUpgrader<P>(self: P, holders: readonly P[]): P | null {
  return holders.findLast((holder) => holder !== self) ?? null;
}
