/**
 * Operations between their intent and `settled()`. Gives the `pending` outcome, and the low-water mark below which recovery
 * need not look. In memory: a mark that is too low only makes recovery look at more.
 */
export class OperationsInFlight {
  /** In the order of their first intent, because commits answer in that order: the first entry is the lowest. */
  readonly #firstSeq = new Map<string, number>();

  started(operationId: string, seq: number): void {
    if (!this.#firstSeq.has(operationId)) this.#firstSeq.set(operationId, seq);
  }

  settled(operationId: string): void {
    this.#firstSeq.delete(operationId);
  }

  has(operationId: string): boolean {
    return this.#firstSeq.has(operationId);
  }

  get size(): number {
    return this.#firstSeq.size;
  }

  ids(): string[] {
    return [...this.#firstSeq.keys()];
  }

  /** Every intent below this `seq` is settled; `headSeq` is the last record known to be durable. */
  lowWater(headSeq: number): number {
    for (const seq of this.#firstSeq.values()) return seq;
    return headSeq + 1;
  }
}
