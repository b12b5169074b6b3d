import { STATUS_CODES } from 'node:http';
import { type FastifyInstance, type FastifyRequest, LogController } from 'fastify';
import fp from 'fastify-plugin';
import type { HttpDeps } from '../http-deps.ts';

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
    app.addHook('onResponse', (request, reply, next) => {
      const { state } = request;
      const line = {
        request_id: request.id,
        method: request.method,
        route: request.routeOptions.url ?? null,
        status: reply.statusCode,
        duration_ms: Math.round(deps.clock.monotonicMs() - state.startedMs),
        principal: state.principal?.name ?? null,
        remote_address: request.ip,
        volume: state.subject?.volume ?? null,
      };
      if (reply.statusCode >= 500) deps.log.warn(line, STATUS_CODES[reply.statusCode] ?? 'failed');
      else deps.log.info(line, 'request');
      next();
    });
    done();
  },
  { name: 'request-log', dependencies: ['arrival'] },
);
