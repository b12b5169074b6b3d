import { TLSSocket } from 'node:tls';
import rateLimit from '@fastify/rate-limit';
import underPressure from '@fastify/under-pressure';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import { roleRefusal } from '../../domain/access.ts';
import { GatewayError, refuse } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { subjectFromText } from '../../domain/named-resource.ts';
import { isVolumeName } from '../../domain/resource.ts';
import type { HttpDeps, TlsPeer } from '../http-deps.ts';
import type { RequestState } from '../request-state.ts';
import { namedTarget } from '../request-target.ts';

/** Step 1 of a write, "limits": draining, overload, identity, rate, role; in this order and before a byte of the body is read. */
export const admission = fp(
  async (app: FastifyInstance, { deps }: { deps: HttpDeps }) => {
    const { settings } = deps;
    app.addHook('onRequest', async (request, reply) => {
      if (request.routeOptions.config.newWork !== true || !deps.isDraining()) return;
      reply.header('connection', 'close');
      throw refuse('draining', 'The gateway is stopping and takes no new writes or leases.');
    });
    // The first sample has the making of the routes in it, which delays nobody: nobody is connected yet.
    let measuredFromMs = Number.POSITIVE_INFINITY;
    app.addHook('onListen', (done) => {
      measuredFromMs = deps.clock.monotonicMs() + LIMITS.pressureSampleMs;
      done();
    });
    app.decorate('isBehind', () => app.isUnderPressure() && deps.clock.monotonicMs() >= measuredFromMs);
    await app.register(underPressure, {
      maxEventLoopDelay: settings.eventLoopDelayMsMax,
      sampleInterval: LIMITS.pressureSampleMs,
      pressureHandler: async (request) => {
        if (isOpen(request) || keepsALease(request) || !app.isBehind()) return;
        throw refuse('overloaded', 'The gateway is behind with its work.');
      },
    });
    app.addHook('onRequest', async (request) => {
      if (isOpen(request)) return;
      request.state.principal = await deps.authenticate(request.headers, peerOf(request));
      const refusal = roleRefusal(request.state.principal, request.routeOptions.config.access ?? 'any');
      if (refusal === null) return;
      if (request.routeOptions.config.namedBy === undefined) {
        request.state.subject = subjectOf(request);
        throw refusal;
      }
      request.state.roleRefusal = refusal;
    });
    // A small JSON body names the resource: it is read for the record (who tried to break what), and looked at for nothing else.
    app.addHook('preValidation', async (request) => {
      const { roleRefusal: refusal } = request.state;
      if (refusal === null) return;
      request.state.subject = subjectInBody(request.body, request.routeOptions.config.namedBy ?? []);
      throw refusal;
    });
    if (settings.rateLimitPerSecond > 0) await app.register(rateLimit, rateOptions(settings.rateLimitPerSecond));
  },
  { name: 'admission', dependencies: ['arrival'] },
);

function rateOptions(perSecond: number) {
  return {
    max: perSecond,
    timeWindow: 1_000,
    cache: LIMITS.rateLimitPrincipalsMax,
    allowList: (request: FastifyRequest) => isOpen(request),
    keyGenerator: (request: FastifyRequest) => {
      const { principal } = request.state;
      return principal?.authenticated === true ? `principal ${principal.name}` : `address ${request.ip}`;
    },
    errorResponseBuilder: (_request: FastifyRequest, { ttl }: { ttl: number }) =>
      new GatewayError('rate_limited', { detail: `More than ${perSecond} requests in a second.`, retryAfterMs: ttl }),
  };
}

/** A browser sends no credentials with a preflight; OPTIONS tells nothing but methods. */
function isOpen(request: FastifyRequest): boolean {
  return request.routeOptions.config.access === 'open' || request.method === 'OPTIONS';
}

/** Renewing, polling, releasing: refused under load, it would cost holders their leases and make the load worse. */
function keepsALease(request: FastifyRequest): boolean {
  const { url = '' } = request.routeOptions;
  return url.startsWith('/v1/leases/') || url.startsWith('/v1/sessions/');
}

/** The client's certificate, only when the TLS layer verified it against the configured authority. */
function peerOf(request: FastifyRequest): TlsPeer | null {
  const { socket } = request.raw;
  if (!(socket instanceof TLSSocket) || !socket.authorized) return null;
  const name = socket.getPeerCertificate().subject?.CN;
  return { commonName: typeof name === 'string' ? name : null };
}

/** What the URL names, for the record of a refusal that comes before the route has named it. */
function subjectOf({ originalUrl, params, routeOptions }: FastifyRequest): RequestState['subject'] {
  if (routeOptions.url?.includes('/:volume/') !== true) {
    const { name } = params as { readonly name?: string };
    return name !== undefined && isVolumeName(name) ? { volume: name, path: null } : null;
  }
  try {
    const { volume, segments } = namedTarget(originalUrl);
    return { volume, path: segments.join('/') };
  } catch {
    // Not a resource, or not a valid one: the record is about the principal alone.
    return null;
  }
}

/** The same for a body: of several resources the first. */
function subjectInBody(body: unknown, members: readonly string[]): RequestState['subject'] {
  if (typeof body !== 'object' || body === null) return null;
  for (const member of members) {
    const named: unknown = [Reflect.get(body, member)].flat()[0];
    if (typeof named === 'string') return subjectFromText(named);
  }
  return null;
}
