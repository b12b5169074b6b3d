import { expectTypeOf, it } from 'vitest';
import type { AuditRecord, Lease } from '../../src/client/contract/answers.ts';
import {
  type ErrorCode,
  FencegateClient,
  type FencegateError,
  isFencegateError,
  type LeaseHandle,
  type LockEvent,
  type WriteResult,
} from '../../src/client/index.ts';
import type { ErrorCode as ServerCode } from '../../src/domain/errors.ts';
import type { LeaseMode } from '../../src/domain/lease.ts';
import type { LockEventType } from '../../src/domain/lock-events.ts';
import type { RecordBody } from '../../src/http/schemas/audit.ts';
import type { LeaseBody } from '../../src/http/schemas/leases.ts';

const client = new FencegateClient();

it('the client and the gateway mean the same', () => {
  expectTypeOf<ErrorCode>().toEqualTypeOf<ServerCode>();
  expectTypeOf<LeaseBody>().toExtend<Lease>();
  expectTypeOf<RecordBody>().toExtend<AuditRecord>();
  expectTypeOf<LockEvent['type']>().toEqualTypeOf<LockEventType>();
  expectTypeOf<LeaseHandle['mode']>().toEqualTypeOf<LeaseMode>();
});

it('a lease gives its work what it returns, and writes answer with the file', () => {
  expectTypeOf(client.withLease<number>).returns.resolves.toEqualTypeOf<number>();
  expectTypeOf<LeaseHandle['put']>().returns.resolves.toEqualTypeOf<WriteResult>();
  expectTypeOf<LeaseHandle['token']>().toEqualTypeOf<string>();
  expectTypeOf<AbortSignal>().toEqualTypeOf<LeaseHandle['signal']>();
});

it('an error narrows by its code', () => {
  const thrown: unknown = null;
  if (isFencegateError(thrown, 'stale_token', 'lease_lost')) expectTypeOf(thrown.code).toEqualTypeOf<'stale_token' | 'lease_lost'>();
  if (isFencegateError(thrown)) expectTypeOf(thrown).toExtend<FencegateError>();
  // @ts-expect-error: no such code
  isFencegateError(thrown, 'stale_tokne');
});

it('filters have the names of the query, as TypeScript names them', () => {
  type Filter = NonNullable<Parameters<FencegateClient['audit']>[0]>;
  expectTypeOf<Filter['pathPrefix']>().toEqualTypeOf<string | undefined>();
  expectTypeOf<Filter['code']>().toEqualTypeOf<ServerCode | undefined>();
  expectTypeOf<keyof Filter>().not.toEqualTypeOf<'cursor'>();
});
