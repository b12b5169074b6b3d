import type { FencegateErrorCode } from './errors.ts';

/**
 * `unchanged`: the gateway did nothing, so any request may be sent again.
 * `keyed`: it may have been done, so only a request that does nothing twice may be sent again: one that reads, or one with the same
 * `Idempotency-Key` or hold id as before.
 */
export type RetryRule = 'unchanged' | 'keyed';

/** The codes after which the client tries again by itself. A code that is not here is final. */
export const RETRY_RULES: Readonly<Partial<Record<FencegateErrorCode, RetryRule>>> = {
  gateway_unreachable: 'keyed',
  outcome_unknown: 'keyed',
  idempotency_in_progress: 'keyed',
  upload_timeout: 'unchanged',
  incomplete_body: 'unchanged',
  rate_limited: 'unchanged',
  queue_full: 'unchanged',
  too_many_uploads: 'unchanged',
  overloaded: 'unchanged',
  draining: 'unchanged',
  coordinator_suspended: 'unchanged',
  coordinator_unavailable: 'unchanged',
  volume_unavailable: 'unchanged',
  journal_unavailable: 'unchanged',
};
