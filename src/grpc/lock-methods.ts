import type { ServerDuplexStream, ServerWritableStream } from '@grpc/grpc-js';
import { acquireLock } from './acquire-lock.ts';
import type { Calls, Named } from './calls.ts';
import type { GrpcDeps } from './grpc-deps.ts';
import { releaseLock, renewLock } from './hold-lock.ts';
import { keepAlive } from './keep-alive.ts';
import type {
  GetLockRequest,
  KeepAliveRequest,
  KeepAliveResponse,
  RecordLockRequest,
  ReleaseLockRequest,
  RenewLockRequest,
  WatchLockRequest,
  WireEvent,
} from './messages.ts';
import type { OpenCalls } from './open-calls.ts';
import { lockMessage } from './views.ts';
import { watchLock } from './watch-lock.ts';

const leases = { access: 'write', audited: true } as const;
const looks = { access: 'read_locks', audited: false, newWork: false, keepsLease: false } as const;
const unnamed = (): Named => ({ resourcePath: '', clientId: '' });

/** The methods of `LockService`, each with what it asks of its caller: the roles of the HTTP routes that do the same. */
export function lockMethods(deps: GrpcDeps, calls: Calls, open: OpenCalls) {
  return {
    AcquireLock: calls.unary(
      { name: 'AcquireLock', ...leases, newWork: true, keepsLease: false },
      ({ resource_path: resourcePath, client_id: clientId }: RecordLockRequest) => ({ resourcePath, clientId }),
      (request, call, wire) => acquireLock(deps, call, request, Number.isFinite(Number(wire.getDeadline()))),
    ),
    RenewLock: calls.unary({ name: 'RenewLock', ...leases, newWork: false, keepsLease: true }, unnamed, (request: RenewLockRequest, call) =>
      renewLock(deps, call, request),
    ),
    ReleaseLock: calls.unary(
      { name: 'ReleaseLock', ...leases, newWork: false, keepsLease: true },
      ({ resource_path: resourcePath }: ReleaseLockRequest) => ({ resourcePath, clientId: '' }),
      (request, call) => releaseLock(deps, call, request),
    ),
    GetLock: calls.unary(
      { name: 'GetLock', ...looks },
      ({ resource_path: resourcePath }: GetLockRequest) => ({ resourcePath, clientId: '' }),
      async ({ resource_path: path }, call) => lockMessage(await deps.locks.lock(call.resource(path, 'read'))),
    ),
    WatchLock: calls.stream<ServerWritableStream<WatchLockRequest, WireEvent>>({ name: 'WatchLock', ...looks }, unnamed, (wire, call) => {
      open.assertRoomForStream();
      return watchLock(deps, call, wire);
    }),
    KeepAlive: calls.stream<ServerDuplexStream<KeepAliveRequest, KeepAliveResponse>>(
      { name: 'KeepAlive', ...leases, newWork: false, keepsLease: true },
      unnamed,
      (wire, call) => {
        open.assertRoomForStream();
        return keepAlive(deps, call, wire);
      },
    ),
  };
}
