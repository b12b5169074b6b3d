import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { inScope } from '../../domain/access.ts';
import { refuse } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { WatchScope } from '../../domain/lock-events.ts';
import { isVolumeName } from '../../domain/resource.ts';
import { eventStream } from '../event-stream.ts';
import type { HttpDeps } from '../http-deps.ts';
import { requestSignal } from '../request-signal.ts';
import { callerOf, principalOf } from '../request-state.ts';
import { answers } from '../schemas/common.ts';
import { FileParams } from '../schemas/files.ts';
import { EventStream, Lock, type LockBody, LockList, LocksQuery, SessionParams, WatchHeaders, WatchQuery } from '../schemas/leases.ts';
import type { RouteOptions, TypedApp } from '../typed-app.ts';
import { lockJson } from '../views.ts';
import { resourceOfRoute, targetOf } from '../write-request.ts';

const CODES = ['invalid_path', 'not_found', 'volume_not_found', 'volume_unavailable', 'coordinator_suspended', 'coordinator_unavailable'] as const;

/** Who holds, who waits, and what happens next; always from the authoritative state (R26). */
export function lockRoutes(app: TypedApp, { deps }: RouteOptions): void {
  app.get(
    '/v1/locks/:volume/:path',
    {
      config: { access: 'read_locks' },
      schema: {
        tags: ['locks'],
        summary: 'Who holds a resource, and who waits',
        params: FileParams,
        response: answers({ 200: { description: 'Empty lists for a name never locked', schema: Lock } }, CODES),
      },
    },
    async (request): Promise<LockBody> => lockJson(await deps.locks.lock(lockedName(deps, request))),
  );

  app.get(
    '/v1/locks',
    {
      config: { access: 'read_locks' },
      schema: {
        tags: ['locks'],
        summary: 'All current locks of this gateway',
        querystring: LocksQuery,
        response: answers({ 200: { description: 'A page', schema: LockList } }, ['volume_not_found']),
      },
    },
    async (request) => {
      const { volume, state, older_than_ms: olderThanMs, limit = LIMITS.lockPageMax, cursor = null } = request.query;
      if (volume !== undefined) deps.volumes.policy(volume);
      const page = await deps.locks.locks({
        ...(volume === undefined ? {} : { volume }),
        ...(state === undefined ? {} : { state }),
        ...(olderThanMs === undefined ? {} : { olderThanMs }),
        limit,
        cursor,
      });
      const principal = principalOf(request);
      return { locks: page.locks.filter(({ resource }) => inScope(principal, resource.name)).map(lockJson), next_cursor: page.nextCursor };
    },
  );
}

/** A lock is on a resource, and a resource has no trailing slash. */
function lockedName(deps: HttpDeps, request: FastifyRequest): ReturnType<typeof resourceOfRoute> {
  if (targetOf(deps, request, 'read').target.directory) throw refuse('invalid_path', 'A resource has no trailing slash.');
  return resourceOfRoute(deps, request, 'read');
}

const stream = answers({ 200: { description: 'A stream that stays open', schema: EventStream, mediaType: 'text/event-stream' } }, [
  ...CODES,
  'session_not_found',
]);

/** Streams of events. Losing one is not losing a lease: a stream tells, it does not hold. */
export function watchRoutes(app: TypedApp, options: RouteOptions): void {
  const { deps } = options;
  const config = { access: 'read_locks', documentedHeaders: WatchHeaders } as const;
  app.get(
    '/v1/watch/:volume/:path',
    {
      config,
      schema: { tags: ['locks'], summary: 'Follow one resource', params: FileParams, response: stream },
    },
    async (request, reply) => watch(options, request, reply, { of: 'resource', resource: lockedName(deps, request) }),
  );

  app.get(
    '/v1/watch',
    {
      config,
      schema: { tags: ['locks'], summary: 'Follow all resources below a prefix', querystring: WatchQuery, response: stream },
    },
    async (request, reply) => {
      const { volume = null, path_prefix: pathPrefix = '' } = request.query;
      if (volume !== null) {
        if (!isVolumeName(volume)) throw refuse('volume_not_found', 'There is no volume of this name.');
        deps.volumes.policy(volume);
      }
      return watch(options, request, reply, { of: 'prefix', volume, pathPrefix });
    },
  );

  app.get(
    '/v1/sessions/:session_id/watch',
    {
      config: { ...config, access: 'write' },
      schema: { tags: ['sessions'], summary: 'Follow the leases of a session', params: SessionParams, response: stream },
    },
    async (request, reply) => watch(options, request, reply, { of: 'session', sessionId: request.params.session_id }),
  );
}

async function watch({ deps, watches }: RouteOptions, request: FastifyRequest, reply: FastifyReply, scope: WatchScope): Promise<FastifyReply> {
  const afterSeq = lastEventId(request);
  const principal = principalOf(request);
  const signal = requestSignal(reply.raw, deps.deadline);
  // Before the head goes out: a session that does not exist is a 404.
  const events = await deps.events.watch(callerOf(request), scope, afterSeq, signal);
  reply.headers({ 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store', 'x-accel-buffering': 'no' });
  if (request.method === 'HEAD') return reply.send('');
  watches.open(reply.raw, scope);
  return reply.send(Readable.from(eventStream(events, (name) => inScope(principal, name), deps.clock)));
}

function lastEventId(request: FastifyRequest): number | null {
  const value = request.headers['last-event-id'];
  if (value === undefined || value === '') return null;
  if (typeof value !== 'string' || !/^[0-9]{1,16}$/.test(value) || !Number.isSafeInteger(Number(value)))
    throw refuse('invalid_request', 'Last-Event-ID is the seq of an event.');
  return Number(value);
}
