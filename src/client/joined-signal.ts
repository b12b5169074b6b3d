import type { ClientClock, ClientTimer } from './clock.ts';

/**
 * One signal out of several and a time limit. Its listeners come off with `dispose`: `AbortSignal.any` would keep
 * an entry for every request on a signal that lives as long as the process.
 */
export class JoinedSignal {
  readonly #controller = new AbortController();
  readonly #sources: readonly AbortSignal[];
  readonly #timer: ClientTimer | null;
  /** The time limit ended it, none of the signals. */
  timedOut = false;

  constructor(clock: ClientClock, sources: readonly (AbortSignal | undefined)[], limitMs: number | null) {
    this.#sources = sources.filter((source) => source !== undefined);
    this.#timer = limitMs === null ? null : clock.after(limitMs, () => this.#onTime(), true);
    for (const source of this.#sources) source.addEventListener('abort', this.#onAbort, { once: true });
    this.#onAbort();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  dispose(): void {
    this.#timer?.cancel();
    for (const source of this.#sources) source.removeEventListener('abort', this.#onAbort);
  }

  readonly #onAbort = (): void => {
    const aborted = this.#sources.find((source) => source.aborted);
    if (aborted === undefined) return;
    this.dispose();
    this.#controller.abort(aborted.reason);
  };

  #onTime(): void {
    this.timedOut = true;
    this.dispose();
    this.#controller.abort();
  }
}
