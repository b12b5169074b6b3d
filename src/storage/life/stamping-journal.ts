import type { Journal, JournalOp } from '../../domain/journal.ts';

/** A volume's own memory of the last token. */
export interface IssuedTokens {
  noteIssued(token: bigint): void;
}

/**
 * Tells the volumes of every token whose mark has become durable, and of none before: a stamp that is ahead of the journal must
 * mean that the journal was put back, never that a commit was lost on the way.
 */
export function noteMarks(ops: readonly JournalOp[], volume: (name: string) => IssuedTokens | undefined): void {
  for (const op of ops) {
    if (op.op === 'raise_mark') volume(op.resource.volume)?.noteIssued(op.token);
  }
}

/** The same journal, with its marks noted on the volumes. */
export function stampingJournal(journal: Pick<Journal, 'commit'>, volume: (name: string) => IssuedTokens | undefined): Journal['commit'] {
  return async (ops) => {
    const receipt = await journal.commit(ops);
    noteMarks(ops, volume);
    return receipt;
  };
}
