import { Type } from '@sinclair/typebox';
import { Ready } from '../schemas/admin.ts';
import { answers } from '../schemas/common.ts';
import type { RouteOptions, TypedApp } from '../typed-app.ts';
import { readyJson } from '../views.ts';

const Alive = Type.Object({ status: Type.String() });
const PROMETHEUS = 'text/plain; version=0.0.4; charset=utf-8';

/** For probes. None of these touches a volume or waits for anything that could hang. */
export function healthRoutes(app: TypedApp, { deps }: RouteOptions): void {
  app.get(
    '/healthz',
    {
      config: { access: 'open' },
      schema: {
        tags: ['operation'],
        summary: 'The process lives',
        response: answers(
          { 200: { description: 'Also while suspended, while a volume hangs, and while a start waits for ZooKeeper', schema: Alive } },
          [],
          { open: true },
        ),
      },
    },
    async () => ({ status: 'ok' }),
  );

  app.get(
    '/readyz',
    {
      config: { access: 'open' },
      schema: {
        tags: ['operation'],
        summary: 'Whether writes are taken',
        response: {
          ...answers(
            {
              200: { description: 'At least one volume can be written', schema: Ready },
              503: {
                description: 'No volume can be written, a start waits for ZooKeeper, or draining',
                schema: Ready,
                headers: { 'Retry-After': 'Seconds' },
              },
            },
            [],
            { open: true },
          ),
        },
      },
    },
    async (_request, reply) => {
      const readiness = deps.health.readiness();
      const ready = readiness.ready && !deps.isDraining();
      reply.header('cache-control', 'no-store');
      if (!ready) reply.code(503).header('retry-after', '1');
      return readyJson({ ...readiness, ready });
    },
  );

  app.get(
    '/metrics',
    {
      config: { access: 'any' },
      schema: {
        tags: ['operation'],
        summary: 'Prometheus metrics',
        response: answers({ 200: { description: 'Text exposition format', schema: Type.String(), mediaType: 'text/plain' } }, []),
      },
    },
    async (_request, reply) => reply.type(PROMETHEUS).send(await deps.metricsText()),
  );
}
