import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { buildApp } from '../../src/http/app.ts';
import type { HttpDeps, HttpSettings } from '../../src/http/http-deps.ts';
import { type FakeDeps, fakeDeps } from './http-fakes.ts';
import { RawConnection } from './raw-http.ts';

/** The HTTP room over fakes, on a real socket. */
export interface TestServer {
  readonly deps: FakeDeps;
  readonly app: FastifyInstance;
  readonly port: number;
  readonly url: string;
  raw(): RawConnection;
  fetch(path: string, init?: RequestInit): Promise<Response>;
  close(): Promise<void>;
}

export async function startHttp(settings: Partial<HttpSettings> = {}, change: (deps: FakeDeps) => HttpDeps = (deps) => deps): Promise<TestServer> {
  const deps = fakeDeps(settings);
  const app = buildApp(change(deps));
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const connections: RawConnection[] = [];
  return {
    deps,
    app,
    port,
    url,
    raw: () => {
      const connection = new RawConnection(port);
      connections.push(connection);
      return connection;
    },
    fetch: (path, init) => fetch(`${url}${path}`, init),
    close: async () => {
      for (const connection of connections) connection.close();
      app.server.closeAllConnections();
      await app.close();
    },
  };
}
