import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import { type TSchema, Type } from '@sinclair/typebox';
import type { FastifyInstance, RouteOptions } from 'fastify';
import fp from 'fastify-plugin';
import { answers } from '../schemas/common.ts';

const TAGS = [
  { name: 'files', description: 'Bytes, directories, and what became of writes' },
  { name: 'leases', description: 'The right to write, and its fencing token' },
  { name: 'sessions', description: 'The liveness of a client' },
  { name: 'locks', description: 'Who holds, who waits, what happens' },
  { name: 'audit', description: 'What was decided, and proof that the record is whole' },
  { name: 'admin', description: 'For administrators' },
  { name: 'operation', description: 'Probes and metrics' },
  { name: 'pages', description: 'For people' },
];

/** The OpenAPI document, made from the schemas that the routes run on, and its reader, served from here. */
export const apiDocs = fp(
  async (app: FastifyInstance, { authenticated }: { authenticated: boolean }) => {
    await app.register(swagger, {
      openapi: {
        openapi: '3.1.0',
        info: {
          title: 'Fencegate',
          version: '1',
          description: 'A write proxy that checks fencing tokens.',
          license: { name: 'MIT', identifier: 'MIT' },
        },
        servers: [{ url: '/' }],
        tags: TAGS,
        components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
      },
      exposeHeadRoutes: true,
      transform: ({ schema, url, route }) => ({ schema: documented(schema, route, authenticated), url }),
    });
    // The reader's own routes hold nothing that needs an identity, and a browser could not send one.
    app.addHook('onRoute', (route) => {
      if (route.url === '/docs' || route.url.startsWith('/docs/')) route.config = { ...route.config, access: 'open' };
    });
    await app.register(swaggerUi, {
      routePrefix: '/docs',
      staticCSP: true,
      uiConfig: { docExpansion: 'list', validatorUrl: null, supportedSubmitMethods: [] },
    });
    app.get(
      '/openapi.json',
      {
        config: { access: 'open' },
        schema: {
          tags: ['pages'],
          summary: 'This document',
          response: answers({ 200: { description: 'OpenAPI 3.1', schema: AnyObject } }, [], { open: true }),
        },
      },
      async (_request, reply) => reply.header('cache-control', 'no-cache').send(app.swagger()),
    );
  },
  { name: 'api-docs' },
);

const AnyObject = Type.Object({}, { additionalProperties: true });

type Schema = NonNullable<RouteOptions['schema']>;

/** Adds what the document needs and the validators must not see: header parameters, streamed bodies, the security of the route. */
function documented(schema: Schema | undefined, route: RouteOptions, authenticated: boolean): Schema {
  const config = route.config ?? {};
  if (schema === undefined) return { hide: true };
  const open = config.access === 'open';
  return {
    ...schema,
    ...(config.documentedHeaders === undefined ? {} : { headers: config.documentedHeaders }),
    ...(config.bodyTypes === undefined ? {} : { body: streamed(config.bodyTypes) }),
    ...(config.exports === undefined ? {} : { response: withExports(schema.response, config.exports) }),
    operationId: operationIdOf(route),
    security: open || !authenticated ? [] : [{ bearer: [] }],
  };
}

function streamed(types: readonly string[]): TSchema {
  const bytes = { schema: { type: 'string', format: 'binary' } };
  return { content: Object.fromEntries(types.map((type) => [type, bytes])) } as unknown as TSchema;
}

function withExports(response: unknown, exports: Readonly<Record<string, object>>): unknown {
  const all = response as Record<string, { content?: object }>;
  const ok = all['200'];
  const extra = Object.fromEntries(Object.keys(exports).map((type) => [type, { schema: Type.String() }]));
  return { ...all, 200: { ...ok, content: { ...ok?.content, ...extra } } };
}

/** Method and path in words: stable, unique, and fit for generated clients. */
function operationIdOf(route: RouteOptions): string {
  const path = route.url
    .replace(/\/$/, '/directory')
    .replace(/[^A-Za-z0-9]+/g, '_')
    .replace(/^_|_$/g, '');
  return `${[route.method].flat().join('_').toLowerCase()}_${path === '' ? 'root' : path}`;
}
