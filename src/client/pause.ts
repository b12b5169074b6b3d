import type { ClientClock } from './clock.ts';

/** Resolves after `delayMs`; rejects with the signal's reason as soon as it aborts. Keeps the process alive: somebody waits for it. */
export function pause(clock: ClientClock, delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason);
      return;
    }
    const onAbort = (): void => {
      timer.cancel();
      reject(signal?.reason);
    };
    const onTime = (): void => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    };
    const timer = clock.after(delayMs, onTime, true);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
