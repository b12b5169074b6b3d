import { type Clock, type Random, rfc3339 } from '../domain/clock.ts';
import type { Journal, JournalStart } from '../domain/journal.ts';
import { LIMITS } from '../domain/limits.ts';
import { madeIn, newLeaseId } from './secret-id.ts';

export interface LeaseIdsDeps {
  readonly clock: Clock;
  readonly random: Random;
  /** What marks an id as ours: the first marks, all are known. Empty: not known yet. */
  readonly marks: () => readonly string[];
  /** Other gateways that may be alive make ids with the same marks. */
  readonly shared: boolean;
}

/** Under this name the journal has the epoch of the last start. */
const EPOCH_FACT = 'lease_epoch';

/**
 * Waiters are not journaled, so after a restart they are answered `lost` by what the id itself says: in which process it was made, and
 * that it was made by us at all. An id that somebody invented is nobody's.
 */
export class LeaseIds {
  readonly #deps: LeaseIdsDeps;
  readonly #startedMs: number;
  readonly #startedWallMs: number;
  /** Names this start of the process, in every id that it makes: its time of day, or the next number after that of an earlier start. */
  #epochMs: number;

  constructor(deps: LeaseIdsDeps) {
    this.#deps = deps;
    this.#startedMs = deps.clock.monotonicMs();
    this.#startedWallMs = deps.clock.wallMs();
    this.#epochMs = Math.max(0, Math.floor(this.#startedWallMs));
  }

  get #epoch(): string {
    return this.#epochMs.toString(36);
  }

  /** Before any id is made: the epochs of one gateway grow from start to start, also when the wall clock was set back in between. */
  async begin(start: Pick<JournalStart, 'meta'>, journal: Pick<Journal, 'commit'>): Promise<void> {
    const before = Number.parseInt(start.meta(EPOCH_FACT) ?? '', 36);
    if (before >= this.#epochMs) this.#epochMs = before + 1;
    await journal.commit([{ op: 'meta_put', name: EPOCH_FACT, value: this.#epoch }]);
  }

  next(): string {
    return newLeaseId(this.#deps.random, this.#epoch, this.#deps.marks()[0] ?? '');
  }

  /** When the waits of an earlier process were lost, RFC 3339; `null` for ids of this one, of nobody, of another gateway, or after an hour. */
  lostAt(leaseId: string): string | null {
    const epoch = madeIn(leaseId, this.#deps.marks());
    if (epoch === null || epoch === this.#epoch) return null;
    // Whatever only we make and did not make in this process is from before. So is what is of an earlier epoch; a later one is another gateway's.
    if (this.#deps.shared && Number.parseInt(epoch, 36) > this.#epochMs) return null;
    return this.#deps.clock.monotonicMs() - this.#startedMs > LIMITS.leaseEndedKeptMs ? null : rfc3339(this.#startedWallMs);
  }
}
