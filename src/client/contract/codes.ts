// Made from the schemas of the gateway: npx vitest run test/unit/client/contract.test.ts -u

/** The closed list of codes of the gateway, each with its HTTP status. */
export const STATUS_BY_CODE = {
  /** The fencing token is malformed. Send the token exactly as it was given: a decimal number from 1 to 2^63-1, once. */
  invalid_token: 400,
  /** The path is not valid. Percent-encode each segment as UTF-8; no empty, "." or ".." segment, no control character, no backslash. */
  invalid_path: 400,
  /** The request is not valid. Correct what the detail names. */
  invalid_request: 400,
  /** The bytes do not have the announced digest. Send the body again; it was damaged on the way, or the digest is of another file. */
  digest_mismatch: 400,
  /** The body ended too early. Send the whole body again; nothing was changed. */
  incomplete_body: 400,
  /** Range and body differ in length. Send exactly as many bytes as X-Update-Range names. */
  range_length_mismatch: 400,
  /** The time to live is out of range. Ask for a ttl_ms between min_ms and max_ms. */
  ttl_out_of_range: 400,
  /** Authentication is required. Send Authorization: Bearer with a token of this gateway, or a client certificate. */
  unauthenticated: 401,
  /** Not allowed. Ask an administrator for the role or the path scope. */
  forbidden: 403,
  /** The fencing token was never issued. Take a lease and send its token. */
  token_not_issued: 403,
  /** The lease belongs to somebody else. Send the X-Lease-Id of the lease, or write as its principal. */
  not_lease_owner: 403,
  /** The volume is read-only. Write to another volume. */
  volume_read_only: 403,
  /** A page of another origin may not write. Add the origin to FENCEGATE_ALLOWED_ORIGINS if it is yours. */
  cross_origin: 403,
  /** Not found. Check the name. */
  not_found: 404,
  /** No such volume. GET /v1/volumes lists the volumes. */
  volume_not_found: 404,
  /** No such lease. Take a new lease. */
  lease_not_found: 404,
  /** No such session. Make a new session. */
  session_not_found: 404,
  /** No such operation. Operations are kept for seven days; refused requests are in the audit log. */
  operation_not_found: 404,
  /** The method is not allowed here. Use one of the methods in Allow. */
  method_not_allowed: 405,
  /** The request took too long to arrive. Send it again; nothing was changed. */
  upload_timeout: 408,
  /** It is a directory. Write a directory with a trailing slash. */
  is_a_directory: 409,
  /** It is not a directory. Write a file without a trailing slash, and below directories only. */
  not_a_directory: 409,
  /** The directory is not empty. Delete what is in it first. */
  directory_not_empty: 409,
  /** It exists already. Set "overwrite" or choose another name. */
  already_exists: 409,
  /** It is neither a file nor a directory. Devices, sockets and pipes are never opened. */
  special_file: 409,
  /** There is a symbolic link on the way. Use the real path; links are not followed. */
  symbolic_link: 409,
  /** The file has several hard links. Replace it with PUT, or let the volume allow it. */
  multiple_links: 409,
  /** Another spelling of this name is there. Use the spelling that is stored. */
  name_alias: 409,
  /** The names are on different volumes. Copy, then delete. */
  cross_volume: 409,
  /** Source and target are the same. Choose another target. */
  same_resource: 409,
  /** The file has another size. Go on from expected_offset. */
  offset_mismatch: 409,
  /** The lock was not acquired. Try again, or wait with wait_ms and max_wait_ms. */
  lock_not_acquired: 409,
  /** Waiting would never end. Release what you hold, then take the locks in one order, or all in one lease. */
  deadlock: 409,
  /** The lease is not held. Take a new lease; an ended one does not come back. */
  lease_not_held: 409,
  /** The session has ended. Make a new session and take the leases again. */
  session_ended: 409,
  /** Somebody else already waits to upgrade. Release the shared lease, then take an exclusive one. */
  upgrade_conflict: 409,
  /** The session already holds one of these resources. Release the other lease first. */
  overlapping_lease: 409,
  /** The same request is still running. Wait, then send it again with the same key. */
  idempotency_in_progress: 409,
  /** The length of the body is not given. Send Content-Length or Transfer-Encoding: chunked. */
  length_required: 411,
  /** The body is too large. Send less. */
  body_too_large: 413,
  /** The URL is too long. Use a shorter path. */
  uri_too_long: 414,
  /** The media type or encoding is not supported here. Send what the detail names. */
  unsupported_media_type: 415,
  /** The range is outside the file. Ask for a range inside, or append without a hole. */
  range_not_satisfiable: 416,
  /** The expectation is not known. Only Expect: 100-continue is known. */
  expectation_failed: 417,
  /** The header section is too large. Send fewer or shorter headers. */
  headers_too_large: 431,
  /** The fencing token is stale. Stop writing. Somebody else was granted a newer token; take a new lease. */
  stale_token: 412,
  /** The lease has ended. Stop writing and take a new lease. */
  lease_ended: 412,
  /** The lease is shared. Convert it to exclusive and use the new token. */
  lease_is_shared: 412,
  /** A condition of the request is not met. Read the file again and decide anew. */
  precondition_failed: 412,
  /** This host name is not served here. Add the name to FENCEGATE_ALLOWED_HOSTS if it is yours. */
  wrong_host: 421,
  /** The idempotency key belongs to another request. Use a new key for a new request. */
  idempotency_key_reused: 422,
  /** Somebody holds the resource. Try again later, or take a lease and wait. */
  resource_locked: 423,
  /** A fencing token is required. Take a lease and send its token as X-Fencing-Token. */
  token_required: 428,
  /** Too many requests. Slow down. */
  rate_limited: 429,
  /** Too many are waiting for the resource. Try again later. */
  queue_full: 429,
  /** Too many leases. Release leases that are not needed. */
  too_many_leases: 429,
  /** Too many sessions. End sessions that are not needed. */
  too_many_sessions: 429,
  /** Too many uploads at once. Let an upload finish first. */
  too_many_uploads: 429,
  /** The gateway met an error of its own. Report the request_id; the log has the details. */
  internal: 500,
  /** The coordinator is not in contact. Try again; nothing was changed. */
  coordinator_suspended: 503,
  /** There is no coordinator. Try again; nothing was changed. */
  coordinator_unavailable: 503,
  /** The volume is not available. Try again; nothing was changed. */
  volume_unavailable: 503,
  /** The journal cannot be written. Try again; nothing was changed. */
  journal_unavailable: 503,
  /** The gateway is overloaded. Try again; nothing was changed. */
  overloaded: 503,
  /** The gateway is stopping. Try again, at another gateway if there is one; nothing was changed. */
  draining: 503,
  /** It is not known whether it happened. Ask GET /v1/operations with the operation_id, or GET /v1/leases/{id} with the lease_id, before you do anything else. */
  outcome_unknown: 503,
  /** There is no room on the volume. Free space, quota or inodes; nothing was changed. */
  insufficient_storage: 507,
} as const;

export type ErrorCode = keyof typeof STATUS_BY_CODE;
