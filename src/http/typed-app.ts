import type { Static, TSchema } from '@sinclair/typebox';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyTypeProvider,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import type { HttpDeps } from './http-deps.ts';
import type { OpenWatches } from './open-watches.ts';
import type { UploadSlots } from './upload-slots.ts';

/**
 * Requests are typed by the schemas that validate them. Answers are typed by the view functions instead of here, because
 * an answer of the write gateway is a stored one: its status and body are data.
 */
export interface RequestTypes extends FastifyTypeProvider {
  readonly validator: this['schema'] extends TSchema ? Static<this['schema']> : unknown;
  readonly serializer: unknown;
}

export type TypedApp = FastifyInstance<RawServerDefault, RawRequestDefaultExpression, RawReplyDefaultExpression, FastifyBaseLogger, RequestTypes>;

export interface RouteOptions {
  readonly deps: HttpDeps;
  readonly slots: UploadSlots;
  readonly watches: OpenWatches;
}
