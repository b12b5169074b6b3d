import { afterAll, afterEach, beforeAll } from 'vitest';
import { FencegateClient, type FencegateClientOptions, isFencegateError } from '../../src/client/index.ts';
import { startGateway, type TestGateway } from './gateway.ts';
import { removeDirectory, type TestGatewayOptions } from './gateway-settings.ts';
import { TestProxy } from './proxy.ts';

/** What the tests of one file share: a gateway, and a proxy before it whose connections can be cut. */
export interface ClientSuite {
  readonly gateway: TestGateway;
  readonly proxy: TestProxy;
  /** A client that is closed with the test; past the proxy unless `url` says otherwise. */
  client(options?: FencegateClientOptions): FencegateClient;
}

/** From the first test of the file to its last. */
export function clientSuite(options: TestGatewayOptions = {}): ClientSuite {
  let gateway: TestGateway;
  let proxy: TestProxy;
  const clients: FencegateClient[] = [];
  beforeAll(async () => {
    gateway = await startGateway(options);
    proxy = await TestProxy.to(gateway.port);
  });
  afterEach(async () => {
    proxy.mend();
    for (const client of clients.splice(0)) await client.close();
  });
  afterAll(async () => {
    await proxy.close();
    await gateway.stop();
    await removeDirectory(gateway.directory);
  });
  return {
    get gateway() {
      return gateway;
    },
    get proxy() {
      return proxy;
    },
    client: (clientOptions = {}) => {
      const made = new FencegateClient({ url: gateway.url, ...clientOptions });
      clients.push(made);
      return made;
    },
  };
}

/** What `work` is refused with. */
export async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return 'no error';
  } catch (thrown) {
    return isFencegateError(thrown) ? thrown.code : String(thrown);
  }
}
