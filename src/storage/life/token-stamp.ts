import type { Clock } from '../../domain/clock.ts';
import { GatewayError } from '../../domain/errors.ts';
import { FENCING_TOKEN_MAX } from '../../domain/fencing-token.ts';
import { Later } from '../../domain/later.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Stamp } from './stamp.ts';

export interface TokenStampOptions {
  readonly volume: string;
  readonly journalUuid: string;
  readonly found: Stamp | null;
  readonly clock: Clock;
  /** Makes a ceiling durable in the journal; rejects with the journal's own error. */
  readonly record: (ceiling: bigint) => Promise<void>;
  /** Makes a stamp durable on the volume. */
  readonly write: (stamp: Stamp) => Promise<void>;
  /** A refresh or a reservation in advance failed: nothing waits for it, but somebody must know. */
  readonly onFailure: (thrown: unknown) => void;
}

/**
 * The tokens of one volume: its durable ceiling rises before a token beyond it is issued, so the counter can always go on above
 * the highest ceiling found, whatever became of the journal (I6). A volume that hangs keeps only its own callers waiting.
 *
 * *The journal has each ceiling before the stamp has it.* So, as long as nobody puts the journal back, no stamp with its name has a ceiling above
 * what it reserved, and a start that finds one knows that a later state of the journal had the volume (`judgeStamp`). In between:
 * - a crash leaves the journal ahead of the stamp, which says nothing and costs at most a block of numbers. The other order would leave a
 *   stamp that looks like one of a later state, and the volume would wait for a rebase after each such crash;
 * - a successor over the same journal reads what is reserved after it took the owner row: whatever the predecessor reserved is there, and what it
 *   still tries to reserve fails. Its stamp may land until its directory is removed, with a ceiling that the successor has read;
 * - a full or failing journal refuses the ceiling: no stamp is written, and tokens end with the block that there is;
 * - a stamp whose write failed may be there all the same: its ceiling is reserved, and a reserved one is never lowered.
 */
export class TokenStamp {
  readonly #options: TokenStampOptions;
  #ceiling: bigint;
  /** What is durable: the ceiling of another journal's stamp is known, but must be written under our name before it counts. */
  #durable: bigint;
  /** What the journal has, as far as this process saw it. */
  #recorded = 0n;
  #last: bigint;
  #durableLast: bigint;
  #writing: Promise<void> | null = null;
  readonly #refreshing: Later;
  #blocked: string | null = null;

  constructor(options: TokenStampOptions) {
    this.#options = options;
    this.#ceiling = options.found?.ceiling ?? 0n;
    this.#last = this.#durableLast = options.found?.last ?? 0n;
    this.#durable = options.found?.journal === options.journalUuid ? this.#ceiling : 0n;
    this.#refreshing = new Later(options.clock, LIMITS.stampRefreshMs, () => void this.#refresh());
  }

  /** The highest ceiling known: the counter goes on above it. */
  get ceiling(): bigint {
    return this.#ceiling;
  }

  /** Whether the stamp may be written at all; `reason` until a rebase. */
  block(reason: string): void {
    this.#blocked = reason;
  }

  covers(token: bigint): boolean {
    return this.#blocked === null && token <= this.#durable;
  }

  /**
   * Resolves when the durable ceiling covers `token`; rejects with `volume_unavailable` when it cannot be written.
   * From half of a block on the next one is reserved in advance, so that nobody waits for it.
   */
  async reserve(token: bigint): Promise<void> {
    if (this.#blocked !== null) throw this.#refusal(this.#blocked);
    if (token > FENCING_TOKEN_MAX) throw this.#refusal('the ceiling of its stamp is the highest token there is');
    if (token <= this.#durable) {
      if (this.#durable - token < LIMITS.tokenBlock / 2n && this.#writing === null && this.#durable < FENCING_TOKEN_MAX) {
        this.#raise(this.#durable + LIMITS.tokenBlock).catch(this.#options.onFailure);
      }
      return;
    }
    // A write under way may be for a lower ceiling; each turn either covers the token or rejects.
    while (token > this.#durable) await (this.#writing ?? this.#raise(token + LIMITS.tokenBlock));
  }

  /** To be called once the grant is durable in the journal: a stamp that is ahead of the journal means that the journal was restored. */
  noteIssued(token: bigint): void {
    if (token <= this.#last) return;
    this.#last = token;
    this.#refreshing.ask();
  }

  /** `fence rebase`: the stamp is put under our journal's name with a ceiling above `base`, and may be written again. */
  async rebase(base: bigint): Promise<void> {
    await this.#settledWrite();
    this.#last = base > this.#last ? base : this.#last;
    await this.#raise((base > this.#ceiling ? base : this.#ceiling) + LIMITS.tokenBlock);
    this.#blocked = null;
  }

  /** Ends the refreshing; a last refresh is made when something is new. Never rejects. */
  async stop(): Promise<void> {
    this.#refreshing.stop();
    await this.#settledWrite();
    await this.#refresh();
  }

  /** The volume is started anew: its next stamp writes from here on, and this one's directory will be gone. */
  abandon(): void {
    this.#refreshing.stop();
    this.block('the volume is being started anew');
  }

  async #refresh(): Promise<void> {
    if (this.#last === this.#durableLast || this.#blocked !== null) return;
    try {
      await this.#settledWrite();
      if (this.#last !== this.#durableLast) await this.#raise(this.#durable);
    } catch (thrown) {
      this.#options.onFailure(thrown);
      this.#refreshing.ask();
    }
  }

  async #settledWrite(): Promise<void> {
    while (this.#writing !== null) await this.#writing.catch(() => undefined); // its own caller hears of it
  }

  #raise(wanted: bigint): Promise<void> {
    const floor = this.#last > this.#ceiling ? this.#last : this.#ceiling;
    const least = wanted > floor ? wanted : floor;
    const ceiling = least < FENCING_TOKEN_MAX ? least : FENCING_TOKEN_MAX;
    const last = this.#last;
    this.#writing = (async () => {
      try {
        if (ceiling > this.#recorded) await this.#options.record(ceiling);
        this.#recorded = ceiling;
        await this.#write({ journal: this.#options.journalUuid, ceiling, last, reserved: true });
      } finally {
        this.#writing = null;
      }
    })();
    return this.#writing;
  }

  async #write(next: Stamp): Promise<void> {
    const { ceiling, last } = next;
    try {
      await this.#options.write(next);
      this.#durable = ceiling;
      this.#durableLast = last;
    } catch (thrown) {
      throw this.#refusal('its token stamp could not be written', thrown);
    } finally {
      // Also after a failure the file may hold the new ceiling; going on above it is always safe.
      if (ceiling > this.#ceiling) this.#ceiling = ceiling;
    }
  }

  #refusal(reason: string, cause?: unknown): GatewayError {
    const detail = `No token is issued for the volume ${this.#options.volume}: ${reason}.`;
    return new GatewayError('volume_unavailable', { detail, retryAfterMs: LIMITS.settleRetryMs, cause });
  }
}
