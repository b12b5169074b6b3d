import { CLIENT_LIMITS } from './client-limits.ts';
import type { ClientClock } from './clock.ts';
import { isFencegateError } from './errors.ts';
import { RETRY_RULES } from './retry-rules.ts';
import { jitteredDelayMs } from './retrying.ts';
import type { Transport } from './transport.ts';
import { type LockEvent, streamOnce } from './watching.ts';

export interface LossWatchListener {
  /** A transition of one of the session's leases, or of all. */
  told(event: LockEvent): void;
  /** From here on nothing is missed. `goesOn`: nor before, unless too much of that is gone. */
  opened(goesOn: boolean): void;
  /** There is no such session any more. */
  gone(sessionId: string): void;
  /** The gateway gives no stream for this session, and will not. */
  refused(error: unknown): void;
}

/**
 * Follows the session's stream of events, so that a lease that was broken is known to be over at once and not with the next heartbeat.
 * The stream tells and holds nothing: losing it costs no lease, and what it misses the heartbeat tells (case R19).
 */
export class LossWatch {
  readonly #transport: Transport;
  readonly #listener: LossWatchListener;
  #sessionId: string | null = null;
  #leave = new AbortController();
  /** Of the last event: a stream that was cut goes on behind it. */
  #lastSeq: number | null = null;

  constructor(transport: Transport, listener: LossWatchListener) {
    this.#transport = transport;
    this.#listener = listener;
  }

  /** Begins soon, so that a lease which is held for a moment only costs no stream; goes on until `rest`. */
  follow(sessionId: string): void {
    if (this.#sessionId === sessionId) return;
    this.rest();
    this.#sessionId = sessionId;
    this.#lastSeq = null;
    this.#leave = new AbortController();
    void this.#run(sessionId, this.#leave.signal);
  }

  rest(): void {
    this.#sessionId = null;
    this.#leave.abort();
  }

  /** Never rejects. */
  async #run(sessionId: string, signal: AbortSignal): Promise<void> {
    const { clock } = this.#transport;
    let delayMs: number = CLIENT_LIMITS.followAfterMs;
    for (let failures = 0; await passes(clock, delayMs, signal); failures += 1) {
      const beganMs = clock.monotonicMs();
      const thrown = await this.#once(sessionId, signal);
      if (signal.aborted) return;
      if (clock.monotonicMs() - beganMs >= CLIENT_LIMITS.retryDelayMsMax) failures = 0;
      const nextMs = this.#delayAfter(thrown, failures);
      if (nextMs === null) {
        if (isFencegateError(thrown, 'session_not_found', 'session_ended')) this.#listener.gone(sessionId);
        else this.#listener.refused(thrown);
        return;
      }
      delayMs = nextMs;
    }
  }

  /** One connection. Resolves with what ended it; `null`: the gateway, as it does when it stops. */
  async #once(sessionId: string, signal: AbortSignal): Promise<unknown> {
    const path = `/v1/sessions/${encodeURIComponent(sessionId)}/watch`;
    const goesOn = this.#lastSeq !== null;
    const onOpen = (): void => this.#listener.opened(goesOn);
    try {
      for await (const event of streamOnce(this.#transport, { path, signal, onOpen, unheld: true }, this.#lastSeq)) {
        this.#lastSeq = event.seq;
        // A reset says that something was missed; the heartbeat that began with the connection asks for all of that.
        if (event.type !== 'reset') this.#listener.told(event);
      }
      return null;
    } catch (thrown) {
      return thrown;
    }
  }

  /** `null`: there will be no stream. */
  #delayAfter(thrown: unknown, failures: number): number | null {
    const { random } = this.#transport;
    const delayMs = jitteredDelayMs(failures, random);
    if (thrown === null) return delayMs;
    if (!isFencegateError(thrown) || RETRY_RULES[thrown.code] === undefined) return null;
    // All places for streams are taken: whoever has none must not ask again and again.
    if (thrown.code === 'overloaded') return Math.max(delayMs, random() * CLIENT_LIMITS.followAgainMsMax);
    return (thrown.retryAfterMs ?? 0) + delayMs;
  }
}

/** False when `signal` aborts before. Keeps no process alive. */
function passes(clock: ClientClock, delayMs: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const onAbort = (): void => {
      timer.cancel();
      resolve(false);
    };
    const timer = clock.after(delayMs, () => {
      signal.removeEventListener('abort', onAbort);
      resolve(true);
    });
    signal.addEventListener('abort', onAbort, { once: true });
  });
}
