import { refuse } from '../domain/errors.ts';
import { type FencingToken, parseFencingToken } from '../domain/fencing-token.ts';
import { LIMITS } from '../domain/limits.ts';
import { label } from './call-metadata.ts';
import type { GrpcDeps } from './grpc-deps.ts';
import type { RecordLockResponse, ReleaseLockRequest, ReleaseLockResponse, RenewLockRequest } from './messages.ts';
import type { OpenCall } from './open-call.ts';
import { leaseMessage } from './views.ts';

/** `RenewLock`, for the time to live that the lease has, or another. Rejects with `lease_not_held` when it has ended (R14), `ttl_out_of_range`. */
export async function renewLock({ locks }: GrpcDeps, call: OpenCall, message: RenewLockRequest): Promise<RecordLockResponse> {
  const caller = call.caller();
  const leaseId = leaseIdOf(message.lease_id);
  call.handedOver = true;
  return leaseMessage(await locks.renew(caller, leaseId, message.ttl_ms === '0' ? null : Number(message.ttl_ms)));
}

/** `ReleaseLock`, by the secret id, or by resource and token of the same principal. Idempotent. */
export async function releaseLock({ locks }: GrpcDeps, call: OpenCall, message: ReleaseLockRequest): Promise<ReleaseLockResponse> {
  const caller = call.caller();
  if ((message.lease_id === '') === (message.resource_path === '')) {
    throw refuse('invalid_request', 'Name either "lease_id", or "resource_path" with "fencing_token".');
  }
  const holdId = label('hold_id', message.hold_id, LIMITS.holdIdBytesMax);
  const leaseId = message.lease_id === '' ? await leaseIdByToken() : leaseIdOf(message.lease_id);
  call.handedOver = true;
  await locks.release(caller, leaseId, { holdId, all: message.all });
  const { state } = await locks.lease(caller, leaseId, 0, call.signal);
  return { released: state !== 'held' && state !== 'waiting' };

  async function leaseIdByToken(): Promise<string> {
    const resource = call.resource(message.resource_path, 'write');
    call.presentedToken = tokenOf(message.fencing_token);
    return (await locks.leaseWithToken(caller, resource, call.presentedToken)).leaseId;
  }
}

function leaseIdOf(text: string): string {
  const leaseId = label('lease_id', text, LIMITS.leaseIdBytesMax);
  if (leaseId === null) throw refuse('invalid_request', 'lease_id is missing.', { field: 'lease_id' });
  return leaseId;
}

function tokenOf(text: string): FencingToken {
  const token = parseFencingToken(text);
  if (token === undefined) throw refuse('invalid_token', 'fencing_token is a number from 1 to 2^63-1.');
  return token;
}
