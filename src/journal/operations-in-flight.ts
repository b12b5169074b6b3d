/**
 * Operations between their intent, or the announcement of a break, and `settled()`. Gives the `pending` outcome, and the low-water mark below which recovery
 * need not look. In memory: a mark that is too low only makes recovery look at more.
 */
export class OperationsInFlight {
  /** In the order of their first intent, because commits answer in that order: the first entry is the lowest. */
  readonly #underWay = new Map<string, number>();
  /** Marked as undecided in the journal: they may stay open for weeks, and are found again without the low-water mark. */
  readonly #undecided = new Set<string>();
  /** Settled, but still marked as undecided in the journal. */
  readonly #toClose = new Set<string>();
  /** Breaks within their grace: nothing that recovery looks at. */
  readonly #announced = new Set<string>();

  started(operationId: string, seq: number): void {
    if (!this.#underWay.has(operationId)) this.#underWay.set(operationId, seq);
  }

  /** The journal has it as undecided, durably. */
  setAside(operationId: string): void {
    this.#underWay.delete(operationId);
    this.#undecided.add(operationId);
  }

  announced(operationId: string): void {
    this.#announced.add(operationId);
  }

  settled(operationId: string): void {
    this.#announced.delete(operationId);
    this.#underWay.delete(operationId);
    if (this.#undecided.delete(operationId)) this.#toClose.add(operationId);
  }

  /** Settled operations whose mark the next unit takes away. */
  toClose(): string[] {
    return [...this.#toClose];
  }

  closed(operationIds: readonly string[]): void {
    for (const operationId of operationIds) this.#toClose.delete(operationId);
  }

  has(operationId: string): boolean {
    return this.#underWay.has(operationId) || this.#undecided.has(operationId) || this.#announced.has(operationId);
  }

  /** Operations on files. */
  get size(): number {
    return this.#underWay.size + this.#undecided.size;
  }

  ids(): string[] {
    return [...this.#underWay.keys(), ...this.#undecided, ...this.#announced];
  }

  /** Every intent below this `seq` is settled or set aside; `headSeq` is the last record known to be durable. */
  lowWater(headSeq: number): number {
    for (const seq of this.#underWay.values()) return seq;
    return headSeq + 1;
  }
}
