import { CommanderError } from 'commander';
import { isInvalidArgument } from '../client/call-checks.ts';
import { FencegateError, type FencegateErrorCode } from '../client/errors.ts';
import { ConfigError } from '../config/problems.ts';
import { EXIT } from './exit-codes.ts';
import { Interrupted } from './interruptible.ts';
import { localFailure } from './local-failure.ts';
import { printable } from './printable.ts';
import { UsageError } from './usage-error.ts';

/** How a command ended that did not do what it was asked: the exit code, and lines for people. */
export interface Failure {
  readonly exitCode: number;
  readonly lines: readonly string[];
}

const EXIT_BY_CODE: Readonly<Partial<Record<FencegateErrorCode, number>>> = {
  gateway_unreachable: EXIT.unavailable,
  unexpected_answer: EXIT.unavailable,
  lease_lost: EXIT.leaseLost,
  lease_released: EXIT.leaseLost,
  lease_not_held: EXIT.leaseLost,
  lease_not_found: EXIT.leaseLost,
  session_ended: EXIT.leaseLost,
  session_not_found: EXIT.leaseLost,
  lock_not_acquired: EXIT.notAcquired,
  resource_locked: EXIT.notAcquired,
  deadlock: EXIT.notAcquired,
  queue_full: EXIT.notAcquired,
  upgrade_conflict: EXIT.notAcquired,
  unauthenticated: EXIT.noRight,
  forbidden: EXIT.noRight,
  cross_origin: EXIT.noRight,
  wrong_host: EXIT.noRight,
  volume_read_only: EXIT.noRight,
  invalid_path: EXIT.usage,
  invalid_request: EXIT.usage,
  ttl_out_of_range: EXIT.usage,
  overlapping_lease: EXIT.usage,
  not_found: EXIT.failed,
  volume_not_found: EXIT.failed,
  operation_not_found: EXIT.failed,
  internal: EXIT.failed,
};

/** What to do next, where the code alone tells. */
const ADVICE: Readonly<Partial<Record<FencegateErrorCode, string>>> = {
  gateway_unreachable: 'check that the gateway runs, and FENCEGATE_URL or --gateway; what became of a write that was under way is in the audit log',
  unexpected_answer: 'check FENCEGATE_URL or --gateway: what answers there is no Fencegate gateway',
  unauthenticated: 'set FENCEGATE_AUTH_TOKEN, or name a file with --auth-token-file',
  forbidden: 'ask an administrator for the role or the path scope',
  wrong_host: 'use a name that the gateway knows, or have it added to FENCEGATE_ALLOWED_HOSTS',
  volume_not_found: 'fencegate ls shows the volumes',
  not_found: 'fencegate ls VOLUME/ shows what is there',
  lock_not_acquired: 'fencegate lock show VOL/PATH tells who holds it; --wait waits longer',
  resource_locked: 'fencegate lock show VOL/PATH tells who holds it; --wait waits longer',
  deadlock: 'give back what you hold, and take locks in one order everywhere',
  queue_full: 'try again later',
  stale_token: 'stop: the lease is over, and somebody else may hold the resource by now; take a new one and begin again from the present file',
  lease_ended: 'stop: the lease is over; take a new one and begin again from the present file',
  lease_lost: 'take a new lease and begin again from the present file',
  lease_not_held: 'take a new lease; one that has ended does not come back',
  lease_not_found: 'take a new lease; one that has ended is forgotten after an hour',
  overlapping_lease: 'a lease is not made stronger by taking it again: run the outer fencegate exec without --shared',
  lease_is_shared: 'a shared lease writes nothing: run without --shared',
  token_required: 'run it under fencegate exec --lock VOL/PATH',
  token_not_issued: 'use the token of a lease that this gateway granted for this resource',
  not_lease_owner: 'use the lease of your own',
  precondition_failed: 'the file is not what you took it for: get it again and decide anew',
  already_exists: '--force replaces it',
  directory_not_empty: 'remove what is in it first',
  is_a_directory: 'name a file, or end the name with a slash for a directory',
  cross_volume: 'get it and put it: a move stays within one volume',
  insufficient_storage: 'make room on the volume',
  volume_read_only: 'write to another volume',
  outcome_unknown: 'look at the file, or at fencegate audit, before you do it again',
  coordinator_suspended: 'try again later; fencegate doctor tells more',
  volume_unavailable: 'fencegate doctor tells what is wrong with the volume',
  journal_unavailable: 'fencegate doctor tells more; if the journal was restored: fencegate fence rebase',
  draining: 'the gateway is stopping: try again when it is back',
  overloaded: 'try again later',
};

/** As Node and OpenSSL name what is wrong with a certificate. */
const CERTIFICATE = /CERT|SIGNATURE|ERR_SSL|ERR_TLS/;
const CERTIFICATE_ADVICE =
  "name the authority of the gateway's certificate with FENCEGATE_CA_FILE, the own certificate, where it wants one, with FENCEGATE_CERT_FILE and FENCEGATE_KEY_FILE";

/** A code that has no row of its own is a refusal of what was to be written, or a gateway that cannot do it now. */
export function exitCodeOf({ code, status }: FencegateError): number {
  return EXIT_BY_CODE[code] ?? (status !== null && status >= 500 ? EXIT.unavailable : EXIT.writeRefused);
}

/** `null`: nobody foresaw this; it is thrown on. */
export function failureOf(thrown: unknown): Failure | null {
  if (thrown instanceof CommanderError) return { exitCode: thrown.exitCode === 0 ? EXIT.ok : EXIT.usage, lines: [] };
  if (thrown instanceof Interrupted) return { exitCode: thrown.exitCode, lines: [] };
  // What the SDK would not send is a command line that cannot be meant, such as an ETag with a line break.
  if (isInvalidArgument(thrown)) return { exitCode: EXIT.usage, lines: [printable(thrown.message)] };
  if (thrown instanceof UsageError) return { exitCode: EXIT.usage, lines: [thrown.message] };
  if (thrown instanceof ConfigError) return { exitCode: EXIT.configuration, lines: thrown.problems };
  if (thrown instanceof FencegateError) return { exitCode: exitCodeOf(thrown), lines: linesOf(thrown) };
  const local = localFailure(thrown);
  if (local !== null) return { exitCode: EXIT.failed, lines: local };
  return null;
}

function linesOf({ code, message, members, requestId }: FencegateError): string[] {
  const request = requestId === null ? '' : ` [request ${requestId}]`;
  const holder = typeof members['holder_client_id'] === 'string' ? ` Held by ${members['holder_client_id']}.` : '';
  const advice = code === 'gateway_unreachable' && CERTIFICATE.test(message) ? CERTIFICATE_ADVICE : ADVICE[code];
  return [printable(`${code}: ${message}${holder}${request}`), ...(advice === undefined ? [] : [`next: ${advice}`])];
}
