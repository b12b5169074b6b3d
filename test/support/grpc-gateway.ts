import type { ChannelCredentials } from '@grpc/grpc-js';
import { freePort } from './free-port.ts';
import { GatewayProcess, type GatewayProcessOptions } from './gateway-process.ts';
import { newDirectory, removeDirectory } from './gateway-settings.ts';
import { GrpcLockClient } from './grpc-client.ts';

/** A gateway process with its gRPC port. The suite ends it. */
export interface GrpcGateway {
  readonly process: GatewayProcess;
  readonly directory: string;
  readonly port: number;
  client(options?: { readonly credentials?: ChannelCredentials; readonly bearer?: string; readonly host?: string }): GrpcLockClient;
  /** Ends it and starts it again over the same directory. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export async function startGrpc(options: GatewayProcessOptions & { readonly directory?: string } = {}): Promise<GrpcGateway> {
  const { directory = await newDirectory(), ...rest } = options;
  const port = await freePort();
  const start = (): Promise<GatewayProcess> =>
    GatewayProcess.start(directory, {
      ...rest,
      outlivesTest: true,
      environment: { FENCEGATE_VOLUMES: 'v=v,jobs=', FENCEGATE_GRPC_PORT: String(port), ...rest.environment },
    });
  let running = await start();
  const clients: GrpcLockClient[] = [];
  return {
    get process() {
      return running;
    },
    directory,
    port,
    client: (clientOptions = {}) => {
      const client = new GrpcLockClient(port, clientOptions);
      clients.push(client);
      return client;
    },
    restart: async () => {
      await running.stop();
      running = await start();
    },
    stop: async () => {
      for (const client of clients) client.close();
      await running.stop();
      await removeDirectory(directory);
    },
  };
}
