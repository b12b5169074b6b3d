import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Clock } from '../domain/clock.ts';
import { LIMITS } from '../domain/limits.ts';
import { onRequestEnd } from './request-end.ts';

/**
 * Requests that are not over, so that a stop can wait for them while new connections are still told that it drains. One is over when its
 * answer is out or its client is gone, and its handler has come to an end: a write whose client went away may be in its commit section.
 */
export class OpenRequests {
  readonly #open = new Set<FastifyRequest>();
  readonly #handled = new Set<FastifyRequest>();
  #whenIdle: (() => void) | null = null;

  /** To be called before the app is ready. */
  constructor(app: FastifyInstance) {
    const closed = new WeakSet<FastifyRequest>();
    app.addHook('onRequest', (request, _reply, done) => {
      if (!isStream(request)) this.#open.add(request);
      done();
    });
    app.addHook('preHandler', (request, _reply, done) => {
      this.#handled.add(request);
      done();
    });
    // What a handler answers, or throws, passes here, whether or not somebody is left to get it.
    app.addHook('onSend', (request, _reply, _payload, done) => {
      this.#handled.delete(request);
      if (closed.has(request)) this.#over(request);
      done();
    });
    onRequestEnd(app, (request) => {
      closed.add(request);
      if (!this.#handled.has(request)) this.#over(request);
    });
  }

  #over(request: FastifyRequest): void {
    this.#open.delete(request);
    if (this.#open.size === 0) this.#whenIdle?.();
  }

  /** Resolves when nothing is open, or when `signal` aborts. */
  idle(signal: AbortSignal): Promise<void> {
    if (this.#open.size === 0 || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      this.#whenIdle = resolve;
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }
}

/** A watch lasts as long as its client likes; nobody waits for its end. */
function isStream(request: FastifyRequest): boolean {
  return request.routeOptions.url?.includes('/watch') === true;
}

/** Closes the listener and every connection: those that are busy get a moment to be answered. */
export async function closeApp(app: FastifyInstance, clock: Clock): Promise<void> {
  const forced = clock.after(LIMITS.closeConnectionsMs, () => app.server.closeAllConnections());
  await app.close();
  forced.cancel();
}
