import type { Writable } from 'node:stream';

/** Writes one message, and waits when the client does not keep up. Rejects with the reason of `signal`. */
export async function send(stream: Pick<Writable, 'write' | 'once' | 'off'>, message: object, signal: AbortSignal): Promise<void> {
  if (signal.aborted) throw signal.reason;
  if (stream.write(message)) return;
  await new Promise<void>((resolve, reject) => {
    const onDrain = (): void => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    };
    const onAbort = (): void => {
      stream.off('drain', onDrain);
      reject(signal.reason);
    };
    stream.once('drain', onDrain);
    signal.addEventListener('abort', onAbort, { once: true });
  });
}
