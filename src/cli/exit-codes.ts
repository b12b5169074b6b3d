/**
 * What the process tells its parent. From 64 on as in sysexits.h. `exec` and `edit` pass on what their command ended with, so a code can
 * also be that command's own.
 */
export const EXIT = {
  ok: 0,
  /** It could not be done: not found, a finding of the doctor, a gateway that could not start or did not stop in time. */
  failed: 1,
  /** The configuration of the gateway is wrong: starting it again will not help. */
  configuration: 2,
  /** The command line is wrong. */
  usage: 64,
  /** The gateway refused the write. */
  writeRefused: 65,
  /** The gateway was not reached, or cannot do it now; what became of a write may be unknown. */
  unavailable: 69,
  /** The lease was lost. */
  leaseLost: 70,
  /** The lock was not acquired in time. */
  notAcquired: 75,
  /** Not authenticated, or no right to do this. */
  noRight: 77,
  /** `exec` and `edit`: the command could not be run, or was not found. */
  notExecutable: 126,
  notFound: 127,
} as const;

const SIGNAL_NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGPIPE: 13, SIGTERM: 15 } as const;
export type EndSignal = 'SIGINT' | 'SIGTERM';

/** What a shell shows for a process that a signal ended. */
export function exitCodeOfSignal(signal: keyof typeof SIGNAL_NUMBERS): number {
  return 128 + SIGNAL_NUMBERS[signal];
}
