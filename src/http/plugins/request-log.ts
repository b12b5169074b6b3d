import { STATUS_CODES } from 'node:http';
import { type FastifyInstance, type FastifyRequest, LogController } from 'fastify';
import fp from 'fastify-plugin';
import type { HttpDeps } from '../http-deps.ts';
import { CLIENT_WENT_AWAY, onRequestEnd } from '../request-end.ts';

/** Silences the framework's own request lines, which hold URLs; keeps word of answers that broke off, under our own names. */
export class PatternLog extends LogController {
  readonly #log: HttpDeps['log'];

  constructor(log: HttpDeps['log']) {
    super({ disableRequestLogging: true });
    this.#log = log;
  }

  override streamError(error: Error, request: FastifyRequest): void {
    const line = { request_id: request.id, route: request.routeOptions.url ?? null };
    // A reader that goes away early is everyday business.
    if ('code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE') this.#log.debug(line, 'the client went away during the answer');
    else this.#log.warn({ ...line, err: error }, 'the answer broke off');
  }
}

/** One line per answer. It names the route's pattern, never the URL: lease and session ids in URLs are secrets of their holder. */
export const requestLog = fp(
  (app: FastifyInstance, { deps }: { deps: HttpDeps }, done: () => void) => {
    onRequestEnd(app, (request, _reply, status) => {
      const { state } = request;
      const line = {
        request_id: request.id,
        method: request.method,
        route: request.routeOptions.url ?? null,
        status,
        duration_ms: Math.round(deps.clock.monotonicMs() - state.startedMs),
        principal: state.principal?.name ?? null,
        remote_address: request.ip,
        volume: state.subject?.volume ?? null,
      };
      if (status >= 500) deps.log.warn(line, STATUS_CODES[status] ?? 'failed');
      else deps.log.info(line, status === CLIENT_WENT_AWAY ? 'the client went away before the answer' : 'request');
    });
    done();
  },
  { name: 'request-log', dependencies: ['arrival'] },
);
