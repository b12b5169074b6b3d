import type { Clock, Timer } from '../domain/clock.ts';
import { LIMITS } from '../domain/limits.ts';
import { LaneError } from './errno.ts';

/**
 * The lane of one volume (trap F13, case B25): so many calls at once, so many waiting, so long each, and a circuit breaker.
 * A hung mount fills its own lane and nothing else.
 *
 * Own code instead of cockatiel: there a bulkhead that is cut by a time-out frees its place although the thread of the pool is
 * still hung, a waiting task runs even after its caller was told that it failed, and time cannot be injected.
 */
export interface LaneOptions {
  readonly volume: string;
  readonly inFlightMax: number;
  readonly queueMax: number;
  readonly deadlineMs: number;
  readonly clock: Clock;
}

interface Task {
  stage: 'waiting' | 'running' | 'over';
  /** Resolves when the kernel has let go of a running call. */
  ended: Promise<void> | null;
  timer: Timer | null;
  readonly canary: boolean;
  readonly start: () => void;
  readonly reject: (thrown: unknown) => void;
}

export class Lane {
  readonly #options: LaneOptions;
  readonly #queue = new Set<Task>();
  #inFlight = 0;
  /** Calls that ran over their deadline and are still in the kernel. */
  #hung = 0;
  #openUntilMs: number | null = null;
  /** One canary at a time, until it has really ended: else a volume that stays hung would eat one thread more with each of them. */
  #canaryRuns = false;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get queued(): number {
    return this.#queue.size;
  }

  /** `closed`: calls go through. `open`: they are refused. `half_open`: the next one is let through as a canary. */
  get breaker(): 'closed' | 'open' | 'half_open' {
    if (this.#openUntilMs === null) return 'closed';
    return this.#canaryRuns || this.#options.clock.monotonicMs() < this.#openUntilMs ? 'open' : 'half_open';
  }

  /**
   * Runs `call` when there is room. Rejects with `LaneError` when the breaker is open, the queue is full, or the deadline passes;
   * a call that was still waiting is then never made. `late` gets the result of a call that came back after its deadline
   * (an opened descriptor must be closed).
   */
  run<T>(call: () => Promise<T>, late?: (value: T) => void, deadlineMs = this.#options.deadlineMs): Promise<T> {
    const refused = this.#refusal();
    if (refused !== null) return Promise.reject(refused);
    return new Promise<T>((resolve, reject) => {
      const canary = this.#openUntilMs !== null;
      const task: Task = { stage: 'waiting', ended: null, timer: null, canary, reject, start: () => this.#start(task, call, resolve, late) };
      if (canary) this.#canaryRuns = true;
      task.timer = this.#options.clock.after(deadlineMs, () => this.#overdue(task));
      if (canary || this.#inFlight < this.#options.inFlightMax) task.start();
      else this.#queue.add(task);
    });
  }

  #refusal(): LaneError | null {
    const { clock, queueMax, volume } = this.#options;
    if (this.breaker === 'open') {
      const leftMs = (this.#openUntilMs ?? 0) - clock.monotonicMs();
      return new LaneError(`The volume ${volume} does not answer.`, Math.max(LIMITS.volumeCanaryMs / 2, leftMs), null);
    }
    if (this.#queue.size >= queueMax) return new LaneError(`Too many calls wait for the volume ${volume}.`, LIMITS.volumeCanaryMs / 2, null);
    return null;
  }

  #start<T>(task: Task, call: () => Promise<T>, resolve: (value: T) => void, late: ((value: T) => void) | undefined): void {
    task.stage = 'running';
    this.#inFlight += 1;
    task.ended = call().then(
      (value) => {
        this.#end(task);
        if (task.stage === 'over') late?.(value);
        else resolve(value);
      },
      (thrown: unknown) => {
        this.#end(task);
        if (task.stage !== 'over') task.reject(thrown);
      },
    );
  }

  #end(task: Task): void {
    task.timer?.cancel();
    this.#inFlight -= 1;
    if (task.canary) this.#canaryRuns = false;
    if (task.stage === 'over') {
      this.#hung -= 1;
      // It answers again, late: the very next call may prove that it is well.
      if (this.#hung === 0) this.#openUntilMs = Math.min(this.#openUntilMs ?? Infinity, this.#options.clock.monotonicMs());
    } else if (task.canary) {
      this.#openUntilMs = null;
    }
    for (const next of this.#queue) {
      if (this.#inFlight >= this.#options.inFlightMax) return;
      this.#queue.delete(next);
      next.start();
    }
  }

  #overdue(task: Task): void {
    const { clock, volume } = this.#options;
    const hung = task.ended;
    task.stage = 'over';
    this.#queue.delete(task);
    if (hung !== null) {
      this.#hung += 1;
      this.#openUntilMs = clock.monotonicMs() + LIMITS.volumeCanaryMs;
      this.#refuseWaiting();
    }
    task.reject(new LaneError(`The volume ${volume} did not answer in time.`, LIMITS.volumeCanaryMs, hung));
  }

  /** Who waits behind a hung call learns it now and not after a deadline of its own. */
  #refuseWaiting(): void {
    for (const task of this.#queue) {
      task.stage = 'over';
      task.timer?.cancel();
      task.reject(new LaneError(`The volume ${this.#options.volume} does not answer.`, LIMITS.volumeCanaryMs, null));
    }
    this.#queue.clear();
  }
}
