import type { VolumePolicy } from '../domain/volume.ts';

/** The whole configuration of a gateway, checked and frozen. Paths are absolute. Secrets stay in their files: only names are here. */
export interface Config {
  readonly host: string;
  readonly port: number;
  /** `null`: no gRPC. */
  readonly grpcPort: number | null;
  readonly dataDir: string;
  readonly volumes: readonly VolumePolicy[];
  /** The volume that gets the sample files on its first start; `null` when volumes were configured. */
  readonly sampleVolume: string | null;
  readonly tls: TlsFiles | null;
  /** `null`: no authentication. */
  readonly authFile: string | null;
  readonly allowedOrigins: readonly string[];
  readonly allowedHosts: readonly string[];
  readonly logLevel: LogLevel;
  readonly bodyMaxBytes: number | null;
  /** 0: off. */
  readonly rateLimitPerSecond: number;
  readonly uploads: {
    readonly perPrincipalMax: number;
    readonly idleMs: number;
    /** 0: no minimum. */
    readonly bytesPerSecondMin: number;
  };
  readonly drainMs: number;
  readonly takeoverAfterMs: number;
  /** `null`: the embedded coordinator. */
  readonly zookeeper: ZookeeperSettings | null;
  /** The first signs, all verify; empty when no volume uses signed tokens. */
  readonly signingKeys: readonly { readonly id: string; readonly file: string }[];
  readonly audit: {
    readonly keepDays: number | null;
    readonly keepBytes: number | null;
    /** With a key the audit chain is an HMAC. */
    readonly keyFile: string | null;
  };
}

export interface ZookeeperSettings {
  /** As it was written; the adapter takes it apart. */
  readonly connect: string;
  readonly root: string;
  readonly sessionMs: number;
  /** With `user:password` for digest authentication. */
  readonly authFile: string | null;
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** Set: clients may show a certificate of this authority instead of a bearer token. */
  readonly clientCaFile: string | null;
}

export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) deepFreeze(member);
  }
  return value;
}
