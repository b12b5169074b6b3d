import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Clock } from '../domain/clock.ts';
import { LIMITS } from '../domain/limits.ts';

/** Requests that have not been answered, so that a stop can wait for them while new connections are still told that it drains. */
export class OpenRequests {
  readonly #open = new Set<FastifyRequest>();
  #whenIdle: (() => void) | null = null;

  /** To be called before the app is ready. */
  constructor(app: FastifyInstance) {
    app.addHook('onRequest', (request, _reply, done) => {
      if (!isStream(request)) this.#open.add(request);
      done();
    });
    app.addHook('onResponse', (request, _reply, done) => {
      // A request that was refused on its way in was never among them.
      this.#open.delete(request);
      if (this.#open.size === 0) this.#whenIdle?.();
      done();
    });
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
