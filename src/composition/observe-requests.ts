import type { FastifyInstance } from 'fastify';
import { onRequestEnd } from '../http/request-end.ts';
import type { Metrics } from '../observability/metrics.ts';

/** Counts each answer under its route, not its path: names of files are no labels. */
export function observeRequests(app: FastifyInstance, metrics: Metrics): void {
  onRequestEnd(app, (request, reply, status) =>
    metrics.request(request.method, request.routeOptions.url ?? 'none', status, reply.elapsedTime / 1_000),
  );
}
