import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import { STATUS_CODES } from 'node:http';
import type { HttpDeps } from '../http-deps.ts';

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
