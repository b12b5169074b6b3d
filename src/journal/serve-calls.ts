import { parentPort } from 'node:worker_threads';
import { GatewayError } from '../domain/errors.ts';
import { failureKind } from './sqlite-failure.ts';
import { type CallMap, type CallMessage, failureOf, type ThreadMessage } from './thread-protocol.ts';

export type Handlers<M extends CallMap> = { readonly [K in keyof M & string]: (input: M[K]['input']) => M[K]['output'] | Promise<M[K]['output']> };

function send(message: ThreadMessage): void {
  parentPort?.postMessage(message);
}

export function sendEvent(event: unknown): void {
  send({ kind: 'event', event });
}

/** What somebody can do something about is said in words, also to whoever starts the gateway. */
function inWords(thrown: unknown): unknown {
  const kind = failureKind(thrown);
  if (kind === 'full') return new GatewayError('journal_unavailable', { detail: 'The disk of the journal is full.', cause: thrown });
  if (kind === 'busy')
    return new GatewayError('journal_unavailable', {
      detail: 'The database of the journal is locked by another program, or there is no memory for it.',
      cause: thrown,
    });
  return thrown;
}

async function answerLater(id: number, value: Promise<unknown>): Promise<void> {
  try {
    send({ kind: 'answer', id, value: await value });
  } catch (thrown) {
    send({ kind: 'refusal', id, failure: failureOf(inWords(thrown)) });
  }
}

/** The side of the thread: answers each call in the order it came, unless the handler itself takes its time. */
export function serveCalls<M extends CallMap>(handlers: Handlers<M>): void {
  parentPort?.on('message', ({ id, name, input }: CallMessage) => {
    try {
      const handler = (handlers as Readonly<Record<string, (input: unknown) => unknown>>)[name];
      if (handler === undefined) throw new Error(`no call ${name}`);
      const value = handler(input);
      if (value instanceof Promise) void answerLater(id, value);
      else send({ kind: 'answer', id, value });
    } catch (thrown) {
      send({ kind: 'refusal', id, failure: failureOf(inWords(thrown)) });
    }
  });
}
