import type { Clock } from '../../domain/clock.ts';
import { GatewayError } from '../../domain/errors.ts';
import type { ZkClient, ZkSession } from './zk-client.ts';
import { failedWith } from './zk-nodes.ts';

/** Resolves when it is connected, is over, or the time is up; the caller looks which. */
export function connected(client: ZkClient, clock: Clock, withinMs: number): Promise<void> {
  if (client.state === 'connected' || client.state === 'over') return Promise.resolve();
  return new Promise((resolve) => {
    const late = clock.after(withinMs, resolve);
    client.onState((state) => {
      if (state !== 'connected' && state !== 'over') return;
      late.cancel();
      resolve();
    });
  });
}

/** No server answered, which may last; whatever else ends an attempt at a session is an answer. */
export class NotReached extends GatewayError {
  constructor() {
    super('coordinator_unavailable', { detail: 'The coordinator could not be reached.', retryAfterMs: 5_000 });
  }
}

export interface Patience {
  /** In all, whatever the reason is that no session begins. */
  readonly forMs: number;
  /** While each attempt at one is answered with a refusal. */
  readonly refusedMs: number;
}

export const ENDLESS: Patience = { forMs: Number.POSITIVE_INFINITY, refusedMs: Number.POSITIVE_INFINITY };

/** Whether a session that cannot be begun is tried for again. */
export class Attempts {
  readonly #clock: Clock;
  readonly #patience: Patience;
  readonly #sinceMs: number;
  #refusedSinceMs: number | null = null;

  constructor(clock: Clock, patience: Patience) {
    this.#clock = clock;
    this.#patience = patience;
    this.#sinceMs = clock.monotonicMs();
  }

  /** One failed. */
  goOn(thrown: unknown): boolean {
    const nowMs = this.#clock.monotonicMs();
    const silent = thrown instanceof NotReached || failedWith(thrown, 'unknown');
    this.#refusedSinceMs = silent ? null : (this.#refusedSinceMs ?? nowMs);
    if (nowMs - this.#sinceMs >= this.#patience.forMs) return false;
    return this.#refusedSinceMs === null || nowMs - this.#refusedSinceMs < this.#patience.refusedMs;
  }
}

/** A session is resumed for nothing but its end. Rejects when no server said what became of it. */
export async function closedByResuming(resumed: ZkClient, clock: Clock, withinMs: number): Promise<void> {
  await connected(resumed, clock, withinMs);
  const { state } = resumed;
  await resumed.close();
  if (state !== 'connected' && state !== 'over') throw new NotReached();
}

/** The stored session of an earlier process: `id:password:timeout`. */
export function parseSession(text: string | null): ZkSession | null {
  const [id, password, timeoutMs] = (text ?? '').split(':');
  return id === undefined || password === undefined || timeoutMs === undefined ? null : { id, password, timeoutMs: Number(timeoutMs) };
}

export function storedSession({ id, password, timeoutMs }: ZkSession): string {
  return `${id}:${password}:${timeoutMs}`;
}
