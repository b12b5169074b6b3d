/**
 * The closed list of error codes and the one error class that crosses rooms.
 * HTTP-free on purpose: the only map from code to status is `http/status.ts` (contract: the table of `http-api.md`).
 */

export const ERROR_CODES = [
  'invalid_token',
  'invalid_path',
  'invalid_request',
  'digest_mismatch',
  'incomplete_body',
  'range_length_mismatch',
  'ttl_out_of_range',
  'unauthenticated',
  'forbidden',
  'token_not_issued',
  'not_lease_owner',
  'volume_read_only',
  'cross_origin',
  'not_found',
  'volume_not_found',
  'lease_not_found',
  'session_not_found',
  'operation_not_found',
  'method_not_allowed',
  'upload_timeout',
  'is_a_directory',
  'not_a_directory',
  'directory_not_empty',
  'already_exists',
  'special_file',
  'symbolic_link',
  'multiple_links',
  'name_alias',
  'cross_volume',
  'same_resource',
  'offset_mismatch',
  'lock_not_acquired',
  'deadlock',
  'lease_not_held',
  'session_ended',
  'upgrade_conflict',
  'overlapping_lease',
  'idempotency_in_progress',
  'length_required',
  'body_too_large',
  'uri_too_long',
  'unsupported_media_type',
  'range_not_satisfiable',
  'expectation_failed',
  'headers_too_large',
  'stale_token',
  'lease_ended',
  'lease_is_shared',
  'precondition_failed',
  'wrong_host',
  'idempotency_key_reused',
  'resource_locked',
  'token_required',
  'rate_limited',
  'queue_full',
  'too_many_leases',
  'too_many_sessions',
  'too_many_uploads',
  'internal',
  'coordinator_suspended',
  'coordinator_unavailable',
  'volume_unavailable',
  'journal_unavailable',
  'overloaded',
  'draining',
  'outcome_unknown',
  'insufficient_storage',
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

/** Members of the problem document beside the fixed ones; snake_case, JSON values only, never a secret. */
export type ProblemMembers = Readonly<Record<string, string | number | boolean | null | readonly unknown[] | object>>;

export interface GatewayErrorOptions {
  /** What the caller sees. Plain words; no path of the machine, no secret. */
  readonly detail: string;
  readonly members?: ProblemMembers;
  /** Sent as `Retry-After`, rounded up to whole seconds. */
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/** The one error that crosses rooms. Anything else that is thrown is a bug and leaves as `internal`. */
export class GatewayError extends Error {
  readonly code: ErrorCode;
  readonly members: ProblemMembers;
  readonly retryAfterMs: number | undefined;

  constructor(code: ErrorCode, options: GatewayErrorOptions) {
    super(options.detail, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'GatewayError';
    this.code = code;
    this.members = options.members ?? {};
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** Short form for the common case of a code and a sentence. */
export function refuse(code: ErrorCode, detail: string, members?: ProblemMembers): GatewayError {
  return new GatewayError(code, members === undefined ? { detail } : { detail, members });
}

/** Makes anything thrown into a `GatewayError`, keeping one that already is. */
export function asGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  return new GatewayError('internal', {
    detail: 'The gateway met an error of its own. Its log has the details under this request id.',
    cause: thrown,
  });
}
