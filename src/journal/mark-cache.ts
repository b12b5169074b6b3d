import { LRUCache } from 'lru-cache';
import type { Mark } from '../domain/journal.ts';

interface PendingRead {
  readonly answer: Promise<Mark | null>;
  /** The highest mark that became durable while the read was under way. */
  raised: Mark | null;
}

function higher(a: Mark | null, b: Mark | null): Mark | null {
  if (a === null || b === null) return a ?? b;
  const top = a.token >= b.token ? a : b;
  return top.everNamed === (a.everNamed || b.everNamed) ? top : { ...top, everNamed: true };
}

/**
 * Marks in memory, raised when their unit is durable. An answer of the reader that was overtaken by a raise never lowers one (I2),
 * not even when the raised entry has been evicted meanwhile.
 */
export class MarkCache {
  readonly #marks: LRUCache<string, Mark>;
  readonly #reads = new Map<string, PendingRead>();
  readonly #read: (resourceKey: string) => Promise<Mark | null>;

  constructor(entriesMax: number, read: (resourceKey: string) => Promise<Mark | null>) {
    // With `max` it would set all entries aside at once.
    this.#marks = new LRUCache({ maxSize: entriesMax, sizeCalculation: () => 1 });
    this.#read = read;
  }

  raise(resourceKey: string, mark: Mark): void {
    const known = higher(this.#marks.get(resourceKey) ?? null, mark);
    if (known !== null) this.#marks.set(resourceKey, known);
    const read = this.#reads.get(resourceKey);
    if (read !== undefined) read.raised = higher(read.raised, mark);
  }

  get(resourceKey: string): Promise<Mark | null> {
    const known = this.#marks.get(resourceKey);
    if (known !== undefined) return Promise.resolve(known);
    const under = this.#reads.get(resourceKey);
    if (under !== undefined) return under.answer;
    const answer = this.#fetch(resourceKey);
    // Nothing else runs before this line: `#fetch` stops at its first await.
    this.#reads.set(resourceKey, { answer, raised: null });
    return answer;
  }

  async #fetch(resourceKey: string): Promise<Mark | null> {
    try {
      const stored = await this.#read(resourceKey);
      const mark = higher(stored, this.#reads.get(resourceKey)?.raised ?? null);
      if (mark !== null) this.raise(resourceKey, mark);
      return mark;
    } finally {
      this.#reads.delete(resourceKey);
    }
  }
}
