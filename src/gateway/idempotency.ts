import { type ErrorCode, GatewayError, refuse } from '../domain/errors.ts';
import type { IdempotencyScope, Journal, StoredAnswer } from '../domain/journal.ts';
import type { WriteAnswer, WriteEnvelope } from '../domain/write.ts';

/** Requests with an `Idempotency-Key` that have not been answered yet. */
export class RunningKeys {
  readonly #running = new Set<string>();

  /** Throws `idempotency_in_progress`; gives back the function that ends the claim. */
  claim(scope: IdempotencyScope): () => void {
    const name = JSON.stringify([scope.principal, scope.method, scope.path, scope.key]);
    if (this.#running.has(name)) throw refuse('idempotency_in_progress', 'A request with this Idempotency-Key is still running.');
    this.#running.add(name);
    return () => void this.#running.delete(name);
  }
}

export function scopeOf(envelope: WriteEnvelope): IdempotencyScope | null {
  const sent = envelope.idempotency;
  if (sent === null) return null;
  return { principal: envelope.caller.principal.name, method: sent.method, path: sent.path, key: sent.key };
}

/**
 * Looks for the stored answer of an equal request. Comes after authentication and before the token, so that a client that was
 * fenced meanwhile still learns what its first try did.
 * @returns `null` when the request is new. Throws `idempotency_key_reused`, or `outcome_unknown` again.
 */
export async function replay(journal: Journal, scope: IdempotencyScope, fingerprint: string): Promise<WriteAnswer | null> {
  const row = await journal.idempotent(scope);
  if (row === null) return null;
  if (row.fingerprint !== fingerprint) {
    throw refuse('idempotency_key_reused', 'This Idempotency-Key was used for another request.');
  }
  if (isUnknown(row.answer) || (await isPending(journal, row.operationId))) throw outcomeUnknown(row.operationId);
  return { ...row.answer, replayed: true };
}

/** Of the process before us, on a volume that has not been recovered yet: its answer is stored with the intent, and true once that was seen to be carried out. */
async function isPending(journal: Journal, operationId: string): Promise<boolean> {
  return (await journal.operation({ by: 'operation_id', operationId }))?.outcome === 'pending';
}

/**
 * The code of a write that turned out not to have happened when nobody was there to see why: the process had ended, or the volume had been
 * silent. It says what is true for whoever asks: nothing was changed, it may be sent again.
 */
export const ABORTED_UNSEEN: ErrorCode = 'volume_unavailable';

/** Of a last word: the file has another version than the stored answer promised, so the answer is told to say so. */
export function retagging(promised: string | null, found: string | null): { readonly retagged?: { readonly from: string; readonly to: string } } {
  return promised === null || found === null || promised === found ? {} : { retagged: { from: promised, to: found } };
}

const UNKNOWN_STATUS = 503;

/** What is stored for an operation whose outcome is not known yet. */
export function unknownAnswer(): StoredAnswer {
  return { status: UNKNOWN_STATUS, headers: {}, body: null };
}

function isUnknown(answer: StoredAnswer): boolean {
  return answer.status === UNKNOWN_STATUS;
}

/** The journal's own word for a unit in doubt, of an operation that nothing can come of any more. */
export function refusedInDoubt(cause: GatewayError): GatewayError {
  return new GatewayError('journal_unavailable', {
    detail: 'The journal cannot be written; nothing was changed.',
    ...(cause.retryAfterMs === undefined ? {} : { retryAfterMs: cause.retryAfterMs }),
    cause,
  });
}

/** 503 `outcome_unknown` of an operation whose intent the next start of the gateway finds, and then finishes, or does not find. */
export function recordInDoubt(operationId: string, cause: GatewayError): GatewayError {
  return new GatewayError('outcome_unknown', {
    detail:
      'The journal did not say whether it has this operation. Nothing was changed so far; the next start of the gateway finishes it or drops it. ' +
      'Ask GET /v1/operations with this operation_id after that.',
    members: { operation_id: operationId },
    ...(cause.retryAfterMs === undefined ? {} : { retryAfterMs: cause.retryAfterMs }),
    cause,
  });
}

/** 503 `outcome_unknown`: settle it by `GET /v1/operations`, never by a blind retry. */
export function outcomeUnknown(operationId: string, cause?: unknown): GatewayError {
  return new GatewayError('outcome_unknown', {
    detail: 'The volume did not say whether the write happened. Ask GET /v1/operations with this operation_id.',
    members: { operation_id: operationId },
    retryAfterMs: 2_000,
    cause,
  });
}
