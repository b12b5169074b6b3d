import { type ErrorCode, STATUS_BY_CODE } from './contract/codes.ts';

/** What goes wrong on this side of the wire, beside the codes of the gateway. */
export type ClientErrorCode =
  /** No answer: not reached, cut off, or too late. What became of the request is not known. */
  | 'gateway_unreachable'
  /** Whatever answered does not speak this contract. */
  | 'unexpected_answer'
  /** The lease ended, or could have ended by the clock of this process: members `reason`, `fencing_token`, `lost_by` (`clock`, `gateway`). */
  | 'lease_lost'
  /** The lease was released by this process before. */
  | 'lease_released'
  | 'client_closed';

export type FencegateErrorCode = ErrorCode | ClientErrorCode;

export interface FencegateErrorParts {
  readonly detail: string;
  /** HTTP status; `null` when no answer is behind the error. */
  readonly status?: number | null;
  readonly requestId?: string | null;
  readonly members?: Readonly<Record<string, unknown>>;
  /** How long the gateway asks to wait, ms. */
  readonly retryAfterMs?: number | null;
  readonly cause?: unknown;
}

/**
 * The one error of the client. `code` is stable and made for programs; the message is for people; `requestId` finds the request in
 * the gateway's log and audit; `members` holds what the code adds, with the names of the HTTP contract (`high_water_mark`, `expected_offset`, ...).
 *
 * @example
 * try {
 *   await lease.put('ledger/q3.csv', bytes);
 * } catch (error) {
 *   if (!isFencegateError(error, 'stale_token')) throw error;
 *   console.error('somebody else holds', error.members['presented_token'], error.requestId);
 * }
 */
export class FencegateError extends Error {
  readonly code: FencegateErrorCode;
  readonly status: number | null;
  readonly requestId: string | null;
  readonly members: Readonly<Record<string, unknown>>;
  readonly retryAfterMs: number | null;

  constructor(code: FencegateErrorCode, parts: FencegateErrorParts) {
    super(parts.detail, parts.cause === undefined ? undefined : { cause: parts.cause });
    this.name = 'FencegateError';
    this.code = code;
    this.status = parts.status ?? null;
    this.requestId = parts.requestId ?? null;
    this.members = parts.members ?? {};
    this.retryAfterMs = parts.retryAfterMs ?? null;
  }
}

/**
 * Whether `thrown` is a `FencegateError`, of one of `codes` when some are given. Throws nothing.
 *
 * @example
 * if (isFencegateError(error, 'lock_not_acquired', 'deadlock')) return 'busy';
 */
export function isFencegateError<C extends FencegateErrorCode>(
  thrown: unknown,
  ...codes: readonly C[]
): thrown is FencegateError & { readonly code: C } {
  return thrown instanceof FencegateError && (codes.length === 0 || codes.some((code) => code === thrown.code));
}

export function isErrorCode(word: unknown): word is ErrorCode {
  return typeof word === 'string' && Object.hasOwn(STATUS_BY_CODE, word);
}
