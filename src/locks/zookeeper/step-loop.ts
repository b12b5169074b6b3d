import type { Clock } from '../../domain/clock.ts';
import { GatewayError } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { failedWith } from './zk-nodes.ts';

export interface StepLoopOptions {
  readonly clock: Clock;
  readonly step: () => Promise<void>;
  /** Nothing more is sent. */
  readonly over: () => boolean;
  /** A step failed: what it did is not known. It is tried again, unless the session is over. */
  readonly onFailed: () => void;
  /** Why no step can succeed at the moment: whoever waits for a whole one is not let wait for contact. */
  readonly refusal: () => GatewayError | null;
  /** Whether somebody wants a step after one that was refused. */
  readonly isNeeded: () => boolean;
  /** Whether somebody came while a step was under way that was refused: the next one follows at once. */
  readonly isAsked: () => boolean;
  /** Nothing is left to do until somebody asks. */
  readonly onRest: () => void;
}

/** One step at a time; whatever happens meanwhile asks for another. */
export class StepLoop {
  readonly #options: StepLoopOptions;
  readonly #awaited: { readonly resolve: () => void; readonly reject: (refusal: GatewayError) => void }[] = [];
  #running = false;
  /** Ends the rest after a refusal: whoever comes then is refused by a look of his own. */
  #wake: (() => void) | null = null;
  #again = false;

  constructor(options: StepLoopOptions) {
    this.#options = options;
  }

  get running(): boolean {
    return this.#running;
  }

  /** How many wait for a whole step. */
  get awaited(): number {
    return this.#awaited.length;
  }

  /** Resolves when a step that begins from now on has succeeded. Rejects when it is known why none can, or will any more. */
  next(): Promise<void> {
    const done = new Promise<void>((resolve, reject) => this.#awaited.push({ resolve, reject }));
    this.nudge();
    return done;
  }

  /** No step will come any more. */
  refuse(refusal: GatewayError, count = this.#awaited.length): void {
    for (const { reject } of this.#awaited.splice(0, count)) reject(refusal);
  }

  /** Another step, soon. */
  nudge(): void {
    this.#again = true;
    this.#wake?.();
    if (this.#running) return;
    this.#running = true;
    void this.#run();
  }

  async #run(): Promise<void> {
    const { clock, step, over, onFailed, refusal: refusalNow, isNeeded, isAsked, onRest } = this.#options;
    while (this.#again && !over()) {
      this.#again = false;
      const asked = this.#awaited.length;
      try {
        await step();
        for (const { resolve } of this.#awaited.splice(0, asked)) resolve();
      } catch (thrown) {
        const refusal = thrown instanceof GatewayError ? thrown : null;
        onFailed();
        const told = refusal ?? refusalNow();
        if (told !== null) this.refuse(told, asked);
        this.#again = refusal === null || this.#awaited.length > 0 || isNeeded();
        if (!this.#again || failedWith(thrown, 'session_over')) break;
        if (refusal !== null && isAsked()) continue;
        await new Promise<void>((resolve) => {
          const timer = clock.after(refusal === null ? LIMITS.zookeeperRetryMs : LIMITS.zookeeperUnreadableRetryMs, resolve);
          if (refusal !== null) this.#wake = () => resolve(timer.cancel());
        });
        this.#wake = null;
      }
    }
    this.#running = false;
    onRest();
  }
}
