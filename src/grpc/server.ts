import { isIPv6 } from 'node:net';
import { logVerbosity, Server, ServerCredentials, setLogVerbosity } from '@grpc/grpc-js';
import { ReflectionService } from '@grpc/reflection';
import { LIMITS } from '../domain/limits.ts';
import { Calls } from './calls.ts';
import { loadContract } from './contract.ts';
import { Deliveries } from './deliveries.ts';
import type { GrpcDeps, GrpcSettings } from './grpc-deps.ts';
import { lockMethods } from './lock-methods.ts';
import { OpenCalls } from './open-calls.ts';
import { RateLimit } from './rate-limit.ts';
import { ServingStatus } from './serving-status.ts';

const OPTIONS = {
  'grpc.max_receive_message_length': LIMITS.grpcMessageBytesMax,
  'grpc.max_concurrent_streams': LIMITS.grpcStreamsPerConnectionMax,
  'grpc.keepalive_time_ms': LIMITS.grpcPingEveryMs,
  'grpc.keepalive_timeout_ms': LIMITS.grpcPingAnswerMs,
  'grpc.max_connection_idle_ms': LIMITS.grpcIdleConnectionMs,
  'grpc.enable_channelz': 0,
};

/** The gRPC server over the ports: the lock service, health, reflection. Nothing listens before `start`. */
export class GrpcServer {
  readonly #deps: GrpcDeps;
  readonly #deliveries = new Deliveries();
  readonly #server = new Server({ ...OPTIONS, interceptors: [this.#deliveries.interceptor] });
  readonly #open: OpenCalls;
  readonly #serving: ServingStatus;

  constructor(deps: GrpcDeps) {
    this.#deps = deps;
    this.#open = new OpenCalls(deps.deadline);
    this.#serving = new ServingStatus(deps.health, deps.clock);
    // Everything that it would write to standard error comes to us as an error as well.
    setLogVerbosity(logVerbosity.NONE);
    const contract = loadContract();
    const rate = new RateLimit(deps.clock, deps.settings.rateLimitPerSecond);
    const calls = new Calls({ deps, contract, open: this.#open, deliveries: this.#deliveries, rate });
    this.#server.addService(contract.service, lockMethods(deps, calls, this.#open));
    this.#serving.addTo(this.#server);
    new ReflectionService(contract.all).addToServer(this.#server);
  }

  /** Resolves with the port. Rejects when the address cannot be had. */
  async start(): Promise<number> {
    const { host, port, tls } = this.#deps.settings;
    const address = `${isIPv6(host) ? `[${host}]` : host}:${port}`;
    const bound = await new Promise<number>((resolve, reject) => {
      this.#server.bindAsync(address, credentials(tls), (error, found) => {
        if (error === null) resolve(found);
        else reject(new Error(`the gRPC address ${address} cannot be had (${causeOf(error)}); set FENCEGATE_GRPC_PORT to a free port`));
      });
    });
    this.#serving.start();
    this.#deps.log.info({ host, port: bound, tls: tls !== null }, 'gRPC listening');
    return bound;
  }

  /** Tells who watches the health that it drains, and waits for the calls that are open, at most until `signal` aborts. */
  idle(signal: AbortSignal): Promise<void> {
    this.#serving.look();
    return this.#open.idle(signal);
  }

  /** Ends every connection; streams that were told of it get a moment to be gone. */
  async stop(): Promise<void> {
    this.#serving.stop();
    await new Promise<void>((resolve) => {
      const forced = this.#deps.clock.after(LIMITS.closeConnectionsMs, () => this.#server.forceShutdown());
      this.#server.tryShutdown((error) => {
        forced.cancel();
        if (error !== undefined) this.#deps.log.warn({ err: error }, 'the gRPC service was shut down by force');
        resolve();
      });
    });
  }
}

/** The library puts the system's words into a longer text. */
function causeOf({ message }: Error): string {
  return /\bE[A-Z]{4,}\b/.exec(message)?.[0] ?? message;
}

function credentials(tls: GrpcSettings['tls']): ServerCredentials {
  if (tls === null) return ServerCredentials.createInsecure();
  const pair = { cert_chain: Buffer.from(tls.cert), private_key: Buffer.from(tls.key) };
  return ServerCredentials.createSsl(tls.clientCa === null ? null : Buffer.from(tls.clientCa), [pair], tls.clientCa !== null);
}
