import type { Clock, Timer } from '../../domain/clock.ts';
import type { Intent } from '../../domain/intent.ts';
import { LIMITS } from '../../domain/limits.ts';
import { namesOfOperation } from './intent-names.ts';

export interface TidyingOptions {
  readonly clock: Clock;
  /** Unlinks a name in the own directory; a missing one is no error. */
  readonly unlink: (name: string) => Promise<void>;
  /** The own directory is another's now: nothing in it is ours to remove. */
  readonly isFenced: () => boolean;
}

interface Work {
  /** What is still to be unlinked, in order. */
  readonly names: string[];
  retryMs: number;
}

/**
 * Unlinks what settled operations left in the own directory: one pass for each operation, few operations at once, one call at a time for each
 * of them, so that the writes and reads of others find the lane free. What fails is tried again later. It may all be forgotten at any
 * time (a stop, too long a list): the journal knows that the operations are settled, and the next start sweeps.
 */
export class Tidying {
  readonly #options: TidyingOptions;
  readonly #waiting: Work[] = [];
  readonly #retries = new Set<Timer>();
  /** Names of all operations that wait, run, or will be tried again. */
  #nameCount = 0;
  #running = 0;
  #stopped = false;

  constructor(options: TidyingOptions) {
    this.#options = options;
  }

  /** Names that are still to be unlinked. */
  get left(): number {
    return this.#nameCount;
  }

  /** All intents of one operation. */
  add(intents: readonly Intent[]): void {
    const names = namesOfOperation(intents);
    if (this.#stopped || names.length === 0 || this.#nameCount + names.length > LIMITS.tidyNamesMax) return;
    this.#nameCount += names.length;
    this.#waiting.push({ names: names.reverse(), retryMs: LIMITS.tidyRetryMsMin });
    this.#fill();
  }

  stop(): void {
    this.#stopped = true;
    for (const timer of this.#retries) timer.cancel();
    this.#retries.clear();
    this.#waiting.length = 0;
    this.#nameCount = 0;
  }

  #fill(): void {
    while (this.#running < LIMITS.tidyOperationsMax) {
      const work = this.#waiting.shift();
      if (work === undefined) return;
      this.#running += 1;
      void this.#pass(work).finally(() => {
        this.#running -= 1;
        this.#fill();
      });
    }
  }

  /** Never rejects. */
  async #pass(work: Work): Promise<void> {
    const { unlink, isFenced } = this.#options;
    for (let done = 1; ; done += 1) {
      const name = work.names.at(-1);
      if (name === undefined || this.#stopped) return;
      if (isFenced()) return this.stop();
      try {
        await unlink(name);
      } catch {
        // Whatever it was, the name has no meaning any more: it only takes up room until it is gone.
        return this.#later(work);
      }
      work.names.pop();
      if (!this.#stopped) this.#nameCount -= 1;
      // On a local disk an unlink ends at once; a thousand of them in a row would hold up everybody.
      if (done % LIMITS.tidyNamesPerTurn === 0) await new Promise((resolve) => void setImmediate(resolve));
    }
  }

  #later(work: Work): void {
    if (this.#stopped) return;
    const timer = this.#options.clock.after(work.retryMs, () => {
      this.#retries.delete(timer);
      this.#waiting.push(work);
      this.#fill();
    });
    this.#retries.add(timer);
    work.retryMs = Math.min(work.retryMs * 2, LIMITS.tidyRetryMsMax);
  }
}
