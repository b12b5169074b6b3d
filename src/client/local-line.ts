import type { ClientClock, ClientTimer } from './clock.ts';
import type { LeaseMode } from './contract/answers.ts';
import { FencegateError } from './errors.ts';

/** A task of this process that holds, or waits for, the right to ask the gateway for a lease. */
export interface Place {
  readonly resources: readonly string[];
  readonly mode: LeaseMode;
}

interface Waiter {
  readonly entry: Entry;
  readonly priority: number;
  readonly admit: () => void;
}

class Entry implements Place {
  readonly resources: readonly string[];
  readonly #key: string;
  /** The reader that wants to become this writer, and is not in its own way. */
  readonly #upgradeOf: Entry | null;
  mode: LeaseMode;

  constructor(resources: readonly string[], mode: LeaseMode, upgradeOf: Entry | null = null) {
    this.resources = [...resources].sort();
    this.#key = JSON.stringify(this.resources);
    this.#upgradeOf = upgradeOf;
    this.mode = mode;
  }

  conflictsWith(other: Entry): boolean {
    if (other === this.#upgradeOf) return false;
    if (!this.resources.some((resource) => other.resources.includes(resource))) return false;
    // Readers share one lease of the session, and a lease is over exactly its resources.
    return this.mode === 'exclusive' || other.mode === 'exclusive' || this.#key !== other.#key;
  }
}

export interface LineOptions {
  readonly priority: number;
  /** `undefined`: without limit. */
  readonly waitMs: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The tasks of one process in front of each resource. The gateway cannot tell them apart, because they share a session, and would let
 * the second one re-enter; so they wait for each other here, first come first served among equal priorities.
 */
export class LocalLine {
  readonly #clock: ClientClock;
  readonly #held = new Set<Entry>();
  #waiting: Waiter[] = [];
  readonly #upgrading = new Set<Entry>();

  constructor(clock: ClientClock) {
    this.#clock = clock;
  }

  /** Resolves when no other task of this process is in the way. Rejects with `lock_not_acquired`, or with the signal's reason. */
  async enter(resources: readonly string[], mode: LeaseMode, options: LineOptions): Promise<Place> {
    const entry = new Entry(resources, mode);
    await this.#admission(entry, options, options.priority);
    return entry;
  }

  /** Idempotent. */
  leave(place: Place): void {
    if (!(place instanceof Entry) || !this.#held.delete(place)) return;
    this.#pump();
  }

  /** A reader that becomes the writer waits until it is alone here. Rejects with `upgrade_conflict` when another one already does. */
  async upgrade(place: Place, options: Omit<LineOptions, 'priority'>): Promise<void> {
    if (!(place instanceof Entry) || place.mode === 'exclusive') return;
    const wanted = new Entry(place.resources, 'exclusive', place);
    if ([...this.#upgrading].some((other) => wanted.conflictsWith(other))) {
      throw new FencegateError('upgrade_conflict', { detail: 'Another task of this process is already becoming the writer.' });
    }
    this.#upgrading.add(wanted);
    try {
      // Ahead of everybody who waits: it holds already.
      await this.#admission(wanted, options, Number.POSITIVE_INFINITY);
      place.mode = 'exclusive';
    } finally {
      this.#upgrading.delete(wanted);
      this.#held.delete(wanted);
    }
  }

  downgrade(place: Place): void {
    if (!(place instanceof Entry)) return;
    place.mode = 'shared';
    this.#pump();
  }

  #admission(entry: Entry, { waitMs, signal }: Omit<LineOptions, 'priority'>, priority: number): Promise<void> {
    return new Promise((resolve, reject) => {
      let timer: ClientTimer | null = null;
      const finish = (end: () => void): void => {
        timer?.cancel();
        signal?.removeEventListener('abort', onAbort);
        this.#waiting = this.#waiting.filter((waiter) => waiter.entry !== entry);
        end();
      };
      const giveUp = (error: unknown): void => {
        finish(() => reject(error));
        this.#pump();
      };
      const onAbort = (): void => giveUp(signal?.reason);
      const before = this.#waiting.findIndex((waiter) => waiter.priority < priority);
      this.#waiting.splice(before === -1 ? this.#waiting.length : before, 0, { entry, priority, admit: () => finish(resolve) });
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#pump();
      if (this.#held.has(entry)) return;
      if (waitMs === undefined) return;
      if (waitMs <= 0) giveUp(occupied());
      else timer = this.#clock.after(waitMs, () => giveUp(occupied()), true);
    });
  }

  /** Lets in whoever is in nobody's way: neither of a holder nor of one who came before. */
  #pump(): void {
    const ahead: Entry[] = [];
    for (const { entry, admit } of [...this.#waiting]) {
      const free = ![...this.#held, ...ahead].some((other) => entry.conflictsWith(other));
      if (!free) ahead.push(entry);
      else {
        this.#held.add(entry);
        admit();
      }
    }
  }
}

function occupied(): FencegateError {
  return new FencegateError('lock_not_acquired', {
    detail: 'Another task of this process holds the resource, or is before this one.',
    members: { local: true },
  });
}
