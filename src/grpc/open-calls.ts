import { setMaxListeners } from 'node:events';
import { refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import type { OpenCall } from './open-call.ts';

type Kind = 'call' | 'stream';

/** Every call that has not been answered: bounded, waited for at the end, and told when the gateway waits no longer. */
export class OpenCalls {
  readonly #open: Readonly<Record<Kind, Set<OpenCall>>> = { call: new Set(), stream: new Set() };
  readonly #deadline: AbortSignal;
  #whenIdle: (() => void) | null = null;

  constructor(deadline: AbortSignal) {
    this.#deadline = deadline;
    setMaxListeners(0, deadline);
    deadline.addEventListener('abort', () => {
      for (const call of [...this.#open.call, ...this.#open.stream]) call.abort(deadline.reason);
    });
  }

  /** @returns to be called when it was answered. */
  begin(call: OpenCall, kind: Kind): () => void {
    const open = this.#open[kind];
    open.add(call);
    if (this.#deadline.aborted) call.abort(this.#deadline.reason);
    return () => {
      open.delete(call);
      if (this.#open.call.size === 0) this.#whenIdle?.();
    };
  }

  /** Throws `overloaded`. Whoever keeps a lease is not asked: refused, it would only make the load worse. */
  assertRoom(): void {
    if (this.#open.call.size > LIMITS.grpcCallsMax) throw refuse('overloaded', `${LIMITS.grpcCallsMax} calls are already open.`);
  }

  /** The same for streams, each of which has a place at the source of events. */
  assertRoomForStream(): void {
    if (this.#open.stream.size > LIMITS.watchesMax) throw refuse('overloaded', `${LIMITS.watchesMax} streams are already open.`);
  }

  /** Resolves when no call is open (a stream lasts as long as its client likes), or when `signal` aborts. */
  idle(signal: AbortSignal): Promise<void> {
    if (this.#open.call.size === 0 || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      this.#whenIdle = resolve;
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }
}
