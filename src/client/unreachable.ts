import { FencegateError } from './errors.ts';
import { type TlsRefusal, tlsRefusal } from './tls-refusal.ts';

/** The words for a gateway that was not reached. Never a URL: some have the secret id of a lease. */

export interface UnreachableParts {
  readonly members?: Readonly<Record<string, unknown>>;
  /** Of an order that may have been carried out: finds it in the log and the audit records of the gateway. */
  readonly requestId?: string | null;
}

export function unreachable(why: string, cause: unknown, { members = {}, requestId = null }: UnreachableParts = {}): FencegateError {
  const refusal = tlsRefusal(why);
  const detail = `The gateway was not reached: ${refusal === null ? why : `${refusal.says} (${why})`}.`;
  // Where it was not trusted, or did not trust us, it was told nothing.
  return new FencegateError('gateway_unreachable', { detail, cause, members, requestId: refusal === null ? requestId : null });
}

/** Nobody listened, so nothing was asked of anybody. */
export function wasNeverSent(error: FencegateError): boolean {
  if (error.code !== 'gateway_unreachable') return false;
  return reasonOf(error.cause) === 'ECONNREFUSED' || standingRefusal(error) !== null;
}

/** Why it will be the same next time, whoever asks; `null` for what may heal by itself. */
export function standingRefusal(error: FencegateError): TlsRefusal | null {
  return error.code === 'gateway_unreachable' ? tlsRefusal(reasonOf(error.cause)) : null;
}

/** As OpenSSL tells it through a write that was under way: `write EPROTO 40E7...:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:...`. */
const SSL_REASON = /:error:[0-9A-F]{8}:SSL routines:[^:]*:([^:]+):/;

/** The code of the system call or of the TLS library behind a failed request, such as ECONNREFUSED. */
export function reasonOf(thrown: unknown): string {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if (!('code' in error) || typeof error.code !== 'string') continue;
    const [, reason] = error.code === 'EPROTO' ? (SSL_REASON.exec(error.message) ?? []) : [];
    return reason === undefined ? error.code : `ERR_SSL_${reason.trim().toUpperCase().replaceAll(' ', '_')}`;
  }
  return 'the connection failed';
}
