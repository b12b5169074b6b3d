type Ending = () => Promise<void> | void;

/**
 * What has to be undone when the benchmark ends, however it ends: servers, mounts, directories. Last in, first out, since a
 * mount cannot go while a server still has files on it. One ending that fails does not keep the others from running.
 */
export class Endings {
  readonly #stack: { readonly what: string; readonly end: Ending }[] = [];
  #running: Promise<void> | null = null;

  add(what: string, end: Ending): void {
    this.#stack.push({ what, end });
  }

  /** Runs every ending once; a second call waits for the first. Throws at the end when some of them failed. */
  run(): Promise<void> {
    this.#running ??= this.#runAll();
    return this.#running;
  }

  async #runAll(): Promise<void> {
    const failures: Error[] = [];
    for (let next = this.#stack.pop(); next !== undefined; next = this.#stack.pop()) {
      try {
        await next.end();
      } catch (cause) {
        failures.push(new Error(`could not end ${next.what}: ${String(cause)}`, { cause }));
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, failures.map(String).join('; '));
  }
}
