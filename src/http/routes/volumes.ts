import type { FastifyRequest } from 'fastify';
import { inScope } from '../../domain/access.ts';
import { refuse } from '../../domain/errors.ts';
import type { OperationKey, OperationView } from '../../domain/journal.ts';
import { idempotencyKeyOf } from '../envelope.ts';
import { principalOf } from '../request-state.ts';
import { answers } from '../schemas/common.ts';
import { Operation, type OperationBody, OperationParams, OperationQuery, VolumeList, type VolumeListBody } from '../schemas/files.ts';
import type { RouteOptions, TypedApp } from '../typed-app.ts';
import { operationJson } from '../views.ts';

/** What there is to write to, and what became of a write. */
export function volumeRoutes(app: TypedApp, { deps }: RouteOptions): void {
  app.get(
    '/v1/volumes',
    {
      config: { access: 'any' },
      schema: {
        tags: ['files'],
        summary: 'The volumes of this gateway',
        response: answers({ 200: { description: 'All volumes', schema: VolumeList } }, []),
      },
    },
    async (): Promise<VolumeListBody> => ({
      volumes: deps.volumes.all().map(({ policy }) => ({
        name: policy.name,
        files: policy.path !== null,
        require_token: policy.requireToken,
        tokens: policy.tokens,
        read_only: policy.readOnly,
      })),
    }),
  );

  const found = { 200: { description: 'What became of it', schema: Operation } };
  app.get(
    '/v1/operations/:operation_id',
    {
      config: { access: 'read_operations' },
      schema: {
        tags: ['files'],
        summary: 'The outcome of a write',
        params: OperationParams,
        response: answers(found, ['operation_not_found', 'journal_unavailable']),
      },
    },
    async (request): Promise<OperationBody> => {
      const key: OperationKey = { by: 'operation_id', operationId: request.params.operation_id };
      return shown(request, await deps.journal.operation(key));
    },
  );

  app.get(
    '/v1/operations',
    {
      config: { access: 'read_operations' },
      schema: {
        tags: ['files'],
        summary: 'The outcome of a write, by the idempotency key or the request id it was sent with',
        querystring: OperationQuery,
        response: answers(found, ['operation_not_found', 'journal_unavailable']),
      },
    },
    async (request): Promise<OperationBody> => {
      const { idempotency_key: key, request_id: requestId } = request.query;
      if (key !== undefined && requestId === undefined) {
        return shown(
          request,
          await deps.journal.operation({ by: 'idempotency_key', principal: principalOf(request).name, key: idempotencyKeyOf(key) }),
        );
      }
      if (requestId !== undefined && key === undefined) return shown(request, await deps.journal.operation({ by: 'request_id', requestId }));
      throw refuse('invalid_request', 'Ask with either idempotency_key or request_id.');
    },
  );
}

/** An operation outside the scope is as good as none: it says nothing about names the principal may not see. */
function shown(request: FastifyRequest, operation: OperationView | null): OperationBody {
  if (operation === null || !inScope(principalOf(request), operation.resource)) {
    throw refuse('operation_not_found', 'There is no such operation, or it is older than seven days, or it was refused before it began.');
  }
  return operationJson(operation);
}
