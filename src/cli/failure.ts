import { CommanderError } from 'commander';
import { isInvalidArgument } from '../client/call-checks.ts';
import { FencegateError, type FencegateErrorCode } from '../client/errors.ts';
import type { TlsRefusal } from '../client/tls-refusal.ts';
import { standingRefusal } from '../client/unreachable.ts';
import { ConfigError } from '../config/problems.ts';
import { ADVICE } from './advice.ts';
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
  rate_limited: EXIT.unavailable,
  too_many_leases: EXIT.unavailable,
  too_many_sessions: EXIT.unavailable,
  too_many_uploads: EXIT.unavailable,
  unauthenticated: EXIT.noRight,
  forbidden: EXIT.noRight,
  not_lease_owner: EXIT.noRight,
  cross_origin: EXIT.noRight,
  wrong_host: EXIT.noRight,
  volume_read_only: EXIT.noRight,
  invalid_path: EXIT.usage,
  invalid_request: EXIT.usage,
  same_resource: EXIT.usage,
  ttl_out_of_range: EXIT.usage,
  overlapping_lease: EXIT.usage,
  not_found: EXIT.failed,
  volume_not_found: EXIT.failed,
  operation_not_found: EXIT.failed,
  internal: EXIT.failed,
};

const TLS_ADVICE: Readonly<Record<TlsRefusal['about'], string>> = {
  name: 'write a name or address that the certificate is for in FENCEGATE_URL or --gateway',
  date: "have the gateway's certificate renewed; where it is in date, set the clock of this machine",
  authority: "name the authority of the gateway's certificate with FENCEGATE_CA_FILE",
  own_certificate: 'name a certificate that the gateway knows the authority of with FENCEGATE_CERT_FILE, and its key with FENCEGATE_KEY_FILE',
  plain: 'write http:// in FENCEGATE_URL or --gateway: what answers there knows no TLS',
  settings:
    'compare what the two sides allow: FENCEGATE_CA_FILE, FENCEGATE_CERT_FILE and FENCEGATE_KEY_FILE here, the certificate and versions of TLS there',
};

/** A code that has no row of its own is a gateway that cannot do it now, or a refusal: of what was to be written, if anything was. */
function exitCodeOf({ code, status }: FencegateError, isWrite: boolean): number {
  return EXIT_BY_CODE[code] ?? (status !== null && status >= 500 ? EXIT.unavailable : isWrite ? EXIT.writeRefused : EXIT.failed);
}

/** Whether the gateway was not reached, or cannot do it now: it may be back soon. */
export function isUnavailable(thrown: unknown): thrown is FencegateError {
  return thrown instanceof FencegateError && standingRefusal(thrown) === null && exitCodeOf(thrown, false) === EXIT.unavailable;
}

/** `isWrite`: of a command that writes. `null`: nobody foresaw this; it is thrown on. */
export function failureOf(thrown: unknown, isWrite: boolean): Failure | null {
  if (thrown instanceof CommanderError) return { exitCode: thrown.exitCode === 0 ? EXIT.ok : EXIT.usage, lines: [] };
  if (thrown instanceof Interrupted) return { exitCode: thrown.exitCode, lines: interruptionLines(thrown) };
  // What the SDK would not send is a command line that cannot be meant, such as an ETag with a line break.
  if (isInvalidArgument(thrown)) return { exitCode: EXIT.usage, lines: [printable(thrown.message)] };
  if (thrown instanceof UsageError) return { exitCode: EXIT.usage, lines: [thrown.message] };
  if (thrown instanceof ConfigError) return { exitCode: EXIT.configuration, lines: thrown.problems };
  if (thrown instanceof FencegateError) return { exitCode: exitCodeOf(thrown, isWrite), lines: linesOf(thrown) };
  const local = localFailure(thrown);
  if (local !== null) return { exitCode: EXIT.failed, lines: local };
  return null;
}

/** Nobody can call an order back: it may have been carried out, and may be so later. */
function interruptionLines({ orderId }: Interrupted): string[] {
  if (orderId === null) return [];
  return ['interrupted before the gateway answered: what became of it is not known', `next: ${lookUp(orderId)}`];
}

function lookUp(requestId: string): string {
  return `fencegate audit --request ${requestId} tells what became of it`;
}

function linesOf(error: FencegateError): string[] {
  const { code, message, members, requestId } = error;
  const request = requestId === null ? '' : ` [request ${requestId}]`;
  const since = typeof members['holder_since'] === 'string' ? ` since ${members['holder_since']}` : '';
  const holder = typeof members['holder_client_id'] === 'string' ? ` Held by ${members['holder_client_id']}${since}.` : othersThere(error);
  const advice = adviceFor(error);
  return [printable(`${code}: ${message}${holder}${request}`), ...(advice === null ? [] : [`next: ${advice}`])];
}

/** Who contends by another lock recipe has no lease, and holds as soon as nobody with a lease does. */
function othersThere({ message, members }: FencegateError): string {
  const names: unknown = members['foreign_contenders'];
  if (!Array.isArray(names) || names.length === 0 || message.includes(String(names[0]))) return '';
  return ` Another program stands there, without a lease: ${names.join(', ')}.`;
}

function adviceFor(error: FencegateError): string | null {
  if (error.code !== 'gateway_unreachable') return ADVICE[error.code];
  const refusal = standingRefusal(error);
  if (refusal !== null) return TLS_ADVICE[refusal.about];
  const lookUpLater = error.requestId === null ? '' : `; should the request have arrived, ${lookUp(error.requestId)}`;
  return `${ADVICE.gateway_unreachable}${lookUpLater}`;
}
