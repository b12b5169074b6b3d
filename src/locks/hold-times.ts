/** How long leases are held, as a moving average: the wait estimate of a line. */
export class HoldTimes {
  #averageMs: number | null = null;

  ended(heldMs: number): void {
    this.#averageMs = this.#averageMs === null ? heldMs : this.#averageMs * 0.9 + heldMs * 0.1;
  }

  /** For somebody who joins behind `ahead` others; `null` before the first lease has ended. */
  estimateMs(ahead: number): number | null {
    if (ahead === 0) return 0;
    return this.#averageMs === null ? null : Math.round(this.#averageMs * ahead);
  }
}
