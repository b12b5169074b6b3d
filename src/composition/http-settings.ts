import type { Authenticator } from '../config/authenticate.ts';
import type { Config } from '../config/config.ts';
import { readTls } from '../config/secret-files.ts';
import { LIMITS } from '../domain/limits.ts';
import type { HttpSettings } from '../http/http-deps.ts';

/** What the HTTP room is told of the configuration. Reads the TLS files. */
export function httpSettings(config: Config, { required }: Authenticator): HttpSettings {
  return {
    tls: config.tls === null ? null : readTls(config.tls),
    authenticated: required,
    allowedHosts: config.allowedHosts,
    allowedOrigins: config.allowedOrigins,
    bodyBytesMax: config.bodyMaxBytes,
    rateLimitPerSecond: config.rateLimitPerSecond,
    uploadsPerPrincipalMax: config.uploads.perPrincipalMax,
    uploadIdleMs: config.uploads.idleMs,
    uploadMinBytesPerSecond: config.uploads.bytesPerSecondMin,
    eventLoopDelayMsMax: LIMITS.eventLoopDelayMsMax,
  };
}
