import type { FastifyInstance } from 'fastify';
import type { Metrics } from '../observability/metrics.ts';

/** Counts each answer under its route, not its path: names of files are no labels. */
export function observeRequests(app: FastifyInstance, metrics: Metrics): void {
  app.addHook('onResponse', (request, reply, done) => {
    metrics.request(request.method, request.routeOptions.url ?? 'none', reply.statusCode, reply.elapsedTime / 1_000);
    done();
  });
}
