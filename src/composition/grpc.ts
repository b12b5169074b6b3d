import type { FastifyInstance } from 'fastify';
import type { Authenticator } from '../config/authenticate.ts';
import type { Config } from '../config/config.ts';
import { readTls } from '../config/secret-files.ts';
import type { GrpcDeps } from '../grpc/grpc-deps.ts';
import type { GrpcServer } from '../grpc/server.ts';
import { retryAfterMsOf, statusOf } from '../http/status.ts';
import type { Metrics } from '../observability/metrics.ts';

/** What gRPC shares with HTTP, so that nothing is decided or measured twice: who may, what a code means, how late the event loop is. */
interface Shared {
  readonly config: Config;
  readonly authenticator: Authenticator;
  readonly app: FastifyInstance;
  readonly metrics: Metrics;
}

type Ports = Omit<GrpcDeps, 'authenticate' | 'settings' | 'statusOf' | 'retryAfterMsOf' | 'isBehind' | 'observe'>;

/** The gRPC service of the configuration, `null` when it is off. A gateway without it does not load its libraries, a tenth of all modules. */
export async function grpcOf({ config, authenticator, app, metrics }: Shared, ports: Ports): Promise<GrpcServer | null> {
  const { host, grpcPort: port, rateLimitPerSecond } = config;
  if (port === null) return null;
  const [{ GrpcServer }, { LOCK_SERVICE }] = await Promise.all([import('../grpc/server.ts'), import('../grpc/contract.ts')]);
  const tls = config.tls === null ? null : readTls(config.tls);
  return new GrpcServer({
    ...ports,
    statusOf,
    retryAfterMsOf,
    authenticate: (credentials) => authenticator.authenticate(credentials),
    isBehind: () => app.isBehind(),
    observe: (method, status, seconds) => metrics.request('gRPC', `/${LOCK_SERVICE}/${method}`, status, seconds),
    settings: { host, port, tls, rateLimitPerSecond },
  });
}
