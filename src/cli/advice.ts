import type { FencegateErrorCode } from '../client/errors.ts';

const NEW_LEASE = 'take a new lease and begin again from the present file';
const LATER = 'try again later';
const AGAIN = 'put it again';
const WHO_HOLDS = 'fencegate lock show VOL/PATH tells who holds it; --wait waits longer';
const ENOUGH = 'release what is not needed any more, and try again later';

/** What to do next, as far as the code alone tells; `null` for what no command can meet. */
export const ADVICE: Readonly<Record<FencegateErrorCode, string | null>> = {
  gateway_unreachable: 'check that the gateway runs, and FENCEGATE_URL or --gateway, http or https, too',
  unexpected_answer: 'check FENCEGATE_URL or --gateway: what answers there is no Fencegate gateway',
  unauthenticated: 'set FENCEGATE_AUTH_TOKEN to a token that this gateway knows, or name a file that holds one with --auth-token-file',
  forbidden: 'ask an administrator for the role or the path scope',
  wrong_host: 'use a name that the gateway knows, or have it added to FENCEGATE_ALLOWED_HOSTS',
  cross_origin: null,

  invalid_path: 'choose a name that meets what is said above; names that are there are written as fencegate ls shows them',
  invalid_request: 'the command with --help tells what it takes',
  invalid_token: 'use the token of a lease as it was printed',
  ttl_out_of_range: 'write a --ttl within these bounds, which are those of the volume',
  volume_not_found: 'fencegate ls shows the volumes',
  not_found: 'fencegate ls VOLUME/ shows what is there',
  operation_not_found: null,
  method_not_allowed: null,

  lock_not_acquired: WHO_HOLDS,
  resource_locked: WHO_HOLDS,
  deadlock: 'give back what you hold, and take locks in one order everywhere',
  upgrade_conflict: null,
  queue_full: LATER,
  too_many_leases: ENOUGH,
  too_many_sessions: ENOUGH,
  too_many_uploads: LATER,
  rate_limited: LATER,

  stale_token: 'stop: the lease is over, and somebody else may hold the resource by now; take a new one and begin again from the present file',
  lease_ended: 'stop: the lease is over; take a new one and begin again from the present file',
  lease_lost: NEW_LEASE,
  lease_released: NEW_LEASE,
  lease_not_held: 'take a new lease; one that has ended does not come back',
  lease_not_found: 'take a new lease; one that has ended is forgotten after an hour',
  session_ended: NEW_LEASE,
  session_not_found: NEW_LEASE,
  overlapping_lease: 'a lease is not made stronger by taking it again: run the outer fencegate exec without --shared',
  lease_is_shared: 'a shared lease writes nothing: run without --shared',
  token_required: 'run it under fencegate exec --lock VOL/PATH',
  token_not_issued: 'use the token of a lease that this gateway granted for this resource',
  not_lease_owner: 'use the lease of your own',

  precondition_failed: 'the file is not what you took it for: get it again and decide anew',
  already_exists: '--force replaces it',
  same_resource: 'name another target',
  directory_not_empty: 'remove what is in it first',
  is_a_directory: 'name a file: fencegate ls shows what is in a directory, and put takes one whose name ends with a slash',
  not_a_directory: 'a part of the path is a file: fencegate ls VOLUME/ shows which; name a path whose directories are none',
  special_file: 'name a regular file or a directory: nothing else is served',
  symbolic_link: 'name the file itself: links are not followed',
  multiple_links: 'copy the file, so that it has one name, or have hard_links: split set for the volume',
  name_alias: 'use the name that is there already, as fencegate ls shows it',
  cross_volume: 'get it and put it: a move stays within one volume',
  volume_read_only: 'write to another volume',
  offset_mismatch: null,
  range_length_mismatch: null,
  range_not_satisfiable: null,

  digest_mismatch: AGAIN,
  incomplete_body: AGAIN,
  upload_timeout: AGAIN,
  body_too_large: 'put less, or have FENCEGATE_BODY_MAX_BYTES, or the body_bytes of the volume, raised',
  insufficient_storage: 'make room on the volume',
  idempotency_in_progress: LATER,
  idempotency_key_reused: null,
  length_required: null,
  uri_too_long: 'use a shorter name',
  headers_too_large: 'use shorter options',
  unsupported_media_type: null,
  expectation_failed: null,

  outcome_unknown: 'look at the file, or at fencegate audit, before you do it again',
  coordinator_suspended: 'try again later; fencegate doctor tells more',
  coordinator_unavailable: 'try again later; fencegate doctor tells more',
  volume_unavailable: 'fencegate doctor tells what is wrong with the volume',
  journal_unavailable: 'fencegate doctor tells more; if the journal was restored: fencegate fence rebase',
  draining: 'the gateway is stopping: try again when it is back',
  overloaded: LATER,
  internal: 'look for the request in the log of the gateway',
  client_closed: null,
};
