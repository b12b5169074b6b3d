import { lstatSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Steps } from '../../src/domain/steps.ts';
import { newGatewayDirectory } from './volume-base.ts';

/** What a gateway is started with. Apart from `gateway.ts`: who starts one as a process need not load the product. */

export interface TestGatewayOptions {
  /** An existing directory of an earlier gateway: the restart of that one. */
  readonly directory?: string;
  /** The text of the YAML file; `{dir}` is replaced by the directory. */
  readonly yaml?: string;
  /** The text of the principals file. */
  readonly auth?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly steps?: Steps;
}

/** The variables of a gateway below `directory`, with one volume `v`, on a free port of the loopback. */
export async function gatewayEnvironment(directory: string, options: TestGatewayOptions): Promise<Record<string, string>> {
  // A link may lead to where nobody answers at the moment.
  if (lstatSync(join(directory, 'v'), { throwIfNoEntry: false }) === undefined) await mkdir(join(directory, 'v'), { recursive: true });
  const environment: Record<string, string> = {
    FENCEGATE_PORT: '0',
    FENCEGATE_DATA_DIR: join(directory, 'data'),
    FENCEGATE_LOG_LEVEL: 'error',
    FENCEGATE_DRAIN_MS: '2000',
    ...options.environment,
  };
  if (options.yaml === undefined) environment['FENCEGATE_VOLUMES'] ??= `v=${join(directory, 'v')}`;
  else {
    await writeFile(join(directory, 'fencegate.yaml'), options.yaml.replaceAll('{dir}', directory));
    environment['FENCEGATE_CONFIG'] = join(directory, 'fencegate.yaml');
  }
  if (options.auth !== undefined) {
    await writeFile(join(directory, 'auth.yaml'), options.auth);
    environment['FENCEGATE_AUTH_FILE'] = join(directory, 'auth.yaml');
  }
  return environment;
}

export async function newDirectory(): Promise<string> {
  return newGatewayDirectory();
}

export async function removeDirectory(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}
