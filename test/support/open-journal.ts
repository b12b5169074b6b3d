import { onTestFinished, vi } from 'vitest';
import { type JournalOptions, type OpenedJournal, openJournal } from '../../src/journal/open-journal.ts';
import { journalOptions } from './journal-options.ts';

// From sources each of the journal's two threads loads its loader first, which takes seconds on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

/** A real journal in `dataDirectory`, closed when the running test ends. */
export async function openTestJournal(dataDirectory: string, changes: Partial<JournalOptions> = {}): Promise<OpenedJournal> {
  const opened = await openJournal(journalOptions(dataDirectory, changes));
  onTestFinished(() => opened.close());
  return opened;
}
