/** Latencies of one load, in milliseconds. */
export class Latencies {
  #values = new Float64Array(65_536);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  add(ms: number): void {
    if (this.#count === this.#values.length) {
      const larger = new Float64Array(this.#values.length * 2);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.#count++] = ms;
  }

  /** Nearest rank; `shares` like 0.5, 0.99. Sorts once for all of them. */
  percentiles<const S extends readonly number[]>(shares: S): { [K in keyof S]: number } {
    const sorted = this.#values.slice(0, this.#count).sort();
    const at = (share: number): number => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
    return shares.map(at) as { [K in keyof S]: number };
  }
}
