import type { AuditDraft } from '../domain/audit-record.ts';
import type { Clock } from '../domain/clock.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { RefusalLog } from '../domain/journal.ts';
import { LIMITS } from '../domain/limits.ts';

/** Refusals that a client gets because it does not know that its lease is over. */
const UNAWARE: ReadonlySet<ErrorCode> = new Set([
  'stale_token',
  'lease_ended',
  'lease_not_held',
  'lease_is_shared',
  'not_lease_owner',
  'token_not_issued',
]);

export interface RepeatedRefusal {
  readonly count: number;
  readonly firstAt: string;
  /** The latest one. */
  readonly record: AuditDraft;
}

interface Tally {
  count: number;
  readonly firstAt: string;
  readonly sinceMs: number;
  record: AuditDraft;
  /** How many the window before had: so that a steady client does not vanish whenever a window begins. */
  readonly before: number;
}

/**
 * Counts such refusals by client, resource and code in the last minutes: a zombie shows by its persistence (R22). In memory, bounded; it
 * listens to the refusals on their way to the audit log.
 */
export class RefusalWindow {
  readonly #clock: Clock;
  readonly #tallies = new Map<string, Tally>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The same log, heard by this window. */
  hearing(refusals: RefusalLog): RefusalLog {
    return {
      refused: (record) => {
        this.#note(record);
        return refusals.refused(record);
      },
      refusedEarly: (record) => refusals.refusedEarly(record),
      flush: () => refusals.flush(),
    };
  }

  /** Who was refused often enough to be told about, most often first. */
  repeated(): readonly RepeatedRefusal[] {
    const nowMs = this.#clock.monotonicMs();
    const found: RepeatedRefusal[] = [];
    for (const [key, { count, before, firstAt, sinceMs, record }] of this.#tallies) {
      const ageMs = nowMs - sinceMs;
      if (ageMs >= 2 * LIMITS.refusalsRepeatedWindowMs) this.#tallies.delete(key);
      else if (count + before >= LIMITS.refusalsRepeatedMin) found.push({ count: count + before, firstAt, record });
    }
    return found.sort((a, b) => b.count - a.count).slice(0, LIMITS.doctorFindingsMax);
  }

  #note(record: AuditDraft): void {
    if (record.code === null || !UNAWARE.has(record.code)) return;
    const key = JSON.stringify([record.principal, record.clientId, record.remoteAddress, record.code, record.volume, record.path]);
    const nowMs = this.#clock.monotonicMs();
    const open = this.#tallies.get(key);
    if (open !== undefined && nowMs - open.sinceMs < LIMITS.refusalsRepeatedWindowMs) {
      open.count += record.count;
      open.record = record;
      return;
    }
    const follows = open !== undefined && nowMs - open.sinceMs < 2 * LIMITS.refusalsRepeatedWindowMs;
    this.#tallies.delete(key);
    this.#tallies.set(key, {
      count: record.count,
      firstAt: follows ? open.firstAt : record.at,
      sinceMs: nowMs,
      record,
      before: follows ? open.count : 0,
    });
    if (this.#tallies.size > LIMITS.refusalsRepeatedKeysMax) {
      const [oldest] = this.#tallies.keys();
      if (oldest !== undefined) this.#tallies.delete(oldest);
    }
  }
}
