import type { Static } from '@sinclair/typebox';
import type { FastifyRequest } from 'fastify';
import { refuse } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { AcquireRequest, LeaseView } from '../../domain/lock-api.ts';
import type { Resource } from '../../domain/resource.ts';
import { assertLabel } from '../../domain/sent-text.ts';
import { labelValue } from '../header-values.ts';
import type { HttpDeps } from '../http-deps.ts';
import { requestSignal } from '../request-signal.ts';
import { callerOf } from '../request-state.ts';
import { answers } from '../schemas/common.ts';
import {
  AcquireBody,
  ConvertBody,
  END_IN_DOUBT,
  LEASE_CODES,
  Lease,
  type LeaseBody,
  LeaseParams,
  ReleaseQuery,
  RenewBody,
  WaitQuery,
} from '../schemas/leases.ts';
import type { RouteOptions, TypedApp } from '../typed-app.ts';
import { leaseJson } from '../views.ts';
import { handOver, resourceInBody } from '../write-request.ts';

const PRIORITY_DEFAULT = 5;
const LEASE = '/v1/leases/:lease_id';
const state = (description: string) => ({ description, schema: Lease });
const WAITING =
  'Waiting. A session that holds the resource shared, and asks for it exclusive, goes on holding it so: state held, mode shared and a queue_position until the other readers have gone. ' +
  'Then mode is exclusive and the token is new; shared without a queue_position means that it waits no more (reason).';
const located = (description: string) => ({ ...state(description), headers: { Location: 'Of the lease' } });

/** Leases: the right to write, with the token that proves it. Who may do what with a lease is judged by the lock service. */
export function leaseRoutes(app: TypedApp, options: RouteOptions): void {
  acquireRoute(app, options);
  holderRoutes(app, options);
}

function acquireRoute(app: TypedApp, { deps }: RouteOptions): void {
  app.post(
    '/v1/leases',
    {
      config: { access: 'write', action: 'lease_refuse', namedBy: ['resource', 'resources'], newWork: true },
      schema: {
        tags: ['leases'],
        summary: 'Take a lease, or stand in line for one',
        description:
          'A 503 outcome_unknown has a lease_id: the journal failed in the commit of the grant. Once the gateway was started again, GET /v1/leases/{id} with it is the lease, or 404: it was not granted. ' +
          'A 409 lock_not_acquired names who is in the way: holder_client_id and holder_lease_ref; where it is a program with a lock recipe of its own at the coordinator, its node in the detail, and the first of such nodes in foreign_contenders. ' +
          'A 503 coordinator_suspended: contact with the coordinator was lost before it said who holds (a try is answered at once then), or for good while this request stood in line; nothing was changed, and a place in line is given up.',
        body: AcquireBody,
        response: answers({ 200: located('Held again: re-entrant'), 201: located('Held'), 202: located(WAITING) }, [
          ...LEASE_CODES,
          'invalid_path',
          'volume_not_found',
          'ttl_out_of_range',
          'lock_not_acquired',
          'deadlock',
          'session_not_found',
          'session_ended',
          'overlapping_lease',
          'queue_full',
          'too_many_leases',
          'too_many_sessions',
          'volume_unavailable',
          'draining',
        ]),
      },
    },
    async (request, reply) => {
      const acquire = acquireRequest(deps, request, request.body);
      const caller = callerOf(request, acquire.clientId);
      handOver(request);
      const { lease, created } = await deps.locks.acquire(caller, acquire, requestSignal(reply.raw, deps.deadline));
      const waits = lease.state === 'waiting' || (acquire.mode === 'exclusive' && lease.mode === 'shared');
      reply.code(waits ? 202 : created ? 201 : 200).header('location', `/v1/leases/${encodeURIComponent(lease.leaseId)}`);
      return leaseJson(lease);
    },
  );
}

/** For whoever has the lease's secret id. */
function holderRoutes(app: TypedApp, { deps }: RouteOptions): void {
  app.get(
    LEASE,
    {
      config: { access: 'write' },
      schema: {
        tags: ['leases'],
        summary: 'The state of a lease; for a waiting one the long poll that keeps its place',
        params: LeaseParams,
        querystring: WaitQuery,
        response: answers({ 200: state('As it is, also when it has ended') }, LEASE_CODES),
      },
    },
    async (request, reply): Promise<LeaseBody> => {
      const { wait_ms: waitMs = 0 } = request.query;
      return leaseJson(await deps.locks.lease(callerOf(request), request.params.lease_id, waitMs, requestSignal(reply.raw, deps.deadline)));
    },
  );

  app.post(
    `${LEASE}/renew`,
    {
      config: { access: 'write', action: 'lease_refuse' },
      schema: {
        tags: ['leases'],
        summary: 'Renew a lease, with another time to live when one is given',
        params: LeaseParams,
        body: RenewBody,
        response: answers({ 200: state('Renewed') }, [...LEASE_CODES, 'lease_not_held', 'ttl_out_of_range']),
      },
    },
    async (request): Promise<LeaseBody> => {
      handOver(request);
      return leaseJson(await deps.locks.renew(callerOf(request), request.params.lease_id, request.body.ttl_ms ?? null));
    },
  );

  app.post(
    `${LEASE}/convert`,
    {
      config: { access: 'write', action: 'lease_refuse' },
      schema: {
        tags: ['leases'],
        summary: 'Upgrade to exclusive, or downgrade to shared',
        params: LeaseParams,
        body: ConvertBody,
        response: answers({ 200: state('Converted'), 202: state('Waiting for the other readers') }, [
          ...LEASE_CODES,
          'lease_not_held',
          'upgrade_conflict',
          'deadlock',
          'draining',
        ]),
      },
    },
    async (request, reply): Promise<LeaseBody> => {
      const { mode } = request.body;
      handOver(request);
      const lease = await deps.locks.convert(callerOf(request), request.params.lease_id, mode, requestSignal(reply.raw, deps.deadline));
      reply.code(isConverted(lease, mode) ? 200 : 202);
      return leaseJson(lease);
    },
  );

  app.delete(
    LEASE,
    {
      config: { access: 'write', action: 'lease_refuse' },
      schema: {
        tags: ['leases'],
        summary: 'Release a hold, or cancel a waiter',
        description: END_IN_DOUBT,
        params: LeaseParams,
        querystring: ReleaseQuery,
        response: answers({ 204: { description: 'Released, now or earlier', schema: null } }, LEASE_CODES),
      },
    },
    async (request, reply) => {
      const { hold_id: holdId = null, all = false } = request.query;
      handOver(request);
      await deps.locks.release(callerOf(request), request.params.lease_id, { holdId, all });
      return reply.code(204).send();
    },
  );
}

/** An upgrade that still waits for other readers shows the mode it has. */
function isConverted(lease: LeaseView, mode: LeaseView['mode']): boolean {
  return lease.mode === mode && lease.state !== 'waiting';
}

function acquireRequest(deps: HttpDeps, request: FastifyRequest, body: Static<typeof AcquireBody>): AcquireRequest {
  const metadata = body.metadata ?? null;
  if (metadata !== null && Buffer.byteLength(JSON.stringify(metadata)) > LIMITS.leaseMetadataBytesMax) {
    throw refuse('invalid_request', `metadata is over ${LIMITS.leaseMetadataBytesMax} bytes of JSON.`);
  }
  return {
    resources: resourcesOf(deps, request, body),
    mode: body.mode ?? 'exclusive',
    ttlMs: body.ttl_ms ?? null,
    waitMs: body.wait_ms ?? 0,
    maxWaitMs: body.max_wait_ms ?? null,
    maxHoldMs: body.max_hold_ms ?? null,
    priority: body.priority ?? PRIORITY_DEFAULT,
    clientId:
      assertLabel(body.client_id ?? null, 'client_id', LIMITS.clientIdBytesMax) ?? labelValue(request.raw, 'x-client-id', LIMITS.clientIdBytesMax),
    sessionId: body.session_id ?? null,
    holdId: body.hold_id ?? null,
    lockDelayMs: body.lock_delay_ms ?? null,
    metadata,
  };
}

function resourcesOf(deps: HttpDeps, request: FastifyRequest, body: Static<typeof AcquireBody>): Resource[] {
  if ((body.resource === undefined) === (body.resources === undefined)) throw refuse('invalid_request', 'Name either "resource" or "resources".');
  const resources = (body.resources ?? [body.resource ?? '']).map((name) => resourceInBody(deps, request, name));
  if (new Set(resources.map(({ key }) => key)).size !== resources.length) throw refuse('invalid_request', 'A resource is named twice.');
  return resources;
}
