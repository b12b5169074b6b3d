import { Metadata, type ServerDuplexStream } from '@grpc/grpc-js';
import { asGatewayError, refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import { send } from './answer-stream.ts';
import { label } from './call-metadata.ts';
import type { GrpcDeps } from './grpc-deps.ts';
import type { KeepAliveRequest, KeepAliveResponse } from './messages.ts';
import type { OpenCall } from './open-call.ts';
import { wholeMs } from './views.ts';

type KeepAliveStream = ServerDuplexStream<KeepAliveRequest, KeepAliveResponse>;

/** `KeepAlive`: heartbeats for many sessions over one stream (R15). One message is answered before the next one is read. */
export function keepAlive(deps: GrpcDeps, call: OpenCall, wire: KeepAliveStream): Promise<void> {
  const { signal } = call;
  // Whoever got in is not refused when the stream ends, whatever ends it.
  call.handedOver = true;
  const head = new Metadata();
  head.set('x-request-id', call.requestId);
  wire.sendMetadata(head);
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    wire.on('data', (message: KeepAliveRequest) => {
      wire.pause();
      answer(deps, call, wire, message).then(() => wire.resume(), reject);
    });
    wire.once('end', resolve);
  });
}

async function answer(deps: GrpcDeps, call: OpenCall, wire: KeepAliveStream, { session_ids: sessionIds }: KeepAliveRequest): Promise<void> {
  const { length } = sessionIds;
  if (length < 1 || length > LIMITS.heartbeatBatchMax) {
    call.handedOver = false;
    throw refuse('invalid_request', `session_ids has 1 to ${LIMITS.heartbeatBatchMax} ids.`, { field: 'session_ids' });
  }
  for (const answered of await Promise.all(sessionIds.map((sessionId) => heartbeat(deps, call, sessionId)))) await send(wire, answered, call.signal);
}

/** One dead session must not cost the others their renewal. */
async function heartbeat({ locks }: GrpcDeps, call: OpenCall, sessionId: string): Promise<KeepAliveResponse> {
  try {
    label('session_id', sessionId, LIMITS.leaseIdBytesMax);
    const { expiresInMs, lost } = await locks.heartbeat(call.caller(), sessionId);
    return { session_id: sessionId, expires_in_ms: wholeMs(expiresInMs), lost_lease_ids: lost, reason: '' };
  } catch (thrown) {
    const { code } = asGatewayError(thrown);
    if (code === 'internal') throw thrown;
    return { session_id: sessionId, expires_in_ms: '0', lost_lease_ids: [], reason: code };
  }
}
