import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import { type GatewayError, refuse } from '../../domain/errors.ts';
import { fromFramework } from '../framework-error.ts';
import type { HttpDeps } from '../http-deps.ts';
import { problemOf } from '../problem.ts';
import { recordRefusal } from '../refusal-record.ts';
import { ANY_METHOD, RouteTable } from '../route-table.ts';

/** Every refusal leaves here: one shape, one place that audits what nobody else audits. */
export const problems = fp(
  (app: FastifyInstance, { deps }: { deps: HttpDeps }, done: () => void) => {
    const table = new RouteTable();
    app.addHook('onRoute', ({ url, method }) => table.add(url, [method].flat()));

    app.setErrorHandler(async (thrown, request, reply) => {
      const error = await recorded(deps, request, standing(request, fromFramework(thrown)));
      if (error.code === 'internal')
        deps.log.error({ err: error.cause ?? error, request_id: request.id, route: request.routeOptions.url }, 'request failed');
      return sendProblem(reply, error);
    });

    // Before the body: it would be read only to be dropped, or be refused for a type that nobody asked for.
    app.addHook('preParsing', async (request, _reply, payload) => {
      if (request.is404) assertPreflight(table, request);
      return payload;
    });
    app.setNotFoundHandler(async (request, reply) => preflight(request, reply, allowedAt(table, request)));
    done();
  },
  { name: 'problems', dependencies: ['arrival'] },
);

/** Whoever may not ask at all learns that, and nothing about the form of the question. */
function standing({ state }: FastifyRequest, error: GatewayError): GatewayError {
  return state.roleRefusal === null || error.code === 'rate_limited' ? error : state.roleRefusal;
}

/** When the refusal cannot be made durable, that is what the client learns (fail closed); nothing was changed either way. */
async function recorded(deps: HttpDeps, request: FastifyRequest, error: GatewayError): Promise<GatewayError> {
  try {
    await recordRefusal(deps, request, error);
    return error;
  } catch (thrown) {
    return fromFramework(thrown);
  }
}

function sendProblem(reply: FastifyReply, error: GatewayError): FastifyReply {
  const problem = problemOf(error, reply.request.id);
  // As bytes: to a text the framework adds a charset, which this media type does not have.
  return reply
    .code(problem.status)
    .headers(problem.headers)
    .send(Buffer.from(JSON.stringify(problem.body)));
}

function allowedAt(table: RouteTable, request: FastifyRequest): readonly string[] {
  return request.url === '*' ? ANY_METHOD : table.allowed(request.url.split('?', 1)[0] ?? '/');
}

/** Throws `not_found`, `invalid_path` or `method_not_allowed` unless the methods of a path are asked for. */
function assertPreflight(table: RouteTable, request: FastifyRequest): void {
  const allow = allowedAt(table, request);
  if (allow.length === 0) throw notFound(request);
  if (request.method !== 'OPTIONS') throw refuse('method_not_allowed', `Allowed here: ${allow.join(', ')}.`, { allow });
}

function notFound(request: FastifyRequest): GatewayError {
  if (request.url === '/-') return refuse('invalid_path', 'The URL is not percent-encoded UTF-8.');
  const bareVolume = /^\/v1\/files\/[^/]*$/.test(request.url);
  return refuse('not_found', bareVolume ? 'The root of a volume is written with a trailing slash.' : 'There is no such page or operation.');
}

/** `Allow` for everybody; the CORS part only when the origin was allowed on the way in. */
function preflight(request: FastifyRequest, reply: FastifyReply, allow: readonly string[]): FastifyReply {
  reply.code(204).header('allow', allow.join(', '));
  if (reply.hasHeader('access-control-allow-origin')) {
    reply.header('access-control-allow-methods', allow.join(', '));
    const asked = request.headers['access-control-request-headers'];
    if (typeof asked === 'string' && /^[a-z0-9\-, ]*$/i.test(asked)) reply.header('access-control-allow-headers', asked);
    reply.header('access-control-max-age', '600');
  }
  return reply.send();
}
