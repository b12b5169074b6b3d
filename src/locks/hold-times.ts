/** One who holds now. */
export interface HoldSoFar {
  readonly heldMs: number;
  /** It ends by then, ms from now, whatever its holder does; infinite for no such end. */
  readonly atMostMs: number;
}

/** How long leases are held, as a moving average: the wait estimate of a line. */
export class HoldTimes {
  #averageMs: number | null = null;

  ended(heldMs: number): void {
    this.#averageMs = this.#averageMs === null ? heldMs : this.#averageMs * 0.9 + heldMs * 0.1;
  }

  /**
   * For somebody who comes now. Who holds is expected to go on for as long as leases are held on average, or for as long again as it has
   * held already when that is longer: a holder that is slow today is no faster than it was. Then everybody before the newcomer has an
   * average turn; readers that stand side by side have one together. `null` before the first lease has ended; 0 only for who need not wait.
   */
  estimateMs(holders: readonly HoldSoFar[], turnsAhead: number): number | null {
    if (holders.length === 0 && turnsAhead === 0) return 0;
    const averageMs = this.#averageMs;
    if (averageMs === null) return null;
    const rests = holders.map(({ heldMs, atMostMs }) => Math.min(Math.max(averageMs, heldMs), Math.max(0, atMostMs)));
    return Math.max(1, Math.ceil(Math.max(0, ...rests) + averageMs * turnsAhead));
  }
}
