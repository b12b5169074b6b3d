import { setImmediate as nextTurn } from 'node:timers/promises';
import { EXIT, exitCodeOfSignal } from './exit-codes.ts';
import { saysOf } from './local-failure.ts';
import { watchReader } from './reader-watch.ts';

/** Standard output takes no more: nobody reads it, its disk is full, its terminal is gone. */
export class OutputFailed extends Error {
  readonly exitCode: number;
  /** For people; none where nobody reads: that is how a reader says that it has enough. */
  readonly lines: readonly string[];

  constructor(cause: NodeJS.ErrnoException) {
    super('standard output takes no more', { cause });
    this.name = 'OutputFailed';
    const isUnread = cause.code === 'EPIPE';
    this.exitCode = isUnread ? exitCodeOfSignal('SIGPIPE') : EXIT.failed;
    this.lines = isUnread ? [] : [`standard output: ${saysOf(cause) ?? cause.message}`];
  }
}

const failed = new AbortController();
/** Aborts with `OutputFailed`. Files, pipes and terminals all tell later than at the write. */
export const outputFailed: AbortSignal = failed.signal;

/** Without a listener the error would end the process as one that nobody caught. */
export function outliveStandardOutput(): void {
  process.stdout.on('error', (error) => failed.abort(new OutputFailed(error)));
}

/** For whoever waits with nothing to put out: that nobody reads any more counts as it does at a write. Returns what ends that. */
export function noticeUnread(): () => void {
  return watchReader(() => failed.abort(new OutputFailed(Object.assign(new Error('nobody reads standard output'), { code: 'EPIPE' }))));
}

/** Resolves when what was put out is written, however slow its reader is, or cannot be: a process that ends takes with it what still waits. */
export async function outputWritten(): Promise<void> {
  if (process.stdout.writableLength > 0) await new Promise<void>((resolve) => process.stdout.write('', () => resolve()));
  // An error comes in a turn of its own.
  await nextTurn();
}
