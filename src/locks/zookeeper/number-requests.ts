/** Numbers that nobody gets, asked for by breaks: the next `set` of the node answers all that wait for one. */
export class NumberRequests {
  readonly #waiting: { resolve(mzxid: bigint): void; reject(reason: Error): void }[] = [];

  get count(): number {
    return this.#waiting.length;
  }

  ask(): Promise<bigint> {
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  /** Those who asked before the `set` was sent. */
  answer(count: number, mzxid: bigint): void {
    for (const request of this.#waiting.splice(0, count)) request.resolve(mzxid);
  }

  reject(reason: Error): void {
    for (const request of this.#waiting.splice(0)) request.reject(reason);
  }
}
