import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import { refuse } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { type BrowserRules, hostRefusal, isAllowedOrigin, originRefusal } from '../browser-rules.ts';
import { exchangeOf } from '../exchange.ts';
import { repeatedSingleton } from '../header-values.ts';
import type { HttpDeps } from '../http-deps.ts';
import { newState } from '../request-state.ts';
import { authorityOf } from '../request-target.ts';

/** First on the way in: state and request id, then what can be refused without knowing the caller. */
export const arrival = fp(
  (app: FastifyInstance, { deps }: { deps: HttpDeps }, done: () => void) => {
    const { settings } = deps;
    const rules: BrowserRules = {
      authenticated: settings.authenticated,
      allowedHosts: settings.allowedHosts.map((host) => host.toLowerCase()),
      allowedOrigins: settings.allowedOrigins.map((origin) => origin.toLowerCase()),
      secure: settings.tls !== null,
    };
    // Set in the first hook of every request; typed as always there.
    app.decorateRequest('state');
    app.addHook('onRequest', (request, reply, next) => {
      request.state = newState(deps.clock.monotonicMs());
      reply.header('x-request-id', request.id);
      shareWithAllowedOrigin(rules, request, reply);
      next(protocolRefusal(request) ?? foreignHost(rules, request) ?? originRefusal(rules, request.method, request.headers) ?? undefined);
    });
    done();
  },
  { name: 'arrival' },
);

/** With an absolute target both must be ours: the target counts, and a proxy in front may have gone by `Host`. */
function foreignHost(rules: BrowserRules, request: FastifyRequest): Error | null {
  const authority = authorityOf(request.originalUrl);
  return hostRefusal(rules, request.headers.host) ?? (authority === null ? null : hostRefusal(rules, authority));
}

function protocolRefusal(request: FastifyRequest): Error | null {
  const { raw } = request;
  const repeated = repeatedSingleton(raw);
  if (repeated !== null) return refuse('invalid_request', `${repeated} may be sent once.`);
  if (raw.headers.host === undefined && raw.httpVersion === '1.1') return refuse('invalid_request', 'HTTP/1.1 needs a Host header.');
  if (request.originalUrl.length > LIMITS.uriBytesMax) return refuse('uri_too_long', `A URL may have ${LIMITS.uriBytesMax} bytes.`);
  if (!knownCoding(raw.headers['transfer-encoding'])) return refuse('invalid_request', 'The only Transfer-Encoding that is known here is chunked.');
  if (request.originalUrl === '*' && request.method !== 'OPTIONS') return refuse('invalid_path', 'Only OPTIONS may ask about *.');
  if (exchangeOf(raw).unknownExpectation) return refuse('expectation_failed', 'Only Expect: 100-continue is known.');
  return null;
}

/** Anything beside `chunked` would be stored as it came, or be read differently by a proxy in front (RFC 9112, 6.1). */
function knownCoding(coding: string | undefined): boolean {
  return coding === undefined || coding.toLowerCase() === 'chunked';
}

const EXPOSED = 'ETag, Location, Retry-After, Content-Range, Repr-Digest, X-Fencing-Token, X-Operation-Id, X-Request-Id, Idempotency-Replayed';

/** No CORS header for anybody but the origins that the operator named. */
function shareWithAllowedOrigin(rules: BrowserRules, request: FastifyRequest, reply: FastifyReply): void {
  if (rules.allowedOrigins.length === 0) return;
  reply.header('vary', 'Origin');
  const { origin } = request.headers;
  if (origin === undefined || !isAllowedOrigin(rules, origin)) return;
  reply.header('access-control-allow-origin', origin);
  reply.header('access-control-expose-headers', EXPOSED);
}
