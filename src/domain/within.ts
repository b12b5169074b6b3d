import type { Clock } from './clock.ts';

/** The result of `work`, or `late`; then it goes on by itself and nobody hears of it. */
export function within<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T | 'late'> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(ms, () => resolve('late'));
    work.then(
      (value) => {
        timer.cancel();
        resolve(value);
      },
      (thrown: unknown) => {
        timer.cancel();
        reject(thrown instanceof Error ? thrown : new Error(String(thrown)));
      },
    );
  });
}
