import type { ErrorCode } from '../domain/errors.ts';

/** One row of the table: how a code leaves over HTTP. */
interface StatusRow {
  readonly status: number;
  readonly title: string;
  /** What a client should do; shown on the page of the problem type. */
  readonly advice: string;
  /** Sent as `Retry-After` when the error itself does not say. Every 423, 429 and 503 has one. */
  readonly retryAfterMs?: number;
}

const row = (status: number, title: string, advice: string): StatusRow => ({ status, title, advice });
const later = (status: number, title: string, advice: string, retryAfterMs: number): StatusRow => ({ status, title, advice, retryAfterMs });

/** The only map from error code to HTTP status (the table of the contract). The type makes it exhaustive. */
export const STATUS_TABLE: Readonly<Record<ErrorCode, StatusRow>> = {
  invalid_token: row(400, 'The fencing token is malformed', 'Send the token exactly as it was given: a decimal number from 1 to 2^63-1, once.'),
  invalid_path: row(
    400,
    'The path is not valid',
    'Percent-encode each segment as UTF-8; no empty, "." or ".." segment, no control character, no backslash.',
  ),
  invalid_request: row(400, 'The request is not valid', 'Correct what the detail names.'),
  digest_mismatch: row(
    400,
    'The bytes do not have the announced digest',
    'Send the body again; it was damaged on the way, or the digest is of another file.',
  ),
  incomplete_body: row(400, 'The body ended too early', 'Send the whole body again; nothing was changed.'),
  range_length_mismatch: row(400, 'Range and body differ in length', 'Send exactly as many bytes as X-Update-Range names.'),
  ttl_out_of_range: row(400, 'The time to live is out of range', 'Ask for a ttl_ms between min_ms and max_ms.'),
  unauthenticated: row(401, 'Authentication is required', 'Send Authorization: Bearer with a token of this gateway, or a client certificate.'),
  forbidden: row(403, 'Not allowed', 'Ask an administrator for the role or the path scope.'),
  token_not_issued: row(403, 'The fencing token was never issued', 'Take a lease and send its token.'),
  not_lease_owner: row(403, 'The lease belongs to somebody else', 'Send the X-Lease-Id of the lease, or write as its principal.'),
  volume_read_only: row(403, 'The volume is read-only', 'Write to another volume.'),
  cross_origin: row(403, 'A page of another origin may not write', 'Add the origin to FENCEGATE_ALLOWED_ORIGINS if it is yours.'),
  not_found: row(404, 'Not found', 'Check the name.'),
  volume_not_found: row(404, 'No such volume', 'GET /v1/volumes lists the volumes.'),
  lease_not_found: row(404, 'No such lease', 'Take a new lease.'),
  session_not_found: row(404, 'No such session', 'Make a new session.'),
  operation_not_found: row(404, 'No such operation', 'Operations are kept for seven days; refused requests are in the audit log.'),
  method_not_allowed: row(405, 'The method is not allowed here', 'Use one of the methods in Allow.'),
  upload_timeout: row(408, 'The request took too long to arrive', 'Send it again; nothing was changed.'),
  is_a_directory: row(409, 'It is a directory', 'Write a directory with a trailing slash.'),
  not_a_directory: row(409, 'It is not a directory', 'Write a file without a trailing slash, and below directories only.'),
  directory_not_empty: row(409, 'The directory is not empty', 'Delete what is in it first.'),
  already_exists: row(409, 'It exists already', 'Set "overwrite" or choose another name.'),
  special_file: row(409, 'It is neither a file nor a directory', 'Devices, sockets and pipes are never opened.'),
  symbolic_link: row(409, 'There is a symbolic link on the way', 'Use the real path; links are not followed.'),
  multiple_links: row(409, 'The file has several hard links', 'Replace it with PUT, or let the volume allow it.'),
  name_alias: row(409, 'Another spelling of this name is there', 'Use the spelling that is stored.'),
  cross_volume: row(409, 'The names are on different volumes', 'Copy, then delete.'),
  same_resource: row(409, 'Source and target are the same', 'Choose another target.'),
  offset_mismatch: row(409, 'The file has another size', 'Go on from expected_offset.'),
  lock_not_acquired: row(409, 'The lock was not acquired', 'Try again, or wait with wait_ms and max_wait_ms.'),
  deadlock: row(409, 'Waiting would never end', 'Release what you hold, then take the locks in one order, or all in one lease.'),
  lease_not_held: row(409, 'The lease is not held', 'Take a new lease; an ended one does not come back.'),
  session_ended: row(409, 'The session has ended', 'Make a new session and take the leases again.'),
  upgrade_conflict: row(409, 'Somebody else already waits to upgrade', 'Release the shared lease, then take an exclusive one.'),
  overlapping_lease: row(409, 'The session already holds one of these resources', 'Release the other lease first.'),
  idempotency_in_progress: row(409, 'The same request is still running', 'Wait, then send it again with the same key.'),
  length_required: row(411, 'The length of the body is not given', 'Send Content-Length or Transfer-Encoding: chunked.'),
  body_too_large: row(413, 'The body is too large', 'Send less.'),
  uri_too_long: row(414, 'The URL is too long', 'Use a shorter path.'),
  unsupported_media_type: row(415, 'The media type or encoding is not supported here', 'Send what the detail names.'),
  range_not_satisfiable: row(416, 'The range is outside the file', 'Ask for a range inside, or append without a hole.'),
  expectation_failed: row(417, 'The expectation is not known', 'Only Expect: 100-continue is known.'),
  headers_too_large: row(431, 'The header section is too large', 'Send fewer or shorter headers.'),
  stale_token: row(412, 'The fencing token is stale', 'Stop writing. Somebody else was granted a newer token; take a new lease.'),
  lease_ended: row(412, 'The lease has ended', 'Stop writing and take a new lease.'),
  lease_is_shared: row(412, 'The lease is shared', 'Convert it to exclusive and use the new token.'),
  precondition_failed: row(412, 'A condition of the request is not met', 'Read the file again and decide anew.'),
  wrong_host: row(421, 'This host name is not served here', 'Add the name to FENCEGATE_ALLOWED_HOSTS if it is yours.'),
  idempotency_key_reused: row(422, 'The idempotency key belongs to another request', 'Use a new key for a new request.'),
  resource_locked: later(423, 'Somebody holds the resource', 'Try again later, or take a lease and wait.', 1_000),
  token_required: row(428, 'A fencing token is required', 'Take a lease and send its token as X-Fencing-Token.'),
  rate_limited: later(429, 'Too many requests', 'Slow down.', 1_000),
  queue_full: later(429, 'Too many are waiting for the resource', 'Try again later.', 1_000),
  too_many_leases: later(429, 'Too many leases', 'Release leases that are not needed.', 1_000),
  too_many_sessions: later(429, 'Too many sessions', 'End sessions that are not needed.', 1_000),
  too_many_uploads: later(429, 'Too many uploads at once', 'Let an upload finish first.', 1_000),
  internal: row(500, 'The gateway met an error of its own', 'Report the request_id; the log has the details.'),
  coordinator_suspended: later(503, 'The coordinator is not in contact', 'Try again; nothing was changed.', 1_000),
  coordinator_unavailable: later(503, 'There is no coordinator', 'Try again; nothing was changed.', 5_000),
  volume_unavailable: later(503, 'The volume is not available', 'Try again; nothing was changed.', 5_000),
  journal_unavailable: later(503, 'The journal cannot be written', 'Try again; nothing was changed.', 5_000),
  overloaded: later(503, 'The gateway is overloaded', 'Try again; nothing was changed.', 1_000),
  draining: later(503, 'The gateway is stopping', 'Try again, at another gateway if there is one; nothing was changed.', 1_000),
  outcome_unknown: later(
    503,
    'It is not known whether it happened',
    'Ask GET /v1/operations with the operation_id, or GET /v1/leases/{id} with the lease_id, before you do anything else.',
    2_000,
  ),
  insufficient_storage: row(507, 'There is no room on the volume', 'Free space, quota or inodes; nothing was changed.'),
};

/** The HTTP status of a code; the journal stores it with each refusal. */
export function statusOf(code: ErrorCode): number {
  return STATUS_TABLE[code].status;
}

/** When to come again after a refusal that does not say so itself; `undefined`: not by waiting. */
export function retryAfterMsOf(code: ErrorCode): number | undefined {
  return STATUS_TABLE[code].retryAfterMs;
}
