import type { ServerResponse } from 'node:http';
import { refuse } from '../domain/errors.ts';

/**
 * One abort signal per request: the client's disconnect and the end of draining. Made from the raw response's `close`, because
 * the framework's own request signal already fires when the *body* has been read. Its reason is a `GatewayError`.
 */
export function requestSignal(response: ServerResponse, deadline: AbortSignal): AbortSignal {
  const controller = new AbortController();
  const onDeadline = (): void => controller.abort(deadline.aborted ? deadline.reason : undefined);
  // Not AbortSignal.any: a signal that lives as long as the process would keep every request in memory.
  if (deadline.aborted) onDeadline();
  else deadline.addEventListener('abort', onDeadline, { once: true });
  response.once('close', () => {
    deadline.removeEventListener('abort', onDeadline);
    if (!response.writableFinished) controller.abort(refuse('incomplete_body', 'The client went away before its answer.'));
  });
  return controller.signal;
}
