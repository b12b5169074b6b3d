import { type Clock, rfc3339 } from '../domain/clock.ts';
import { LIMITS } from '../domain/limits.ts';
import { epochOf } from './secret-id.ts';

/**
 * Waiters are not journaled, so after a restart they are answered `lost`: the id itself says in which process it was made.
 * An invented id learns nothing more than that.
 */
export class EarlierEpochs {
  readonly #clock: Clock;
  readonly #startedMs: number;
  readonly #startedWallMs: number;
  /** Names this start of the process, in every lease id that it makes. */
  readonly epoch: string;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedMs = clock.monotonicMs();
    this.#startedWallMs = clock.wallMs();
    this.epoch = Math.max(0, Math.floor(this.#startedWallMs)).toString(36);
  }

  /** When the leases of an earlier process were lost, RFC 3339; `null` for ids of this one, of a later one, or after an hour. */
  lostAt(leaseId: string): string | null {
    const epoch = epochOf(leaseId);
    if (epoch === null || Number.parseInt(epoch, 36) >= Number.parseInt(this.epoch, 36)) return null;
    return this.#clock.monotonicMs() - this.#startedMs > LIMITS.leaseEndedKeptMs ? null : rfc3339(this.#startedWallMs);
  }
}
