import { Metadata, type ServerWritableStream } from '@grpc/grpc-js';
import { inScope } from '../domain/access.ts';
import { refuse } from '../domain/errors.ts';
import { send } from './answer-stream.ts';
import type { GrpcDeps } from './grpc-deps.ts';
import type { WatchLockRequest, WireEvent } from './messages.ts';
import type { OpenCall } from './open-call.ts';
import { eventMessage } from './views.ts';

/** `WatchLock`: what happens to a resource, until the client goes or the gateway stops (R16, case R10). */
export async function watchLock(deps: GrpcDeps, call: OpenCall, wire: ServerWritableStream<WatchLockRequest, WireEvent>): Promise<void> {
  const { signal } = call;
  const resource = call.resource(wire.request.resource_path, 'read');
  const caller = call.caller();
  const visible = (name: string): boolean => inScope(caller.principal, name);
  const events = await deps.events.watch(caller, { of: 'resource', resource }, seqOf(wire.request.from_seq), signal);
  // The head of the answer: from here on the client knows that it is watching.
  const head = new Metadata();
  head.set('x-request-id', call.requestId);
  wire.sendMetadata(head);
  for await (const event of events) {
    const message = eventMessage(event, visible);
    if (!signal.aborted) await send(wire, message, signal);
    // What happened before the end is told before it.
    else if (!wire.cancelled) wire.write(message);
  }
  if (signal.aborted) throw signal.reason;
}

/** `null`: from now on. */
function seqOf(text: string): number | null {
  if (text === '0') return null;
  const seq = Number(text);
  if (!Number.isSafeInteger(seq) || seq < 0) throw refuse('invalid_request', 'from_seq is the seq of an event.', { field: 'from_seq' });
  return seq;
}
