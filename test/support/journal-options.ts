import { randomBytes } from 'node:crypto';
import type { Clock } from '../../src/domain/clock.ts';
import type { JournalOptions } from '../../src/journal/open-journal.ts';

export const systemRandom = { bytes: (count: number): Uint8Array => randomBytes(count) };

export const realClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  machine: () => ({ bootId: 'this boot', uptimeMs: performance.now() }),
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs).unref();
    return { cancel: () => clearTimeout(timer) };
  },
};

/** Options of a journal with a plain chain that keeps everything; each may be replaced. */
export function journalOptions(dataDirectory: string, changes: Partial<JournalOptions> = {}): JournalOptions {
  return {
    dataDirectory,
    clock: realClock,
    random: systemRandom,
    takeoverAfterMs: 15_000,
    auditKeys: [],
    retention: { keepDays: null, keepBytes: null },
    ...changes,
  };
}
