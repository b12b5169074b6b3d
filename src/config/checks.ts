import { accessSync, constants, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { VolumePolicy } from '../domain/volume.ts';
import type { Config } from './config.ts';
import type { EnvironmentValues } from './environment-schema.ts';
import { isLoopback } from './loopback.ts';
import { causeOf } from './problems.ts';
import { checkTlsFiles } from './tls-files.ts';

/** Where a setting stands in the configuration file, as `file:line: `; nothing when there is no file. */
export type PlaceOf = (...path: readonly (string | number)[]) => string;

/** What no single setting can tell. Protection is never given up silently: a setting that this version cannot honour stops the start. */
export function checkTogether(config: Config, values: EnvironmentValues, at: PlaceOf, problems: string[]): void {
  if (values.FENCEGATE_COORDINATOR === 'zookeeper' && config.zookeeper === null)
    problems.push('FENCEGATE_COORDINATOR=zookeeper: needs FENCEGATE_ZOOKEEPER_CONNECT, such as zk1:2181,zk2:2181,zk3:2181');
  readable('FENCEGATE_ZOOKEEPER_AUTH_FILE', config.zookeeper?.authFile ?? null, problems);
  if (config.grpcPort !== null && config.grpcPort === config.port)
    problems.push(`FENCEGATE_GRPC_PORT=${config.grpcPort}: is FENCEGATE_PORT, too; gRPC needs a port of its own`);
  if (config.authFile === null && !values.FENCEGATE_INSECURE && !isLoopback(config.host)) {
    problems.push(`FENCEGATE_HOST=${config.host}: not a loopback address; set FENCEGATE_AUTH_FILE, or FENCEGATE_INSECURE=true to let everybody in`);
  }
  if (config.tls?.clientCaFile != null && config.authFile === null)
    problems.push('FENCEGATE_TLS_CLIENT_CA: needs FENCEGATE_AUTH_FILE, which says what each certificate may do');
  checkKeys(config, at, problems);
  checkDataDir(config.dataDir, problems);
  readable('FENCEGATE_AUTH_FILE', config.authFile, problems);
  if (config.tls !== null) checkTlsFiles(config.tls, problems);
}

function checkKeys(config: Config, at: PlaceOf, problems: string[]): void {
  const ids = config.signingKeys.map((key) => key.id);
  for (const [index, id] of ids.entries())
    if (ids.indexOf(id) < index) problems.push(`${at('signing_keys', index)}signing_keys: the id ${id} is there twice`);
  const signed = config.volumes.find((volume: VolumePolicy) => volume.tokens === 'signed');
  if (signed !== undefined && ids.length === 0)
    problems.push(`${at('volumes', signed.name, 'tokens')}volumes.${signed.name}.tokens is signed, but there are no signing_keys`);
  for (const [index, { id, file }] of config.signingKeys.entries()) readable(`${at('signing_keys', index)}signing_keys.${id}.file`, file, problems);
  readable(`${at('audit', 'key_file')}audit.key_file`, config.audit.keyFile, problems);
}

/** Magic numbers of file systems that hold no files of anybody's (statfs(2)): making a directory there fails in odd ways, or for ever. */
const KERNEL_FILE_SYSTEMS = new Map([
  [0x9fa0, 'proc'],
  [0x62656572, 'sysfs'],
  [0x64626720, 'debugfs'],
  [0x27e0eb, 'cgroup'],
  [0x63677270, 'cgroup2'],
]);

/** The directory itself, or where it will be made. */
function checkDataDir(dataDir: string, problems: string[]): void {
  const name = `FENCEGATE_DATA_DIR=${dataDir}`;
  for (let at = dataDir; ; at = dirname(at)) {
    try {
      const found = statSync(at, { throwIfNoEntry: false });
      if (found === undefined && at !== dirname(at)) continue;
      const kernel = KERNEL_FILE_SYSTEMS.get(statfsSync(at).type);
      if (found?.isDirectory() !== true) problems.push(`${name}: ${at} is not a directory`);
      else if (kernel !== undefined) problems.push(`${name}: ${at} is on ${kernel}, which keeps no files; choose a directory on a local disk`);
    } catch (thrown) {
      // Something above it is a file.
      if (causeOf(thrown) === 'ENOTDIR' && at !== dirname(at)) continue;
      problems.push(`${name}: cannot be reached (${causeOf(thrown)})`);
    }
    return;
  }
}

function readable(name: string, path: string | null, problems: string[]): void {
  if (path === null) return;
  try {
    accessSync(path, constants.R_OK);
  } catch (thrown) {
    problems.push(`${name}: ${path} cannot be read (${causeOf(thrown)})`);
  }
}
