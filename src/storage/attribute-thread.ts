import { parentPort } from 'node:worker_threads';
import type { AttributeAnswer, AttributeRequest } from './attribute-calls.ts';
import { doJob } from './attribute-jobs.ts';

/** The thread that one volume's attribute calls are made in: any of them may hang for as long as the volume does. `null` ends it. */

const library = await import('fs-xattr');

parentPort?.on('message', (request: AttributeRequest | null) => {
  if (request === null) parentPort?.close();
  else parentPort?.postMessage(answerTo(request));
});

function answerTo({ id, job }: AttributeRequest): AttributeAnswer {
  try {
    return { id, notCarried: doJob(library, job), failure: null };
  } catch (thrown) {
    // An error loses its own members on the way between threads.
    const { message, code, errno } = thrown as NodeJS.ErrnoException;
    return { id, notCarried: 0, failure: { message, ...(code === undefined ? {} : { code }), ...(errno === undefined ? {} : { errno }) } };
  }
}
