import type { Clock } from '../domain/clock.ts';
import { GatewayError } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';

interface Waiter {
  readonly enter: () => void;
}

/** Commit sections run one at a time per resource. First come, first served; every wait has a deadline and a signal. */
export class ResourceMutex {
  readonly #queues = new Map<string, Waiter[]>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Enters the sections of all `keys`, which the caller has put into canonical order, and gives back the function that leaves them.
   * Rejects with `queue_full`, with `volume_unavailable` after the commit deadline, or with the signal's reason.
   */
  async enter(keys: readonly string[], signal: AbortSignal): Promise<() => void> {
    const held: string[] = [];
    const leave = (): void => {
      for (const key of held.reverse()) this.#leave(key);
    };
    try {
      for (const key of keys) {
        await this.#enterOne(key, signal);
        held.push(key);
      }
    } catch (error) {
      leave();
      throw error;
    }
    return leave;
  }

  #enterOne(key: string, signal: AbortSignal): Promise<void> | undefined {
    signal.throwIfAborted();
    const queue = this.#queues.get(key);
    if (queue === undefined) {
      this.#queues.set(key, []);
      return undefined;
    }
    if (queue.length >= LIMITS.contendersPerResourceMax) {
      throw new GatewayError('queue_full', { detail: 'Too many writes wait for this resource.', retryAfterMs: 1_000 });
    }
    return this.#stand(queue, signal);
  }

  #stand(queue: Waiter[], signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (): void => {
        timer.cancel();
        signal.removeEventListener('abort', onAbort);
      };
      const leaveQueue = (reason: unknown): void => {
        const at = queue.indexOf(waiter);
        if (at < 0) return;
        queue.splice(at, 1);
        done();
        reject(reason);
      };
      const onAbort = (): void => leaveQueue(signal.reason);
      const waiter: Waiter = {
        enter: () => {
          done();
          resolve();
        },
      };
      const timer = this.#clock.after(LIMITS.commitDeadlineMs, () => leaveQueue(busy()));
      signal.addEventListener('abort', onAbort);
      queue.push(waiter);
    });
  }

  #leave(key: string): void {
    const queue = this.#queues.get(key);
    const next = queue?.shift();
    if (next === undefined) this.#queues.delete(key);
    else next.enter();
  }
}

function busy(): GatewayError {
  return new GatewayError('volume_unavailable', {
    detail: 'An earlier write of this resource has not ended; nothing was changed by this request.',
    retryAfterMs: LIMITS.settleRetryMs,
  });
}
