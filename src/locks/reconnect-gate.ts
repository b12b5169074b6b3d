import type { Clock, Random } from '../domain/clock.ts';
import { GatewayError } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Session } from './session.ts';

/**
 * After a restart everybody comes back at once. Sessions from before are taken in at a bounded rate; who is told to come again
 * has shown that it is alive, so its leases are kept meanwhile. Each has one turn: whoever comes when it was told to is let in, also
 * when a client comes with thousands of them at once.
 */
export class ReconnectGate {
  readonly #clock: Clock;
  readonly #random: Random;
  /** Below 0: turns that are given away already. */
  #allowance = LIMITS.reconnectBurstMax as number;
  #refilledMs: number;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
    this.#refilledMs = clock.monotonicMs();
  }

  /** Throws `overloaded` with the time to come back; the caller has counted the sign of life already. */
  pass(session: Session): void {
    if (!session.returning) return;
    const nowMs = this.#clock.monotonicMs();
    session.turnMs ??= this.#nextTurn(nowMs);
    if (nowMs >= session.turnMs) {
      session.returning = false;
      return;
    }
    const jitterMs = ((this.#random.bytes(1)[0] ?? 0) / 256) * LIMITS.reconnectJitterMs;
    const retryAfterMs = Math.ceil(Math.min(session.turnMs - nowMs + jitterMs, session.ttlMs / 2));
    throw new GatewayError('overloaded', { detail: 'Many sessions are coming back after a restart. Nothing is lost; come again.', retryAfterMs });
  }

  #nextTurn(nowMs: number): number {
    const grown = ((nowMs - this.#refilledMs) / 1_000) * LIMITS.reconnectsPerSecondMax;
    this.#refilledMs = nowMs;
    this.#allowance = Math.min(LIMITS.reconnectBurstMax, this.#allowance + grown) - 1;
    return this.#allowance >= 0 ? nowMs : nowMs + (-this.#allowance / LIMITS.reconnectsPerSecondMax) * 1_000;
  }
}
