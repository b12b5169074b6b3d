import { type Clock, rfc3339 } from '../domain/clock.ts';
import { LIMITS } from '../domain/limits.ts';
import type { LockView } from '../domain/lock-api.ts';
import type { LockEvent, LockEvents, LockReset, WatchScope } from '../domain/lock-events.ts';
import type { Caller } from '../domain/principal.ts';
import type { EventRing, EventTopic, RingEvent } from './event-ring.ts';

export interface LockWatchDeps {
  readonly clock: Clock;
  readonly ring: EventRing;
  /** The ref of a session that the caller owns. Throws `session_not_found`. */
  readonly ownSessionRef: (caller: Caller, sessionId: string) => Promise<string>;
  /** The present state of a scope, bounded. */
  readonly present: (scope: WatchScope, sessionRef: string | null) => Promise<readonly LockView[]>;
}

/** Watches: told of what was committed, resumed by number, never in the way of the locks themselves (R16). */
export class LockWatch implements LockEvents {
  readonly #deps: LockWatchDeps;

  constructor(deps: LockWatchDeps) {
    this.#deps = deps;
  }

  async watch(caller: Caller, scope: WatchScope, afterSeq: number | null, signal: AbortSignal): Promise<AsyncIterable<LockEvent | LockReset>> {
    const sessionRef = scope.of === 'session' ? await this.#deps.ownSessionRef(caller, scope.sessionId) : null;
    const seq = afterSeq ?? this.#deps.ring.lastSeq;
    return this.#follow(scope, sessionRef, seq, signal);
  }

  async *#follow(scope: WatchScope, sessionRef: string | null, afterSeq: number, signal: AbortSignal): AsyncGenerator<LockEvent | LockReset, void> {
    const { ring } = this.#deps;
    const concerns = matcher(scope, sessionRef);
    const inbox = new Inbox();
    const stop = ring.listen(topicOf(scope, sessionRef), (entry) => {
      if (concerns(entry)) inbox.put(entry.event);
    });
    const onAbort = (): void => inbox.wake();
    signal.addEventListener('abort', onAbort);
    try {
      // The line above hears of everything from now on; what came between is still in the ring.
      const missed = ring.after(afterSeq);
      if (missed === null) yield await this.#reset(scope, sessionRef, inbox);
      else for (const entry of missed) if (concerns(entry)) yield entry.event;
      for (;;) {
        if (inbox.overflowed) {
          yield await this.#reset(scope, sessionRef, inbox);
          continue;
        }
        const event = inbox.take();
        // What happened before the end is told before it.
        if (event === undefined && signal.aborted) return;
        if (event === undefined) await inbox.filled();
        else if (missed === null || event.seq > (missed.at(-1)?.event.seq ?? 0)) yield event;
      }
    } finally {
      stop();
      signal.removeEventListener('abort', onAbort);
    }
  }

  async #reset(scope: WatchScope, sessionRef: string | null, inbox: Inbox): Promise<LockReset> {
    inbox.clear();
    const seq = this.#deps.ring.lastSeq;
    const at = rfc3339(this.#deps.clock.wallMs());
    return { type: 'reset', seq, at, locks: await this.#deps.present(scope, sessionRef) };
  }
}

/** What a slow consumer has not taken yet; bounded. */
class Inbox {
  #events: LockEvent[] = [];
  #wake: (() => void) | null = null;
  overflowed = false;

  put(event: LockEvent): void {
    if (this.#events.length >= LIMITS.lockEventsBufferMax) this.overflowed = true;
    else this.#events.push(event);
    this.wake();
  }

  take(): LockEvent | undefined {
    return this.#events.shift();
  }

  clear(): void {
    this.#events = [];
    this.overflowed = false;
  }

  wake(): void {
    this.#wake?.();
    this.#wake = null;
  }

  filled(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

function topicOf(scope: WatchScope, sessionRef: string | null): EventTopic {
  if (scope.of === 'resource') return `resource ${scope.resource.key}`;
  return scope.of === 'session' ? `session ${sessionRef ?? ''}` : 'all';
}

function matcher(scope: WatchScope, sessionRef: string | null): (entry: RingEvent) => boolean {
  if (scope.of === 'resource') return ({ resource }) => resource === null || resource.key === scope.resource.key;
  if (scope.of === 'session') return (entry) => entry.resource === null || entry.sessionRef === sessionRef;
  return ({ resource }) =>
    resource === null || ((scope.volume === null || resource.volume === scope.volume) && resource.path.startsWith(scope.pathPrefix));
}
