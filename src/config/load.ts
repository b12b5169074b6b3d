import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { checkTogether } from './checks.ts';
import { type Config, deepFreeze, type TlsFiles } from './config.ts';
import { type Environment, readEnvironment } from './environment.ts';
import type { EnvironmentValues } from './environment-schema.ts';
import { FILE_SCHEMA, type FileSettings } from './file-schema.ts';
import { withoutBrackets } from './loopback.ts';
import { ConfigError, causeOf, shown } from './problems.ts';
import { volumePolicies } from './volume-policies.ts';
import { type CheckedYaml, checkYaml } from './yaml-file.ts';

/** The configuration of this process: the only place that reads `process.env`. Throws `ConfigError` with every problem. */
export function configOfProcess(): Config {
  return loadConfig(process.env, process.cwd());
}

/**
 * Environment and YAML file -> one frozen object. Throws `ConfigError` with every problem found, not only the first.
 * @param directory what relative paths are relative to.
 */
export function loadConfig(environment: Environment, directory: string): Config {
  const problems: string[] = [];
  const values = readEnvironment(environment, problems);
  const file = readSettings(values, directory, problems);

  const absolute = (path: string | undefined): string | null => (path === undefined ? null : resolve(directory, path));
  const dataDir = resolve(directory, values.FENCEGATE_DATA_DIR);
  const { volumes, sampleVolume } = volumePolicies({ list: values.FENCEGATE_VOLUMES, file, dataDir, directory }, problems);
  const settings = file?.value ?? {};
  const config: Config = {
    host: withoutBrackets(values.FENCEGATE_HOST),
    port: values.FENCEGATE_PORT,
    grpcPort: values.FENCEGATE_GRPC_PORT === 0 ? null : values.FENCEGATE_GRPC_PORT,
    dataDir,
    volumes,
    sampleVolume,
    tls: tlsFiles(values, absolute, problems),
    authFile: absolute(values.FENCEGATE_AUTH_FILE),
    allowedOrigins: origins(values.FENCEGATE_ALLOWED_ORIGINS, problems),
    allowedHosts: list(values.FENCEGATE_ALLOWED_HOSTS).map((host) => host.toLowerCase()),
    logLevel: values.FENCEGATE_LOG_LEVEL,
    bodyMaxBytes: values.FENCEGATE_BODY_MAX_BYTES ?? null,
    rateLimitPerSecond: values.FENCEGATE_RATE_LIMIT_PER_SECOND,
    uploads: {
      perPrincipalMax: values.FENCEGATE_UPLOADS_MAX,
      idleMs: values.FENCEGATE_UPLOAD_IDLE_MS,
      bytesPerSecondMin: values.FENCEGATE_UPLOAD_MIN_BYTES_PER_SECOND,
    },
    drainMs: values.FENCEGATE_DRAIN_MS,
    takeoverAfterMs: values.FENCEGATE_TAKEOVER_AFTER_MS,
    zookeeper: zookeeperSettings(values, absolute),
    signingKeys: (settings.signing_keys ?? []).map(({ id, file: keyFile }) => ({ id, file: resolve(directory, keyFile) })),
    audit: {
      keepDays: settings.audit?.keep_days ?? null,
      keepBytes: settings.audit?.keep_bytes ?? null,
      keyFile: absolute(settings.audit?.key_file),
    },
  };
  checkTogether(config, values, (...path) => (file === null ? '' : `${file.source}:${file.lineOf(path)}: `), problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return deepFreeze(config);
}

function zookeeperSettings(values: EnvironmentValues, absolute: (path: string | undefined) => string | null): Config['zookeeper'] {
  const connect = values.FENCEGATE_ZOOKEEPER_CONNECT;
  if (values.FENCEGATE_COORDINATOR !== 'zookeeper' || connect === undefined) return null;
  const { FENCEGATE_ZOOKEEPER_ROOT: root, FENCEGATE_ZOOKEEPER_SESSION_MS: sessionMs, FENCEGATE_ZOOKEEPER_AUTH_FILE: authFile } = values;
  return { connect, root, sessionMs, authFile: absolute(authFile) };
}

function readSettings(values: EnvironmentValues, directory: string, problems: string[]): (CheckedYaml<FileSettings> & { source: string }) | null {
  const source = values.FENCEGATE_CONFIG;
  if (source === undefined) return null;
  try {
    const text = readFileSync(resolve(directory, source), 'utf8');
    const checked = checkYaml(text, source, FILE_SCHEMA, problems);
    return checked === null ? null : { ...checked, source };
  } catch (thrown) {
    problems.push(`FENCEGATE_CONFIG=${shown(source)}: cannot be read (${causeOf(thrown)})`);
    return null;
  }
}

function tlsFiles(values: EnvironmentValues, absolute: (path: string | undefined) => string | null, problems: string[]): TlsFiles | null {
  const certFile = absolute(values.FENCEGATE_TLS_CERT);
  const keyFile = absolute(values.FENCEGATE_TLS_KEY);
  const clientCaFile = absolute(values.FENCEGATE_TLS_CLIENT_CA);
  if (certFile !== null && keyFile !== null) return { certFile, keyFile, clientCaFile };
  if (certFile !== null) problems.push('FENCEGATE_TLS_CERT: needs FENCEGATE_TLS_KEY');
  if (keyFile !== null) problems.push('FENCEGATE_TLS_KEY: needs FENCEGATE_TLS_CERT');
  if (clientCaFile !== null && certFile === null && keyFile === null)
    problems.push('FENCEGATE_TLS_CLIENT_CA: needs FENCEGATE_TLS_CERT and FENCEGATE_TLS_KEY');
  return null;
}

function list(text: string | undefined): string[] {
  return (text ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

/** An origin is compared as browsers send it: scheme, host, port, nothing behind. */
function origins(text: string | undefined, problems: string[]): string[] {
  return list(text).map((item) => {
    const url = URL.canParse(item) ? new URL(item) : null;
    if (url === null || url.origin === 'null' || item.replace(/\/$/, '').toLowerCase() !== url.origin) {
      problems.push(`FENCEGATE_ALLOWED_ORIGINS: ${shown(item)} is not an origin; write https://host or https://host:port`);
    }
    return url?.origin ?? item;
  });
}
