import { GatewayError } from '../../domain/errors.ts';

export function suspended(): GatewayError {
  return new GatewayError('coordinator_suspended', { detail: 'There is no contact with the coordinator at the moment.', retryAfterMs: 1_000 });
}

/** It is another gateway's, or is still being opened by this one. */
export function notOwned(volume: string): GatewayError {
  return new GatewayError('volume_unavailable', {
    detail: `Nothing is granted, and nothing known of locks, on the volume ${volume}: it is not open at this gateway.`,
    retryAfterMs: 1_000,
  });
}

export function unavailable(detail = 'There is no session with the coordinator.'): GatewayError {
  return new GatewayError('coordinator_unavailable', { detail, retryAfterMs: 5_000 });
}
