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

export interface LaneCall<T> {
  /** Gets the result of a call that came back after its deadline (an opened descriptor must be closed). */
  readonly late?: ((value: T) => void) | undefined;
  readonly deadlineMs?: number | undefined;
  /** It changes the volume. A file system that is frozen answers looks and lets no change through. */
  readonly changes?: boolean;
  /** False: its answer does not show that changes go through, so it is no canary once one of them hung. */
  readonly proves?: boolean;
  /** It reached the disk when it succeeds. */
  readonly reachesDisk?: boolean;
}

interface Task {
  stage: 'waiting' | 'running' | 'over';
  startedMs: number;
  /** Resolves when the kernel has let go of a running call. */
  ended: Promise<void> | null;
  timer: Timer | null;
  readonly canary: boolean;
  readonly changes: boolean;
  readonly start: () => void;
  readonly reject: (thrown: unknown) => void;
}

export class Lane {
  readonly #options: LaneOptions;
  readonly #queue = new Set<Task>();
  /** In the order of their start, until the kernel has let go of them. */
  readonly #running = new Set<Task>();
  /** Calls that ran over their deadline and are still in the kernel. */
  #hung = 0;
  #openUntilMs: number | null = null;
  /** What opened the breaker was a change, so only a call that proves something of changes closes it. */
  #changesHang = false;
  /** When the last call began that reached the disk. */
  #reachedMs = -Infinity;
  /** One canary at a time, until it has really ended: else a volume that stays hung would eat one thread more with each of them. */
  #canaryRuns = false;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  get inFlight(): number {
    return this.#running.size;
  }

  get queued(): number {
    return this.#queue.size;
  }

  /** `closed`: calls go through. `open`: they are refused. `half_open`: the next one is let through as a canary. */
  get breaker(): 'closed' | 'open' | 'half_open' {
    if (this.#openUntilMs === null) return 'closed';
    return this.#canaryRuns || this.#options.clock.monotonicMs() < this.#openUntilMs ? 'open' : 'half_open';
  }

  /** It is time for a canary, and no other call than one that proves something of changes can be it. */
  get wantsProof(): boolean {
    return this.#changesHang && this.breaker === 'half_open';
  }

  /** How long ago the last call began that reached the disk. */
  get reachedAgoMs(): number {
    return this.#options.clock.monotonicMs() - this.#reachedMs;
  }

  /** The breaker is closed, and no call takes longer than one on a disk that is well. */
  get isQuick(): boolean {
    const [oldest] = this.#running;
    return this.#openUntilMs === null && (oldest === undefined || this.#options.clock.monotonicMs() - oldest.startedMs < LIMITS.volumeLateMs);
  }

  /**
   * Runs `call` when there is room. Rejects with `LaneError` when the breaker is open, the queue is full, or the deadline passes;
   * a call that was still waiting is then never made.
   */
  run<T>(call: () => Promise<T>, options: LaneCall<T> = {}): Promise<T> {
    const refused = this.#refusal(options.proves ?? true);
    if (refused !== null) return Promise.reject(refused);
    return new Promise<T>((resolve, reject) => {
      const canary = this.#openUntilMs !== null;
      const start = (): void => this.#start(task, call, resolve, options);
      const task: Task = { stage: 'waiting', startedMs: 0, ended: null, timer: null, canary, changes: options.changes ?? false, reject, start };
      if (canary) this.#canaryRuns = true;
      task.timer = this.#options.clock.after(options.deadlineMs ?? this.#options.deadlineMs, () => this.#overdue(task));
      if (canary || this.#running.size < this.#options.inFlightMax) task.start();
      else this.#queue.add(task);
    });
  }

  #refusal(proves: boolean): LaneError | null {
    const { clock, queueMax, volume } = this.#options;
    if (this.breaker === 'open' || (this.#changesHang && !proves)) {
      const leftMs = (this.#openUntilMs ?? 0) - clock.monotonicMs();
      return new LaneError(`The volume ${volume} does not answer.`, Math.max(LIMITS.volumeCanaryMs / 2, leftMs), null);
    }
    if (this.#queue.size >= queueMax) return new LaneError(`Too many calls wait for the volume ${volume}.`, LIMITS.volumeCanaryMs / 2, null);
    return null;
  }

  #start<T>(task: Task, call: () => Promise<T>, resolve: (value: T) => void, { late, reachesDisk }: LaneCall<T>): void {
    task.stage = 'running';
    task.startedMs = this.#options.clock.monotonicMs();
    this.#running.add(task);
    task.ended = call().then(
      (value) => {
        this.#end(task);
        if (reachesDisk === true) this.#reachedMs = Math.max(this.#reachedMs, task.startedMs);
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
    this.#running.delete(task);
    if (task.canary) this.#canaryRuns = false;
    if (task.stage === 'over') {
      this.#hung -= 1;
      // It answers again, late: the very next call may prove that it is well.
      if (this.#hung === 0) this.#openUntilMs = Math.min(this.#openUntilMs ?? Infinity, this.#options.clock.monotonicMs());
    } else if (task.canary) {
      this.#openUntilMs = null;
      this.#changesHang = false;
    }
    for (const next of this.#queue) {
      if (this.#running.size >= this.#options.inFlightMax) return;
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
      this.#changesHang ||= task.changes;
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
