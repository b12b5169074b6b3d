import type { AuditDraft } from '../domain/audit-record.ts';
import type { Clock } from '../domain/clock.ts';
import { GatewayError } from '../domain/errors.ts';
import type { Journal, RefusalLog } from '../domain/journal.ts';
import { LIMITS } from '../domain/limits.ts';
import { CountedRefusals } from './counted-refusals.ts';
import { journalUnavailable } from './thread-calls.ts';

/**
 * Refusals in the audit log (I4 and its one exemption): the first of a kind is durable before its answer, equal ones within a
 * second are counted. So a flood cannot fill the disk.
 */
export class CountingRefusalLog implements RefusalLog {
  readonly #write: (record: AuditDraft) => Promise<void>;
  readonly #refusals: CountedRefusals;
  readonly #early: CountedRefusals;

  constructor(journal: Pick<Journal, 'commit'>, clock: Clock) {
    this.#write = async (record) => {
      try {
        await journal.commit([{ op: 'audit', record }]);
      } catch (thrown) {
        // Of a refusal only its record can be in doubt: nothing was changed in any case.
        if (!(thrown instanceof GatewayError) || thrown.code !== 'outcome_unknown') throw thrown;
        throw journalUnavailable('The refusal could not be recorded; nothing was changed.', thrown);
      }
    };
    this.#refusals = new CountedRefusals({ clock, windowMs: LIMITS.refusalWindowMs, keysMax: LIMITS.refusalKeysMax, write: this.#write });
    this.#early = new CountedRefusals({ clock, windowMs: LIMITS.refusalEarlyWindowMs, keysMax: LIMITS.refusalKeysMax, write: this.#write });
  }

  async refused(record: AuditDraft): Promise<void> {
    const key = JSON.stringify([
      record.principal,
      record.clientId,
      record.remoteAddress,
      String(record.fencingToken),
      record.code,
      record.volume,
      record.path,
      record.action,
      record.detail,
    ]);
    const counted = this.#refusals.add(key, record);
    if (counted !== undefined) return counted;
    const first = this.#write(record);
    // With every window taken each further kind is written by itself: slower, never lost.
    if (this.#refusals.full) return first;
    this.#refusals.open(key, record, 0, first);
    try {
      await first;
    } catch (thrown) {
      // Not recorded, so the next one is the first again.
      this.#refusals.forget(key);
      throw thrown;
    }
  }

  refusedEarly(record: AuditDraft): void {
    const key = JSON.stringify([record.remoteAddress, record.code]);
    if (this.#early.add(key, record) !== undefined) return;
    // Of more addresses than there are windows only the number is kept.
    const whole = this.#early.full ? { ...record, remoteAddress: null } : record;
    const wholeKey = this.#early.full ? JSON.stringify([null, record.code]) : key;
    if (this.#early.add(wholeKey, whole) === undefined) this.#early.open(wholeKey, whole, 1, Promise.resolve());
  }

  /** Resolves also when the journal cannot be written, because reads go on then (B29): what is counted stays counted. */
  async flush(): Promise<void> {
    await Promise.all([this.#refusals.flush(), this.#early.flush()]);
  }

  /** Before the journal closes: writes what is counted, then counts no more. */
  async close(): Promise<void> {
    await this.flush();
    this.#refusals.stop();
    this.#early.stop();
  }
}
