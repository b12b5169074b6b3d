/** Operations with a call that ran over its deadline and is still in the kernel: it may land whenever it likes. */
export class HungOperations {
  readonly #calls = new Map<string, number>();

  has(operationId: string): boolean {
    return this.#calls.has(operationId);
  }

  /** @param ended resolves when the kernel has let go of the call. */
  add(operationId: string, ended: Promise<void>): void {
    this.#calls.set(operationId, (this.#calls.get(operationId) ?? 0) + 1);
    void ended.then(() => {
      const left = (this.#calls.get(operationId) ?? 1) - 1;
      if (left === 0) this.#calls.delete(operationId);
      else this.#calls.set(operationId, left);
    });
  }
}
