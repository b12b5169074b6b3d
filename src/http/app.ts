import { setMaxListeners } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import fastify, { type FastifyBaseLogger, type FastifyInstance } from 'fastify';
import { randomName } from '../domain/clock.ts';
import { LIMITS } from '../domain/limits.ts';
import { isRequestId } from '../domain/sent-text.ts';
import { clientErrorHandler, tunnelRefusal } from './client-error.ts';
import type { HttpDeps } from './http-deps.ts';
import { OpenWatches } from './open-watches.ts';
import { admission } from './plugins/admission.ts';
import { apiDocs } from './plugins/api-docs.ts';
import { arrival } from './plugins/arrival.ts';
import { bodies, streamedBodies } from './plugins/bodies.ts';
import { problems } from './plugins/problems.ts';
import { PatternLog, requestLog } from './plugins/request-log.ts';
import { recordBrokenRequest } from './refusal-record.ts';
import { routedUrl } from './request-target.ts';
import { adminRoutes } from './routes/admin.ts';
import { auditRoutes } from './routes/audit.ts';
import { readRoutes } from './routes/files-read.ts';
import { writeRoutes } from './routes/files-write.ts';
import { healthRoutes } from './routes/health.ts';
import { leaseRoutes } from './routes/leases.ts';
import { lockRoutes, watchRoutes } from './routes/locks.ts';
import { pageRoutes } from './routes/pages.ts';
import { sessionRoutes } from './routes/sessions.ts';
import { transferRoutes } from './routes/transfers.ts';
import { volumeRoutes } from './routes/volumes.ts';
import { buildSerializer } from './serializer.ts';
import { createHttpServer } from './server.ts';
import type { TypedApp } from './typed-app.ts';
import { refuseUnknownQuery } from './unknown-query.ts';
import { UploadSlots } from './upload-slots.ts';
import { buildValidator } from './validator.ts';

const REQUEST_ID_BYTES = 12;

/** Builds the HTTP server over the ports. Nothing listens yet: `app.listen({ host, port })` starts it, `app.close()` ends it. */
export function buildApp(deps: HttpDeps): FastifyInstance {
  // Every running request listens; the default of ten would be reported as a leak.
  setMaxListeners(0, deps.deadline);
  const newRequestId = (): string => `req_${randomName(deps.random, REQUEST_ID_BYTES)}`;
  const app = fastify<Server, IncomingMessage, ServerResponse, FastifyBaseLogger>({
    loggerInstance: deps.log,
    logController: new PatternLog(deps.log),
    schemaController: { compilersFactory: { buildValidator, buildSerializer } },
    serverFactory: (handler) => createHttpServer(handler, deps.settings.tls, deps.clock),
    clientErrorHandler: clientErrorHandler(deps.clock, newRequestId, (refusal) => recordBrokenRequest(deps, refusal)),
    rewriteUrl: ({ url = '/' }) => routedUrl(url),
    genReqId: ({ headers: { 'x-request-id': sent } }) => (typeof sent === 'string' && isRequestId(sent) ? sent : newRequestId()),
    requestIdHeader: false,
    bodyLimit: LIMITS.jsonBodyBytesMax,
    // Never reached: the length of the URL is judged by us, in the form of every other refusal.
    routerOptions: { maxParamLength: LIMITS.headerBytesMax },
    // Stopping is announced by `isDraining`; what was already let in is answered.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
  });
  app.server.on('connect', tunnelRefusal(deps.clock, newRequestId));
  // A logger of its own for each request costs more than our one line per answer needs.
  app.setChildLoggerFactory((logger) => logger);

  // In the order in which a request meets them.
  app.register(arrival, { deps });
  app.register(problems, { deps });
  app.register(requestLog, { deps });
  app.register(admission, { deps });
  app.register(bodies, { deps });
  app.register(apiDocs, { authenticated: deps.settings.authenticated });
  const options = { deps, slots: new UploadSlots(deps.settings.uploadsPerPrincipalMax), watches: new OpenWatches() };
  app.register(async (scope: TypedApp) => {
    await streamedBodies(scope);
    writeRoutes(scope, options);
  });
  app.register(async (scope: TypedApp) => {
    scope.addHook('onRoute', refuseUnknownQuery);
    for (const routes of [
      readRoutes,
      transferRoutes,
      volumeRoutes,
      leaseRoutes,
      sessionRoutes,
      lockRoutes,
      watchRoutes,
      auditRoutes,
      adminRoutes,
      healthRoutes,
      pageRoutes,
    ]) {
      routes(scope, options);
    }
  });
  return app;
}
