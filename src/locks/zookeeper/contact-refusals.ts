import { GatewayError } from '../../domain/errors.ts';
import { ZkError } from './zk-client.ts';
import { failedWith } from './zk-nodes.ts';

const NO_RIGHT =
  'The coordinator refused: this gateway has no right to the nodes of the lock root, with the credentials that it was given or with none.';

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

/** Of a call to the ensemble that failed: no answer, or one that refuses, which is something else to mend. */
export function withoutAnswer(thrown: unknown): GatewayError {
  if (failedWith(thrown, 'no_auth')) return unavailable(NO_RIGHT);
  const why = thrown instanceof Error ? thrown.message : String(thrown);
  return unavailable(failedWith(thrown, 'unknown', 'session_over') ? `The coordinator did not answer: ${why}` : `The coordinator refused: ${why}`);
}

/** `work`, whose failures at the ensemble are told as refusals. */
export async function answered<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (thrown) {
    throw thrown instanceof ZkError ? withoutAnswer(thrown) : thrown;
  }
}
