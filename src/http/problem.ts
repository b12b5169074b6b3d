import type { GatewayError } from '../domain/errors.ts';
import { STATUS_TABLE } from './status.ts';

export const PROBLEM_TYPE = 'application/problem+json';

/** A refusal as it is sent: RFC 9457 with the members of the contract. */
export interface Problem {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

const MS_PER_SECOND = 1_000;

/** Members cannot replace the fixed ones; `Retry-After` is in whole seconds, rounded up, at least 1. */
export function problemOf(error: GatewayError, requestId: string): Problem {
  const row = STATUS_TABLE[error.code];
  const headers: Record<string, string> = {
    'content-type': PROBLEM_TYPE,
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
  };
  const retryAfterMs = error.retryAfterMs ?? row.retryAfterMs;
  if (retryAfterMs !== undefined) headers['retry-after'] = String(Math.max(1, Math.ceil(retryAfterMs / MS_PER_SECOND)));
  if (error.code === 'unauthenticated') headers['www-authenticate'] = 'Bearer realm="fencegate"';
  const { allow, size_bytes: sizeBytes } = error.members;
  if (error.code === 'method_not_allowed' && Array.isArray(allow)) headers['allow'] = allow.join(', ');
  if (error.code === 'range_not_satisfiable' && typeof sizeBytes === 'number') headers['content-range'] = `bytes */${sizeBytes}`;
  return {
    status: row.status,
    headers,
    body: {
      ...error.members,
      type: `/docs/problems/${error.code}`,
      title: row.title,
      status: row.status,
      detail: error.message,
      code: error.code,
      request_id: requestId,
    },
  };
}
