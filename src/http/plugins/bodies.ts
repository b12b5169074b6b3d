import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import multipart from '@fastify/multipart';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import { GatewayError, refuse } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { SAFE_METHODS } from '../browser-rules.ts';
import { announcedDigests, judged, judgeNoContent } from '../digest-headers.ts';
import { assertIdentityCoding } from '../envelope.ts';
import { announcesBody, bodyIsOutstanding, declaredBytesOf, exchangeOf } from '../exchange.ts';
import type { HttpDeps } from '../http-deps.ts';
import { RequestBody } from '../request-body.ts';
import { requestSignal } from '../request-signal.ts';

const MEDIA_TYPE = /^\s*[\w!#$&^.+-]+\/[\w!#$&^.+-]+\s*(;|$)/;
const ANY_TYPE = 'application/octet-stream';

/** How bodies are read: JSON ones whole and bounded, streamed ones not at all by the framework; and what happens to unread ones. */
export const bodies = fp(
  async (app: FastifyInstance, { deps }: { deps: HttpDeps }) => {
    const parseJson = app.getDefaultJsonParser('error', 'error');
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('application/json', { parseAs: 'buffer', bodyLimit: LIMITS.jsonBodyBytesMax }, (request, body: Buffer, done) => {
      request.state.bodyHash = createHash('sha256').update(body).digest('hex');
      if (body.byteLength === 0) done(null, undefined);
      else void parseJson(request, jsonText(request, body), done);
    });
    app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: LIMITS.jsonBodyBytesMax }, (_request, body: Buffer, done) => {
      // A body that is empty anyway may call itself what it likes: curl -d '' does.
      if (body.byteLength === 0) done(null, undefined);
      else done(refuse('unsupported_media_type', 'The body of this request is application/json.'));
    });
    app.addHook('onRequest', async (request) => {
      const { 'content-type': type } = request.headers;
      // The framework refuses a type that it cannot parse before it looks for a body; what counts is whether there is one.
      if (type !== undefined && !MEDIA_TYPE.test(type) && request.routeOptions.config.streams !== true) request.headers['content-type'] = ANY_TYPE;
    });
    app.addHook('preParsing', async (request, reply, payload) => {
      const { raw } = request;
      if (request.routeOptions.config.streams === true || request.is404) return payload;
      if (announcesBody(raw)) {
        assertIdentityCoding(raw);
        return Readable.from(judged(jsonBody(deps, request, reply).open(), announcedDigests(raw)), { objectMode: false });
      }
      if (!SAFE_METHODS.has(request.method)) judgeNoContent(raw);
      return payload;
    });
    app.addHook('preValidation', async (request) => {
      // An absent body is an empty object, so that the schema says which member is missing.
      if (request.routeOptions.schema?.body !== undefined && (request.body === undefined || request.body === null)) request.body = {};
    });
    app.addHook('onSend', async (request, reply) => closeAfterRefusal(deps, request, reply));
  },
  { name: 'bodies', dependencies: ['arrival'] },
);

/** JSON is UTF-8 (RFC 8259, 8.1). Bytes that are not would silently become another name. */
function jsonText(request: FastifyRequest, body: Buffer): string {
  const charset = /;\s*charset="?([^";\s]*)/i.exec(request.headers['content-type'] ?? '')?.[1];
  if (charset !== undefined && charset.toLowerCase() !== 'utf-8') throw refuse('unsupported_media_type', 'JSON is sent as UTF-8.');
  try {
    return UTF8.decode(body);
  } catch (cause) {
    throw new GatewayError('invalid_request', { detail: 'The body is not valid UTF-8.', cause });
  }
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** Streams: every media type passes unread, and multipart is only marked as such. To be registered in an encapsulated scope. */
export async function streamedBodies(app: FastifyInstance): Promise<void> {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null, undefined));
  app.addHook('onRequest', async (request) => {
    request.state.contentType = request.headers['content-type'];
    // The framework refuses a Content-Type that it cannot parse; a PUT may have any.
    if (request.method !== 'POST' && request.state.contentType !== undefined) request.headers['content-type'] = ANY_TYPE;
  });
  await app.register(fp(multipart, { name: 'multipart-in-scope' }));
}

function jsonBody(deps: HttpDeps, request: FastifyRequest, reply: FastifyReply): RequestBody {
  const { uploadIdleMs, uploadMinBytesPerSecond } = deps.settings;
  const limits = { bytesMax: LIMITS.jsonBodyBytesMax, idleMs: uploadIdleMs, minBytesPerSecond: uploadMinBytesPerSecond };
  return new RequestBody(request.raw, reply.raw, deps.clock, limits, requestSignal(reply.raw, deps.deadline));
}

/**
 * An answer before the body was read (case B33). A small rest is dropped and the connection lives on; otherwise it closes,
 * lingering, so that the client gets to read the answer. Either way the client has a bounded time to send what it still will.
 */
function closeAfterRefusal(deps: HttpDeps, request: FastifyRequest, reply: FastifyReply): void {
  const { raw } = request;
  if (!bodyIsOutstanding(raw)) return;
  const declared = declaredBytesOf(raw);
  const small = declared !== null && declared <= LIMITS.refusedBodyKeepBytesMax && !exchangeOf(raw).owesContinue && !exchangeOf(raw).broken;
  // Who did not send in time is not waited for again (RFC 9110, 15.5.9).
  if (!small || reply.statusCode === 408) reply.header('connection', 'close');
  const { socket } = raw;
  reply.raw.once('finish', () => {
    deps.clock.after(LIMITS.refusedBodyDrainMsMax, () => {
      if (!raw.complete) socket.destroy();
    });
  });
}
