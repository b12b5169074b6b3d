import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyBaseLogger } from 'fastify';
import type { Administration } from '../domain/administration.ts';
import type { Clock, Random } from '../domain/clock.ts';
import type { Health } from '../domain/health.ts';
import type { Journal, RefusalLog } from '../domain/journal.ts';
import type { KnownDigests } from '../domain/known-digests.ts';
import type { LockService } from '../domain/lock-api.ts';
import type { LockEvents } from '../domain/lock-events.ts';
import type { Principal } from '../domain/principal.ts';
import type { Volumes } from '../domain/volume.ts';
import type { Writer } from '../domain/write.ts';
import type { TlsSettings } from './server.ts';

/** What a client's certificate says, once the TLS layer has verified it. */
export interface TlsPeer {
  readonly commonName: string | null;
}

export interface HttpSettings {
  readonly tls: TlsSettings | null;
  /** Whether `authenticate` asks for credentials; decides on the Host check. */
  readonly authenticated: boolean;
  readonly allowedHosts: readonly string[];
  readonly allowedOrigins: readonly string[];
  /** `null`: no limit beside the volumes' own. */
  readonly bodyBytesMax: number | null;
  /** Per principal, or per address without authentication; 0: off. */
  readonly rateLimitPerSecond: number;
  readonly uploadsPerPrincipalMax: number;
  readonly uploadIdleMs: number;
  readonly uploadMinBytesPerSecond: number;
  /** Mean delay of the event loop above which requests are refused as `overloaded`; 0: off. */
  readonly eventLoopDelayMsMax: number;
}

/** Everything the HTTP room needs; made once by the composition root. */
export interface HttpDeps {
  readonly writer: Writer;
  readonly volumes: Volumes;
  readonly locks: LockService;
  readonly events: LockEvents;
  readonly journal: Pick<Journal, 'audit' | 'auditStream' | 'verify' | 'operation'>;
  readonly refusals: RefusalLog;
  readonly administration: Administration;
  readonly health: Health;
  readonly digests: KnownDigests;
  readonly clock: Clock;
  readonly random: Random;
  /** A pino logger. */
  readonly log: FastifyBaseLogger;
  /** Throws `unauthenticated`. Must not keep the headers. */
  authenticate(headers: IncomingHttpHeaders, peer: TlsPeer | null): Principal | Promise<Principal>;
  /** The Prometheus text of `/metrics`. */
  metricsText(): Promise<string>;
  /** True once the gateway stops taking new work. */
  isDraining(): boolean;
  /** Aborts when draining has lasted long enough; its reason is a `GatewayError` (`draining`). */
  readonly deadline: AbortSignal;
  readonly settings: HttpSettings;
}
