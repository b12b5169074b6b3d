import { exitCodeOfSignal } from './exit-codes.ts';

/** A signal ended the command before it was done. */
export class Interrupted extends Error {
  readonly exitCode: number;

  constructor(signal: 'SIGINT' | 'SIGTERM') {
    super('interrupted');
    this.name = 'Interrupted';
    this.exitCode = exitCodeOfSignal(signal);
  }
}

/** Runs `work` with a signal that aborts at SIGINT or SIGTERM, with `Interrupted` as its reason; the process is not ended by them meanwhile. */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupted = new AbortController();
  const interrupt = (signal: NodeJS.Signals): void => interrupted.abort(new Interrupted(signal === 'SIGINT' ? 'SIGINT' : 'SIGTERM'));
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt);
  try {
    return await work(interrupted.signal);
  } catch (thrown) {
    // What a stream or a timer says when it is given up is not why it was.
    throw interrupted.signal.aborted ? interrupted.signal.reason : thrown;
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
}
