import { Worker } from 'node:worker_threads';
import { GatewayError } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import type { CallMap, CallMessage, ThreadMessage } from './thread-protocol.ts';

/** A thread runs compiled code. When this module is run from its source (tests), that is the build beside it. */
function startThread(name: string, data: object): Worker {
  const module = new URL(`./${name}.js`, import.meta.url);
  if (import.meta.url.endsWith('.ts')) module.pathname = module.pathname.replace('/src/', '/dist/');
  return new Worker(module, { workerData: data });
}

/** The journal's answer when its disk, its file or one of its threads fails. */
export function journalUnavailable(detail: string, cause?: unknown): GatewayError {
  return new GatewayError('journal_unavailable', { detail, retryAfterMs: LIMITS.journalRetryAfterMs, cause });
}

/** A unit whose commit was tried and failed: only the next start knows. */
export function recordInDoubt(cause?: unknown): GatewayError {
  return new GatewayError('outcome_unknown', {
    detail: 'The journal did not say whether this is recorded. Its next start tells.',
    retryAfterMs: LIMITS.journalRetryAfterMs,
    cause,
  });
}

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: GatewayError) => void;
}

/** One thread of the journal and the calls that wait for it. When it dies every call fails, then and later. */
export class ThreadCalls<M extends CallMap> {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  readonly #onEvent: (event: unknown) => void;
  readonly #onDeath: () => void;
  #nextId = 1;
  #dead: GatewayError | null = null;

  constructor(name: string, data: object, listeners: { readonly onEvent: (event: unknown) => void; readonly onDeath: () => void }) {
    this.#onEvent = listeners.onEvent;
    this.#onDeath = listeners.onDeath;
    this.#worker = startThread(name, data);
    this.#worker.on('message', (message: ThreadMessage) => this.#receive(message));
    this.#worker.on('error', (error) => this.#die(journalUnavailable('A thread of the journal failed.', error)));
    this.#worker.on('exit', () => this.#die(journalUnavailable('The journal is closed.')));
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  get isDead(): boolean {
    return this.#dead !== null;
  }

  call<K extends keyof M & string>(name: K, input: M[K]['input']): Promise<M[K]['output']> {
    if (this.#dead !== null) return Promise.reject(this.#dead);
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.#worker.postMessage({ id, name, input } satisfies CallMessage);
    });
  }

  /** Ends the thread; only after it closed its database, or when there is nothing left to lose. */
  async terminate(): Promise<void> {
    await this.#worker.terminate();
  }

  #receive(message: ThreadMessage): void {
    if (message.kind === 'event') {
      this.#onEvent(message.event);
      return;
    }
    const waiting = this.#waiting.get(message.id);
    if (waiting === undefined) return;
    this.#waiting.delete(message.id);
    if (message.kind === 'answer') waiting.resolve(message.value);
    else if (message.failure.code !== null)
      waiting.reject(new GatewayError(message.failure.code, { detail: message.failure.message, retryAfterMs: LIMITS.journalRetryAfterMs }));
    else waiting.reject(journalUnavailable('The journal could not be read or written.', new Error(message.failure.message)));
  }

  #die(reason: GatewayError): void {
    if (this.#dead !== null) return;
    this.#dead = reason;
    for (const { reject } of this.#waiting.values()) reject(reason);
    this.#waiting.clear();
    this.#onDeath();
  }
}
