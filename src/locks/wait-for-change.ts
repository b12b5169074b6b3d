import type { Clock } from '../domain/clock.ts';
import type { Lease } from './lease-record.ts';

/**
 * Waits for the next told change of a lease, at most `waitMs`. Costs nothing while it waits.
 * @returns `aborted` when the signal fired, also when it had before.
 */
export function waitForChange(lease: Lease, clock: Clock, waitMs: number, signal: AbortSignal): Promise<'changed' | 'time' | 'aborted'> {
  if (signal.aborted) return Promise.resolve('aborted');
  return new Promise((resolve) => {
    const finish = (outcome: 'changed' | 'time' | 'aborted'): void => {
      off();
      timer?.cancel();
      signal.removeEventListener('abort', onAbort);
      resolve(outcome);
    };
    const onAbort = (): void => finish('aborted');
    const off = lease.onChange(() => finish('changed'));
    const timer = Number.isFinite(waitMs) ? clock.after(waitMs, () => finish('time')) : null;
    signal.addEventListener('abort', onAbort);
  });
}
