import { LRUCache } from 'lru-cache';
import type { Clock } from '../domain/clock.ts';
import { GatewayError } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Principal } from '../domain/principal.ts';

const WINDOW_MS = 1_000;

/** Calls per second and principal, or per address without authentication; counted apart from HTTP requests. */
export class RateLimit {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #windows = new LRUCache<string, { readonly startedMs: number; count: number }>({ max: LIMITS.rateLimitPrincipalsMax });

  constructor(clock: Clock, perSecond: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
  }

  /** Throws `rate_limited`. */
  admit(principal: Principal, address: string | null): void {
    if (this.#perSecond === 0) return;
    const key = principal.authenticated ? `principal ${principal.name}` : `address ${address ?? ''}`;
    const nowMs = this.#clock.monotonicMs();
    let window = this.#windows.get(key);
    if (window === undefined || nowMs - window.startedMs >= WINDOW_MS) {
      window = { startedMs: nowMs, count: 0 };
      this.#windows.set(key, window);
    }
    window.count += 1;
    if (window.count <= this.#perSecond) return;
    const retryAfterMs = window.startedMs + WINDOW_MS - nowMs;
    throw new GatewayError('rate_limited', { detail: `More than ${this.#perSecond} calls in a second.`, retryAfterMs });
  }
}
