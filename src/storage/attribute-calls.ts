import { Worker } from 'node:worker_threads';
import { threadEntered, threadLeft } from '../domain/threads-inside.ts';
import { type AttributeJob, type AttributeLibrary, hasWork } from './attribute-jobs.ts';

export interface AttributeRequest {
  readonly id: number;
  readonly job: AttributeJob;
}

export interface AttributeAnswer {
  readonly id: number;
  /** How many attributes the file should have and does not. */
  readonly notCarried: number;
  readonly failure: { readonly message: string; readonly code?: string; readonly errno?: number } | null;
}

/** Node has no such calls. The library is native code and optional; where it is missing, a replaced file loses its attributes, and the start says so. */
async function loaded(): Promise<AttributeLibrary | null> {
  try {
    return await import('fs-xattr');
  } catch {
    return null;
  }
}

const library = await loaded();

export const hasAttributeLibrary = library !== null;

/** A thread runs compiled code. When this module is run from its source (tests), that is the build beside it. */
function startThread(): Worker {
  const module = new URL('./attribute-thread.js', import.meta.url);
  if (import.meta.url.endsWith('.ts')) module.pathname = module.pathname.replace('/src/', '/dist/');
  return new Worker(module);
}

interface Waiting {
  readonly resolve: (notCarried: number) => void;
  readonly reject: (thrown: Error) => void;
}

/** One thread and what waits for it, in its order; bounded by the lane that every call comes through. */
class AttributeThread {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;
  /** Why it takes no more calls. */
  #over: Error | null = null;

  constructor(worker: Worker) {
    this.#worker = worker;
    // By itself it is no reason for the process to go on.
    worker.unref();
    worker.on('message', (answer: AttributeAnswer) => this.#answered(answer));
    worker.on('error', (thrown) => this.#ended(new Error('the thread for attributes failed', { cause: thrown })));
    worker.on('exit', () => this.#ended(new Error('the thread for attributes has ended')));
  }

  get over(): boolean {
    return this.#over !== null;
  }

  run(job: AttributeJob): Promise<number> {
    if (this.#over !== null) return Promise.reject(this.#over);
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      threadEntered();
      this.#worker.ref();
      this.#worker.postMessage({ id, job } satisfies AttributeRequest);
    });
  }

  /** It ends once it has done what it was told before: at once, or when the kernel lets go of it. It cannot be ended in the middle of a call. */
  end(): void {
    this.#worker.postMessage(null);
  }

  #answered({ id, notCarried, failure }: AttributeAnswer): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#left(id);
    if (failure === null) waiting.resolve(notCarried);
    else waiting.reject(Object.assign(new Error(failure.message), failure));
  }

  #left(id: number): void {
    this.#waiting.delete(id);
    threadLeft();
    if (this.#waiting.size === 0) this.#worker.unref();
  }

  #ended(reason: Error): void {
    this.#over ??= reason;
    for (const [id, { reject }] of this.#waiting) {
      this.#left(id);
      reject(reason);
    }
  }
}

/** One call into the thread of a volume, which may come back late or never. */
export interface AttributeCall {
  readonly done: Promise<void>;
  /** Its deadline has passed: nobody else is to wait behind it. */
  abandon(): void;
}

/**
 * The attribute calls of one volume. The library's calls are synchronous, and on any volume they may hang, so they are made in a thread that is started when
 * the volume is opened. One that hangs is left to itself, and the next call gets a new one; there are never more of them than the volume's lane
 * lets calls hang.
 */
export class AttributeCalls {
  readonly #start: () => Worker;
  readonly #onNotCarried: (count: number) => void;
  #current: AttributeThread | null = null;

  /** @param onNotCarried is told how many attributes a file should have got and did not. */
  constructor(onNotCarried: (count: number) => void, start = startThread) {
    this.#onNotCarried = onNotCarried;
    this.#start = start;
  }

  /** A look on the caller's thread, for a local disk: most files have no attributes, and the way to the thread costs more than all else of the job. */
  isNeeded(job: AttributeJob): boolean {
    return library === null || hasWork(library, job);
  }

  begin(job: AttributeJob): AttributeCall {
    const thread = this.#thread();
    const done = thread.run(job).then((notCarried) => {
      if (notCarried > 0) this.#onNotCarried(notCarried);
    });
    return { done, abandon: () => this.#abandon(thread) };
  }

  /** Without calls in flight: the volume is closed. */
  end(): void {
    if (this.#current !== null) this.#abandon(this.#current);
  }

  #thread(): AttributeThread {
    if (this.#current === null || this.#current.over) this.#current = new AttributeThread(this.#start());
    return this.#current;
  }

  #abandon(thread: AttributeThread): void {
    if (this.#current !== thread) return;
    this.#current = null;
    thread.end();
  }
}
