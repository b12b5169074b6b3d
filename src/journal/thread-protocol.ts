import { GatewayError } from '../domain/errors.ts';

/** Calls from the main thread to a thread of the journal: a map of names to what goes in and what comes out. */
export type CallMap = Readonly<Record<string, { readonly input: unknown; readonly output: unknown }>>;

export interface CallMessage {
  readonly id: number;
  readonly name: string;
  readonly input: unknown;
}

export interface ThreadFailure {
  /** A `GatewayError` when set: its detail may be shown. */
  readonly code: 'journal_unavailable' | 'invalid_request' | null;
  readonly message: string;
}

export type ThreadMessage =
  | { readonly kind: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'refusal'; readonly id: number; readonly failure: ThreadFailure }
  | { readonly kind: 'event'; readonly event: unknown };

/** Errors lose their class between threads; this keeps what the other side needs. */
export function failureOf(thrown: unknown): ThreadFailure {
  if (thrown instanceof GatewayError && (thrown.code === 'journal_unavailable' || thrown.code === 'invalid_request')) {
    return { code: thrown.code, message: thrown.message };
  }
  return { code: null, message: thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown) };
}
