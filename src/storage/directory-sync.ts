import type { Descriptor } from './descriptor.ts';
import type { FileCalls } from './file-calls.ts';

interface Running {
  readonly current: Promise<void>;
  /** The sync that the directory's next waiters share; it begins when the present one is over. */
  next: Promise<void> | null;
  /** Their descriptors of the directory: a waiter that gave up may have closed its own meanwhile. */
  readonly waiting: Descriptor[];
}

/**
 * Durable names (trap F1): fsync of a directory, shared. Whoever comes while a sync runs may have changed the directory after it began,
 * so it joins the *next* one. A failure reaches everybody who shared the sync, and nobody retries it (trap F3).
 */
export class DirectorySync {
  readonly #calls: Pick<FileCalls, 'fsync' | 'fstat'>;
  readonly #running = new Map<string, Running>();

  constructor(calls: Pick<FileCalls, 'fsync' | 'fstat'>) {
    this.#calls = calls;
  }

  /** Resolves when every change of the directory that was made before this call is durable. */
  async sync(directory: Descriptor): Promise<void> {
    const { dev, ino } = await this.#calls.fstat(directory);
    return this.syncAs(`${dev}:${ino}`, directory);
  }

  /** The same where the directory's identity is known; two descriptors of one directory share by it. */
  syncAs(identity: string, directory: Descriptor): Promise<void> {
    const running = this.#running.get(identity);
    if (running === undefined) return this.#start(identity, directory);
    running.waiting.push(directory);
    const begin = (): Promise<void> => this.#start(identity, running.waiting.find((each) => !each.closed) ?? directory);
    running.next ??= running.current.then(begin, begin);
    return running.next;
  }

  #start(identity: string, directory: Descriptor): Promise<void> {
    const running: Running = { current: this.#calls.fsync(directory), next: null, waiting: [] };
    this.#running.set(identity, running);
    const over = (): void => {
      if (running.next === null && this.#running.get(identity) === running) this.#running.delete(identity);
    };
    running.current.then(over, over);
    return running.current;
  }
}
