import { asGatewayError } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { assertLabel } from '../../domain/sent-text.ts';
import { labelValue } from '../header-values.ts';
import { callerOf } from '../request-state.ts';
import { answers } from '../schemas/common.ts';
import {
  CreateSessionBody,
  END_IN_DOUBT,
  Heartbeat,
  HeartbeatBody,
  Heartbeats,
  HeartbeatsBody,
  SESSION_CODES,
  SESSION_ENDING,
  Session,
  SessionParams,
} from '../schemas/leases.ts';
import type { RouteOptions, TypedApp } from '../typed-app.ts';
import { sessionJson } from '../views.ts';
import { handOver } from '../write-request.ts';

const MS_PER_SECOND = 1_000;
const SESSION = '/v1/sessions/:session_id';

/** Sessions: one heartbeat renews all that a client holds. */
export function sessionRoutes(app: TypedApp, options: RouteOptions): void {
  lifeRoutes(app, options);
  heartbeatRoutes(app, options);
}

function lifeRoutes(app: TypedApp, { deps }: RouteOptions): void {
  app.post(
    '/v1/sessions',
    {
      config: { access: 'write', action: 'lease_refuse', newWork: true },
      schema: {
        tags: ['sessions'],
        summary: 'Make a session',
        body: CreateSessionBody,
        response: answers({ 201: { description: 'Made', schema: Session } }, [...SESSION_CODES, 'ttl_out_of_range', 'too_many_sessions', 'draining']),
      },
    },
    async (request, reply) => {
      const { ttl_ms: ttlMs = null, client_id: label = null } = request.body;
      const clientId = assertLabel(label, 'client_id', LIMITS.clientIdBytesMax) ?? labelValue(request.raw, 'x-client-id', LIMITS.clientIdBytesMax);
      handOver(request);
      reply.code(201);
      return sessionJson(await deps.locks.createSession(callerOf(request, clientId), { ttlMs, clientId }));
    },
  );

  app.delete(
    SESSION,
    {
      config: { access: 'write', action: 'lease_refuse' },
      schema: {
        tags: ['sessions'],
        summary: 'End a session: releases all its leases',
        description: END_IN_DOUBT,
        params: SessionParams,
        response: answers(
          { 204: { description: 'Ended, also when it had ended within the last hour', schema: null } },
          SESSION_CODES.filter((code) => code !== 'session_ended'),
        ),
      },
    },
    async (request, reply) => {
      handOver(request);
      await deps.locks.endSession(callerOf(request), request.params.session_id);
      return reply.code(204).send();
    },
  );
}

function heartbeatRoutes(app: TypedApp, { deps }: RouteOptions): void {
  app.post(
    `${SESSION}/heartbeat`,
    {
      config: { access: 'write', action: 'lease_refuse' },
      schema: {
        tags: ['sessions'],
        summary: 'Renew a session and all its leases',
        description: SESSION_ENDING,
        params: SessionParams,
        body: HeartbeatBody,
        response: answers({ 200: { description: 'Renewed', schema: Heartbeat } }, SESSION_CODES),
      },
    },
    async (request) => {
      handOver(request);
      const { expiresInMs, lost } = await deps.locks.heartbeat(callerOf(request), request.params.session_id);
      return { expires_in_ms: Math.round(expiresInMs), lost };
    },
  );

  app.post(
    '/v1/sessions/heartbeats',
    {
      config: { access: 'write', action: 'lease_refuse' },
      schema: {
        tags: ['sessions'],
        summary: 'Renew many sessions',
        description: SESSION_ENDING,
        body: HeartbeatsBody,
        response: answers(
          {
            200: {
              description: 'One result per session, in order',
              schema: Heartbeats,
              headers: { 'Retry-After': 'When to send those again that are overloaded, seconds' },
            },
          },
          SESSION_CODES,
        ),
      },
    },
    async (request, reply) => {
      const caller = callerOf(request);
      handOver(request);
      let retryAfterMs = 0;
      const sessions = await Promise.all(
        request.body.session_ids.map(async (sessionId) => {
          try {
            const { expiresInMs, lost } = await deps.locks.heartbeat(caller, sessionId);
            return { session_id: sessionId, expires_in_ms: Math.round(expiresInMs), lost, code: null };
          } catch (thrown) {
            // One dead session must not cost the others their renewal.
            const { code, retryAfterMs: ownMs = 0 } = asGatewayError(thrown);
            if (code === 'internal') throw thrown;
            retryAfterMs = Math.max(retryAfterMs, ownMs);
            return { session_id: sessionId, expires_in_ms: null, lost: [], code };
          }
        }),
      );
      // After a restart sessions are taken in at a bounded rate: when to send those again that were told to wait.
      if (retryAfterMs > 0) reply.header('retry-after', String(Math.ceil(retryAfterMs / MS_PER_SECOND)));
      return { sessions };
    },
  );
}
