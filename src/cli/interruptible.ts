import { exitCodeOfSignal } from './exit-codes.ts';
import { outputFailed } from './standard-output.ts';

/** A signal ended the command before it was done. */
export class Interrupted extends Error {
  readonly exitCode: number;
  readonly #signal: 'SIGINT' | 'SIGTERM';
  /** The id of an order that was under way; `null`: nothing was, or only questions. */
  readonly orderId: string | null;

  constructor(signal: 'SIGINT' | 'SIGTERM', orderId: string | null = null) {
    super('interrupted');
    this.name = 'Interrupted';
    this.exitCode = exitCodeOfSignal(signal);
    this.#signal = signal;
    this.orderId = orderId;
  }

  /** The same, while the gateway had not answered the order with this id. */
  during(orderId: string): Interrupted {
    return new Interrupted(this.#signal, orderId);
  }
}

/**
 * Runs `work` with a signal that aborts at SIGINT or SIGTERM, with `Interrupted` as its reason, or when standard output takes no more, with
 * `OutputFailed`; the process is not ended by them meanwhile.
 */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupted = new AbortController();
  const interrupt = (signal: NodeJS.Signals): void => interrupted.abort(new Interrupted(signal === 'SIGINT' ? 'SIGINT' : 'SIGTERM'));
  const giveUp = (): void => interrupted.abort(outputFailed.reason);
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt);
  outputFailed.addEventListener('abort', giveUp);
  try {
    return await work(interrupted.signal);
  } catch (thrown) {
    // What a stream or a timer says when it is given up is not why it was.
    throw interrupted.signal.aborted ? interrupted.signal.reason : thrown;
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
    outputFailed.removeEventListener('abort', giveUp);
  }
}
