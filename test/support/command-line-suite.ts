import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { FencegateClient } from '../../src/client/fencegate-client.ts';
import { CommandLine } from './command-line.ts';
import { GatewayProcess, type GatewayProcessOptions } from './gateway-process.ts';
import { newDirectory, removeDirectory } from './gateway-settings.ts';

/** What the tests of one file share: a gateway process with volume `v`, the command line for it, and a client that looks at what came of it. */
export interface CommandLineSuite {
  /** Where commands run; the gateway's files are below it. */
  readonly directory: string;
  readonly gateway: GatewayProcess;
  readonly client: FencegateClient;
  readonly cli: CommandLine;
}

/** From the first test of the file to its last. */
export function commandLineSuite(): CommandLineSuite {
  let suite: CommandLineSuite;
  beforeAll(async () => {
    const directory = await newDirectory();
    const gateway = await GatewayProcess.start(directory, { outlivesTest: true });
    const client = new FencegateClient({ url: gateway.url, clientId: 'test' });
    suite = { directory, gateway, client, cli: new CommandLine(gateway.url, directory) };
  });
  afterAll(async () => {
    await suite.client.close();
    await suite.gateway.stop();
    await removeDirectory(suite.directory);
  });
  return {
    get directory() {
      return suite.directory;
    },
    get gateway() {
      return suite.gateway;
    },
    get client() {
      return suite.client;
    },
    get cli() {
      return suite.cli;
    },
  };
}

/** A directory that goes with the test. */
export async function ownDirectory(): Promise<string> {
  const own = await newDirectory();
  onTestFinished(() => removeDirectory(own));
  return own;
}

/** A gateway of the test's own, that may be killed, and the command line for it. */
export async function ownGateway(
  options: GatewayProcessOptions = {},
): Promise<{ readonly directory: string; readonly gateway: GatewayProcess; readonly cli: CommandLine }> {
  const directory = await ownDirectory();
  const gateway = await GatewayProcess.start(directory, options);
  return { directory, gateway, cli: new CommandLine(gateway.url, directory) };
}
