import { CLIENT_LIMITS } from './client-limits.ts';
import type { ClientClock } from './clock.ts';
import type { CycleMember, LeaseMode, Lock, LockEventType } from './contract/answers.ts';
import { FencegateError, isFencegateError } from './errors.ts';
import { EventStreamReader, type StreamEvent } from './event-stream-reader.ts';
import { JoinedSignal } from './joined-signal.ts';
import { pause } from './pause.ts';
import { jitteredDelayMs, ruleOf } from './retrying.ts';
import type { Query, Transport } from './transport.ts';
import { unreachable } from './unreachable.ts';

/** A transition of a lock, in the order in which it was made durable. */
export interface LockEvent {
  readonly type: LockEventType;
  /** Grows by event. */
  readonly seq: number;
  /** RFC 3339 UTC. */
  readonly at: string;
  /** `null` for what concerns everything: `suspended`, `reconnected`. */
  readonly resource: string | null;
  readonly lease_ref: string | null;
  readonly client_id: string | null;
  readonly mode: LeaseMode | null;
  readonly fencing_token: string | null;
  readonly reason: string | null;
  /** Of a `deadlock`: the waits that went round; `null` in all other events. */
  readonly cycle: readonly CycleMember[] | null;
}

/** Events were missed: the present state instead, as of `seq`. */
export interface LockReset {
  readonly type: 'reset';
  readonly seq: number;
  readonly at: string;
  readonly locks: readonly Lock[];
}

export type WatchEvent = LockEvent | LockReset;

export interface WatchRequest {
  readonly path: string;
  readonly query?: Query;
  /** `seq` of the last event that is known already. */
  readonly afterSeq?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called when a connection is watching: what happens from here on is sent. */
  readonly onOpen?: () => void;
  /** The connection keeps no process alive. */
  readonly unheld?: boolean;
}

/**
 * Events as they come. A stream that is cut is opened again where it broke off: losing a stream is not losing a lease, and no end (case
 * R19). Ends only with the signal's reason, or with what the gateway refuses for good.
 */
export async function* watching(transport: Transport, request: WatchRequest): AsyncGenerator<WatchEvent> {
  const { clock, random } = transport;
  let lastSeq = request.afterSeq ?? null;
  for (let failures = 0; ; failures += 1) {
    let askedMs = 0;
    try {
      for await (const event of streamOnce(transport, request, lastSeq)) {
        failures = 0;
        if (event.type !== 'reset' && lastSeq !== null && event.seq <= lastSeq) continue;
        lastSeq = event.seq;
        yield event;
      }
    } catch (thrown) {
      if (!isFencegateError(thrown) || ruleOf(thrown) === undefined) throw thrown;
      askedMs = thrown.retryAfterMs ?? 0;
    }
    // Whoever has seen no event yet cannot say where to go on, and asks for the present state.
    lastSeq ??= 0;
    await pause(clock, askedMs + jitteredDelayMs(failures, random), request.signal);
  }
}

/** One connection. Ends when the gateway ends it; rejects with `gateway_unreachable` when it breaks or falls silent. */
export async function* streamOnce(transport: Transport, request: WatchRequest, lastSeq: number | null): AsyncGenerator<WatchEvent> {
  const { path, query = {}, signal, onOpen, unheld = false } = request;
  const headers: Record<string, string> = { accept: 'text/event-stream', ...(lastSeq === null ? {} : { 'last-event-id': String(lastSeq) }) };
  const silence = new Silence(transport.clock, signal);
  try {
    const { response, done } = await transport.open({ method: 'GET', path, query, headers, signal: silence.signal, unheld });
    try {
      const reader = new EventStreamReader();
      onOpen?.();
      silence.listen();
      for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
        // How long whoever reads this takes is not the stream's silence.
        silence.rest();
        for (const event of reader.read(chunk)) yield parsed(event);
        silence.listen();
      }
    } finally {
      done();
    }
  } catch (thrown) {
    throw transport.broken(thrown, signal);
  } finally {
    silence.end();
  }
}

/** Ends a connection on which not even a comment came for a while. */
class Silence {
  readonly #clock: ClientClock;
  readonly #controller = new AbortController();
  readonly #joined: JoinedSignal;
  #cancel = (): void => undefined;

  constructor(clock: ClientClock, signal: AbortSignal | undefined) {
    this.#clock = clock;
    this.#joined = new JoinedSignal(clock, [signal, this.#controller.signal], null);
  }

  get signal(): AbortSignal {
    return this.#joined.signal;
  }

  listen(): void {
    this.#cancel();
    const timer = this.#clock.after(CLIENT_LIMITS.streamQuietMs, () => this.#controller.abort(unreachable('the stream fell silent', undefined)));
    this.#cancel = () => timer.cancel();
  }

  rest(): void {
    this.#cancel();
  }

  end(): void {
    this.#cancel();
    this.#joined.dispose();
  }
}

function parsed({ type, data }: StreamEvent): WatchEvent {
  try {
    return { ...JSON.parse(data), type } as WatchEvent;
  } catch (cause) {
    throw new FencegateError('unexpected_answer', { detail: 'An event of the stream is not JSON.', cause });
  }
}
