import { join } from 'node:path';
import { compose } from '../../src/compose.ts';
import { createAuthenticator } from '../../src/config/authenticate.ts';
import { loadConfig } from '../../src/config/load.ts';
import { createLogger } from '../../src/observability/logger.ts';
import { gatewayEnvironment, newDirectory, type TestGatewayOptions } from './gateway-settings.ts';

export interface TestGateway {
  readonly url: string;
  readonly port: number;
  /** Everything of this gateway lies below it. */
  readonly directory: string;
  /** The directory of volume `v`. */
  readonly volume: string;
  stop(): Promise<void>;
}

/** A whole gateway inside the test's process, on real files, a real journal and a real socket. */
export async function startGateway(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const directory = options.directory ?? (await newDirectory());
  const config = loadConfig(await gatewayEnvironment(directory, options), directory);
  const parts = { logger: createLogger(config.logLevel), authenticator: createAuthenticator(config.authFile) };
  const gateway = await compose(config, parts, options.steps === undefined ? {} : { steps: options.steps });
  const { url } = await gateway.start();
  return { url, port: Number(new URL(url).port), directory, volume: join(directory, 'v'), stop: () => gateway.stop() };
}
