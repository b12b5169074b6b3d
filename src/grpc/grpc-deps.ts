import type { Clock, Random } from '../domain/clock.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { Health } from '../domain/health.ts';
import type { RefusalLog } from '../domain/journal.ts';
import type { LockService } from '../domain/lock-api.ts';
import type { LockEvents } from '../domain/lock-events.ts';
import type { Principal } from '../domain/principal.ts';
import type { Volumes } from '../domain/volume.ts';

export interface GrpcSettings {
  readonly host: string;
  /** 0: a free one. */
  readonly port: number;
  /** PEM texts; with `clientCa` the client's certificate is asked for and verified (mutual TLS). */
  readonly tls: { readonly cert: string | Buffer; readonly key: string | Buffer; readonly clientCa: string | Buffer | null } | null;
  /** Calls per second and principal, or per address without authentication; 0: off. */
  readonly rateLimitPerSecond: number;
}

interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Everything the gRPC room needs; made once by the composition root. */
export interface GrpcDeps {
  readonly locks: LockService;
  readonly events: LockEvents;
  readonly volumes: Volumes;
  readonly health: Health;
  readonly refusals: RefusalLog;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Throws `unauthenticated`. `certificateName`: of a client certificate that the TLS layer verified. */
  authenticate(credentials: { readonly authorization: string | undefined; readonly certificateName: string | null }): Principal;
  /** The HTTP status of a code: audit records carry it whichever way a request came. */
  statusOf(code: ErrorCode): number;
  /** When to come again after it, where the error itself does not say; `undefined`: never by itself. */
  retryAfterMsOf(code: ErrorCode): number | undefined;
  /** The event loop is late: the measurement of HTTP. */
  isBehind(): boolean;
  /** Told of every answer, as requests are counted. `status`: its name. */
  observe(method: string, status: string, seconds: number): void;
  /** True once the gateway stops taking new work. */
  isDraining(): boolean;
  /** Aborts when draining has lasted long enough; its reason is a `GatewayError` (`draining`). */
  readonly deadline: AbortSignal;
  readonly settings: GrpcSettings;
}
