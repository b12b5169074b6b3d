import { CLIENT_LIMITS } from './client-limits.ts';
import type { ClientClock } from './clock.ts';
import { FencegateError } from './errors.ts';
import { pause } from './pause.ts';
import { RETRY_RULES, type RetryRule } from './retry-rules.ts';
import { standingRefusal } from './unreachable.ts';

export interface RetryDeps {
  readonly clock: ClientClock;
  /** From 0 to 1, 1 excluded. */
  readonly random: () => number;
}

export interface RetryOptions {
  /** Asked before each repetition: doing it twice does no harm, and it can be sent again. */
  readonly keyed: boolean;
  /** Whether what is sent can be sent again after this error; default yes. */
  readonly repeatable?: (error: FencegateError) => boolean;
  readonly signal?: AbortSignal | undefined;
  /** In place of a number of attempts: none begins after this time of the clock. */
  readonly untilMs?: number;
}

/** What `RETRY_RULES` says of it. A connection that TLS refused is refused the next time, too. */
export function ruleOf(error: FencegateError): RetryRule | undefined {
  return standingRefusal(error) === null ? RETRY_RULES[error.code] : undefined;
}

/** Full jitter: anything up to the step, so that many clients do not come back together. */
export function jitteredDelayMs(attempt: number, random: () => number, fromMs: number = CLIENT_LIMITS.retryDelayMs): number {
  return random() * Math.min(CLIENT_LIMITS.retryDelayMsMax, fromMs * 2 ** Math.min(attempt, 30));
}

/** Tries again what `RETRY_RULES` allows, a bounded number of times, never before the gateway's `Retry-After`. Rejects with the last error. */
export async function retrying<T>(deps: RetryDeps, attempt: () => Promise<T>, options: RetryOptions): Promise<T> {
  for (let count = 1; ; count += 1) {
    try {
      return await attempt();
    } catch (thrown) {
      const delayMs = delayBefore(thrown, count, deps, options);
      if (delayMs === null) throw thrown;
      await pause(deps.clock, delayMs, options.signal);
    }
  }
}

/** `null`: it is final. */
function delayBefore(thrown: unknown, count: number, { clock, random }: RetryDeps, options: RetryOptions): number | null {
  if (!(thrown instanceof FencegateError) || options.signal?.aborted === true) return null;
  const rule = ruleOf(thrown);
  if (rule === undefined || (rule === 'keyed' && !options.keyed)) return null;
  if (options.repeatable?.(thrown) === false) return null;
  const askedMs = thrown.retryAfterMs ?? 0;
  if (askedMs > CLIENT_LIMITS.retryAfterMsMax) return null;
  const delayMs = askedMs + jitteredDelayMs(count - 1, random);
  if (options.untilMs === undefined) return count < CLIENT_LIMITS.attemptsMax ? delayMs : null;
  return clock.monotonicMs() + delayMs < options.untilMs ? delayMs : null;
}
