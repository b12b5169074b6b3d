import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { startGateway, type TestGateway } from './gateway.ts';
import { eventually, GatewayClient } from './gateway-client.ts';
import { newDirectory, removeDirectory, type TestGatewayOptions } from './gateway-settings.ts';
import { RawConnection } from './raw-http.ts';

/** A gateway with volumes of any settings, its client, and raw connections that end with it. */
export interface VolumesGateway extends TestGateway {
  readonly client: GatewayClient;
  /** The real path of `volume/path`. */
  path(name: string): string;
  raw(): RawConnection;
  /** Stops the gateway and keeps its directory, for a restart over it. */
  halt(): Promise<void>;
  /** Stops it and removes everything. */
  stop(): Promise<void>;
}

export interface VolumesGatewayOptions extends Omit<TestGatewayOptions, 'yaml'> {
  /** Name to settings as in the YAML file. `path` is set unless given; `null` makes it lock-only. */
  readonly volumes?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Further keys of the YAML file; `{dir}` in strings is the directory. */
  readonly settings?: Readonly<Record<string, unknown>>;
}

export async function startVolumes(options: VolumesGatewayOptions = {}): Promise<VolumesGateway> {
  const { volumes = { v: {} }, settings = {}, ...rest } = options;
  const directory = options.directory ?? (await newDirectory());
  const placed = Object.entries(volumes).map(([name, own]) => [name, { path: join(directory, name), ...own }] as const);
  for (const [name, own] of placed) if (own.path === join(directory, name)) await mkdir(own.path, { recursive: true });
  const yaml = stringify({ volumes: Object.fromEntries(placed), ...settings });
  const gateway = await startGateway({ ...rest, directory, yaml });
  const client = new GatewayClient(gateway.url);
  // On a busy machine the start itself holds the event loop up, and for a moment the gateway says so.
  await eventually(
    () => client.send('GET', '/v1/volumes'),
    ({ status }) => status !== 503,
  );
  const connections: RawConnection[] = [];
  const halt = async (): Promise<void> => {
    for (const connection of connections) connection.close();
    await client.close();
    await gateway.stop();
  };
  return {
    ...gateway,
    client,
    path: (name) => join(directory, name),
    raw: () => {
      const connection = new RawConnection(gateway.port);
      connections.push(connection);
      return connection;
    },
    halt,
    stop: async () => {
      await halt();
      await removeDirectory(directory);
    },
  };
}

export interface TestPrincipal {
  readonly name: string;
  readonly roles: readonly string[];
  readonly scopes?: readonly string[];
}

/** The text of a principals file; the bearer token of each is `bearerOf(name)`. */
export function principalsFile(principals: readonly TestPrincipal[]): string {
  return stringify({
    principals: principals.map((one) => ({ ...one, token_sha256: createHash('sha256').update(bearerOf(one.name)).digest('hex') })),
  });
}

export function bearerOf(name: string): string {
  return createHash('sha256').update(`bearer of ${name}`).digest('base64url');
}
