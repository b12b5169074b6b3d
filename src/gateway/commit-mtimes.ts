import type { Intent } from '../domain/intent.ts';
import type { JournalOp, JournalStart } from '../domain/journal.ts';

/**
 * The highest mtime of our own commits per volume, kept in the journal with each of them: after a restart versions go on above it,
 * also when the clock of the host was set back, so two versions never share an ETag.
 */
export class CommitMtimes {
  readonly #highest = new Map<string, bigint>();
  readonly #start: Pick<JournalStart, 'meta'>;

  constructor(start: Pick<JournalStart, 'meta'>) {
    this.#start = start;
  }

  highest(volume: string): bigint {
    const known = this.#highest.get(volume);
    if (known !== undefined) return known;
    const stored = BigInt(this.#start.meta(metaName(volume)) ?? '0');
    this.#highest.set(volume, stored);
    return stored;
  }

  /** The op that goes into the unit of these intents; none when they write no bytes. */
  raise(volume: string, intents: readonly Intent[]): JournalOp[] {
    let highest = this.highest(volume);
    let raised = false;
    for (const { staged } of intents) {
      if (staged === null) continue;
      raised = true;
      if (staged.mtimeNs > highest) highest = staged.mtimeNs;
    }
    if (!raised) return [];
    this.#highest.set(volume, highest);
    return [{ op: 'meta_put', name: metaName(volume), value: highest.toString() }];
  }
}

function metaName(volume: string): string {
  return `mtime:${volume}`;
}
