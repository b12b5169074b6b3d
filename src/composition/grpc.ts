import type { Authenticator } from '../config/authenticate.ts';
import type { Config } from '../config/config.ts';
import { readTls } from '../config/secret-files.ts';
import type { GrpcDeps } from '../grpc/grpc-deps.ts';
import { GrpcServer } from '../grpc/server.ts';

/** The gRPC service of the configuration, `null` when it is off. The authenticator is the one of HTTP. */
export function grpcOf(config: Config, authenticator: Authenticator, ports: Omit<GrpcDeps, 'authenticate' | 'settings'>): GrpcServer | null {
  const { host, grpcPort: port, rateLimitPerSecond } = config;
  if (port === null) return null;
  const tls = config.tls === null ? null : readTls(config.tls);
  return new GrpcServer({
    ...ports,
    authenticate: (credentials) => authenticator.authenticate(credentials),
    settings: { host, port, tls, rateLimitPerSecond },
  });
}
