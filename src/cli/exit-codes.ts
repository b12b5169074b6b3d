/** What the process tells its parent. */
export const EXIT = {
  ok: 0,
  /** It could not start, could not go on, or did not stop in time. */
  failed: 1,
  /** The command line or the configuration is wrong: starting it again will not help. */
  usage: 2,
} as const;

const SIGNAL_NUMBERS = { SIGINT: 2, SIGTERM: 15 } as const;
export type EndSignal = 'SIGINT' | 'SIGTERM';

/** What a shell shows for a process that a signal ended. */
export function exitCodeOfSignal(signal: EndSignal): number {
  return 128 + SIGNAL_NUMBERS[signal];
}
