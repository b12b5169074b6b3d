import { Type } from '@sinclair/typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { randomName } from '../../domain/clock.ts';
import { refuse } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { isHiddenSegment, type Resource } from '../../domain/resource.ts';
import type { OpenedFile, Volume } from '../../domain/volume.ts';
import { byteRanges } from '../byte-ranges.ts';
import { mediaTypeOfName, representationHeaders, validatorHeaders } from '../file-headers.ts';
import { oneRange, type Payload, payloadStream, severalRanges, wholeFile } from '../file-payload.ts';
import type { HttpDeps } from '../http-deps.ts';
import { ifRangeHolds, readCondition } from '../read-conditions.ts';
import { requestSignal } from '../request-signal.ts';
import { answers } from '../schemas/common.ts';
import { FileParams, Listing, type ListingBody, ListQuery, READ_ANSWER_HEADERS, READ_CODES, ReadHeaders } from '../schemas/files.ts';
import type { RouteOptions, TypedApp } from '../typed-app.ts';
import { resourceOfRoute, targetOf } from '../write-request.ts';

const NS_PER_SECOND = 1_000_000_000n;
const BOUNDARY_BYTES = 18;
const bytes = (description: string, headers: Readonly<Record<string, string>> = {}) => ({
  description,
  schema: Type.Unsafe<string>({ type: 'string', format: 'binary' }),
  mediaType: 'application/octet-stream',
  headers: { ...READ_ANSWER_HEADERS, ...headers },
});

/** Reads need no lease and wait for no upload (case B12). */
export function readRoutes(app: TypedApp, { deps }: RouteOptions): void {
  const file = {
    config: { access: 'read_files', documentedHeaders: ReadHeaders } as const,
    schema: {
      tags: ['files'],
      params: FileParams,
      response: answers(
        {
          200: bytes('The file'),
          206: bytes('The ranges asked for', { 'Content-Range': 'Of a single range' }),
          304: { description: 'Not modified', schema: null, headers: READ_ANSWER_HEADERS },
        },
        [...READ_CODES, 'is_a_directory', 'precondition_failed', 'range_not_satisfiable'],
      ),
    },
    exposeHeadRoute: false,
  };
  const serve = (request: FastifyRequest, reply: FastifyReply) => serveFile(deps, request, reply);
  app.get('/v1/files/:volume/:path', { ...file, schema: { ...file.schema, summary: 'Read a file, or ranges of it' } }, serve);
  app.head('/v1/files/:volume/:path', { ...file, schema: { ...file.schema, summary: 'The headers of GET' } }, serve);

  app.get(
    '/v1/files/:volume/:path/',
    {
      config: { access: 'read_files' },
      schema: {
        tags: ['files'],
        summary: 'List a directory',
        params: FileParams,
        querystring: ListQuery,
        response: answers({ 200: { description: 'A page of entries', schema: Listing } }, [...READ_CODES]),
      },
    },
    async (request): Promise<ListingBody> => {
      const { target, resource } = targetOf(deps, request, 'read', 'bytes');
      const { limit = LIMITS.listPageDefault, cursor = null } = request.query;
      const page = await volumeWithFiles(deps, target.volume).list(resource, { limit, cursor });
      return {
        // The names that the gateway keeps for itself are invisible, whatever the volume lists.
        entries: page.entries
          .filter(({ name }) => name === null || !isHiddenSegment(name))
          .map((entry) => ({
            name: entry.name,
            name_base64: entry.nameBase64,
            type: entry.type,
            size_bytes: entry.sizeBytes,
            modified_at: entry.modifiedAt,
          })),
        next_cursor: page.nextCursor,
      };
    },
  );
}

function volumeWithFiles(deps: HttpDeps, name: string): Volume {
  if (deps.volumes.policy(name).path === null) throw refuse('not_found', 'The volume is lock-only: it has no files.');
  return deps.volumes.get(name);
}

async function serveFile(deps: HttpDeps, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const resource = resourceOfRoute(deps, request, 'read', 'bytes');
  const opened = await volumeWithFiles(deps, resource.volume).open(resource);
  let handedOn = false;
  try {
    const modifiedS = Number(opened.facts.mtimeNs / NS_PER_SECOND);
    const { etag } = opened;
    const condition = readCondition(request.headers, { etag, modifiedS });
    const validators = validatorHeaders(etag, modifiedS, await deps.digests.digestOf(resource, etag));
    if (condition === 'not_modified') return reply.code(304).headers(validators).send();
    const payload = payloadOf(deps, request, resource, opened);
    reply.code(payload.headers['content-range'] === undefined && payload.headers['content-type'] === undefined ? 200 : 206);
    reply.headers({ ...validators, ...representationHeaders(resource), ...payload.headers, 'content-length': String(payload.lengthBytes) });
    if (request.method === 'HEAD' || payload.lengthBytes === 0) return reply.send(Buffer.alloc(0));
    handedOn = true;
    const chunks = payload.chunks(requestSignal(reply.raw, deps.deadline));
    return reply.send(
      payloadStream(opened, chunks, (error) => deps.log.warn({ err: error, request_id: request.id }, 'a descriptor could not be closed')),
    );
  } finally {
    if (!handedOn) await opened.close();
  }
}

/** `Range` counts for GET only (RFC 9110, 14.2), and only while `If-Range` holds. */
function payloadOf(deps: HttpDeps, request: FastifyRequest, resource: Resource, opened: OpenedFile): Payload {
  const wanted = request.method === 'GET' && ifRangeHolds(request.headers['if-range'], opened.etag);
  const ranges = wanted ? byteRanges(request.headers.range, opened.facts.sizeBytes) : null;
  const first = ranges?.[0];
  if (ranges === null || first === undefined) return wholeFile(opened);
  if (ranges.length === 1) return oneRange(opened, first);
  return severalRanges(opened, ranges, mediaTypeOfName(resource.path), randomName(deps.random, BOUNDARY_BYTES));
}
