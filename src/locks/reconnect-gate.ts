import type { Clock, Random } from '../domain/clock.ts';
import { GatewayError } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Session } from './session.ts';

/**
 * After a restart everybody comes back at once. Sessions from before are taken in at a bounded rate; who is told to come again
 * has shown that it is alive, so its leases are kept meanwhile.
 */
export class ReconnectGate {
  readonly #clock: Clock;
  readonly #random: Random;
  #allowance = LIMITS.reconnectBurstMax as number;
  #refilledMs: number;
  /** How many were sent away and are expected back: spreads the next times over the rate. */
  #expected = 0;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
    this.#refilledMs = clock.monotonicMs();
  }

  /** Throws `overloaded` with the time to come back; the caller has counted the sign of life already. */
  pass(session: Session): void {
    if (!session.returning) return;
    this.#refill();
    if (this.#allowance >= 1) {
      this.#allowance -= 1;
      session.returning = false;
      return;
    }
    this.#expected += 1;
    const jitterMs = ((this.#random.bytes(1)[0] ?? 0) / 256) * LIMITS.reconnectJitterMs;
    const turnMs = (this.#expected / LIMITS.reconnectsPerSecondMax) * 1_000;
    const retryAfterMs = Math.ceil(Math.min(turnMs + jitterMs, session.ttlMs / 2));
    throw new GatewayError('overloaded', { detail: 'Many sessions are coming back after a restart. Nothing is lost; come again.', retryAfterMs });
  }

  #refill(): void {
    const nowMs = this.#clock.monotonicMs();
    const grown = ((nowMs - this.#refilledMs) / 1_000) * LIMITS.reconnectsPerSecondMax;
    this.#refilledMs = nowMs;
    this.#allowance = Math.min(LIMITS.reconnectBurstMax, this.#allowance + grown);
    this.#expected = Math.max(0, this.#expected - grown);
  }
}
