interface Hold {
  /** Requests that ask with it and have not been answered. */
  open: number;
  /** How many were told of it. */
  told: number;
  /** Its grant has a record of its own. */
  recorded: boolean;
}

/**
 * The holds of a lease, in the order in which they were taken (R4). A request that is repeated has the hold of the first, so a hold is
 * dropped only when nobody asks with it any more and nobody was ever told of it.
 */
export class Holds implements Iterable<string> {
  readonly #byId = new Map<string, Hold>();

  get size(): number {
    return this.#byId.size;
  }

  has(holdId: string): boolean {
    return this.#byId.has(holdId);
  }

  [Symbol.iterator](): Iterator<string> {
    return this.#byId.keys();
  }

  /** One that was told of before. */
  add(holdId: string): void {
    this.#byId.set(holdId, { open: 0, told: 1, recorded: false });
  }

  /** The grant of this hold is in the audit log, so what takes it off will be, too. */
  granted(holdId: string): void {
    const hold = this.#byId.get(holdId);
    if (hold !== undefined) hold.recorded = true;
  }

  wasGranted(holdId: string): boolean {
    return this.#byId.get(holdId)?.recorded === true;
  }

  delete(holdId: string): void {
    this.#byId.delete(holdId);
  }

  /** A request asks with it. */
  asked(holdId: string): void {
    const hold = this.#byId.get(holdId) ?? { open: 0, told: 0, recorded: false };
    hold.open += 1;
    this.#byId.set(holdId, hold);
  }

  /** The request was answered with the lease, held or waiting. */
  answered(holdId: string): void {
    const hold = this.#byId.get(holdId);
    if (hold === undefined) return;
    hold.open -= 1;
    hold.told += 1;
  }

  /** The answer did not get to its client after all. Returns whether the hold went with it. */
  undelivered(holdId: string): boolean {
    const hold = this.#byId.get(holdId);
    if (hold === undefined) return false;
    hold.told -= 1;
    return this.#drop(holdId, hold);
  }

  /** The request was refused, or its client has gone. Returns whether the hold went with it. */
  unanswered(holdId: string): boolean {
    const hold = this.#byId.get(holdId);
    if (hold === undefined) return false;
    hold.open -= 1;
    return this.#drop(holdId, hold);
  }

  #drop(holdId: string, { open, told }: Hold): boolean {
    return open === 0 && told <= 0 && this.#byId.delete(holdId);
  }
}
