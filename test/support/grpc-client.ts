import { fileURLToPath } from 'node:url';
import {
  type ChannelCredentials,
  type ClientDuplexStream,
  type ClientReadableStream,
  credentials,
  loadPackageDefinition,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { loadSync, type MessageTypeDefinition, type PackageDefinition } from '@grpc/proto-loader';
import { protoPath as healthProto } from 'grpc-health-check';
import type {
  GetLockRequest,
  KeepAliveRequest,
  KeepAliveResponse,
  LockInfo,
  RecordLockRequest,
  RecordLockResponse,
  ReleaseLockRequest,
  ReleaseLockResponse,
  RenewLockRequest,
  WatchLockRequest,
  WireEvent,
} from '../../src/grpc/messages.ts';

const PROTO = fileURLToPath(new URL('../../proto', import.meta.url));

/** Everything of the shipped files, as any client reads them. */
export const shipped: PackageDefinition = loadSync(
  ['fencegate/v1/lock_service.proto', 'google/rpc/status.proto', 'google/rpc/error_details.proto', healthProto],
  { keepCase: true, longs: String, enums: String, defaults: true, oneofs: true, includeDirs: [PROTO] },
);

export function messageType(name: string): MessageTypeDefinition<object, Record<string, unknown>> {
  return shipped[name] as unknown as MessageTypeDefinition<object, Record<string, unknown>>;
}

type Sent<T> = { readonly [K in keyof T]?: T[K] | number };
interface CallOptions {
  readonly metadata?: Readonly<Record<string, string | readonly string[]>>;
  /** From now, ms. */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
}

interface UnaryCall {
  cancel(): void;
  on(event: 'status', listener: (end: { readonly metadata: Metadata }) => void): unknown;
}
type UnaryMethod = (
  request: object,
  metadata: Metadata,
  options: { readonly deadline?: number },
  done: (error: ServiceError | null, answer?: unknown) => void,
) => UnaryCall;
type WireClient = Readonly<Record<string, UnaryMethod>> & {
  close(): void;
  WatchLock(request: object, metadata: Metadata): ClientReadableStream<WireEvent>;
  KeepAlive(metadata: Metadata): ClientDuplexStream<KeepAliveRequest, KeepAliveResponse>;
};

/** A client made from the shipped file alone. */
export class GrpcLockClient {
  readonly #client: WireClient;
  readonly #health: WireClient;
  readonly #metadata: CallOptions['metadata'];

  constructor(port: number, options: { readonly credentials?: ChannelCredentials; readonly bearer?: string; readonly host?: string } = {}) {
    const api = loadPackageDefinition(shipped) as unknown as Record<string, Record<string, Record<string, new (...args: unknown[]) => WireClient>>>;
    const made = (group: string, name: string): WireClient => {
      const Client = api[group]?.[group === 'grpc' ? 'health' : 'v1'];
      const Service = (group === 'grpc' ? (Client?.['v1'] as unknown as Record<string, new (...args: unknown[]) => WireClient>) : Client)?.[name];
      if (Service === undefined) throw new Error(`no ${name} in the shipped files`);
      return new Service(`${options.host ?? '127.0.0.1'}:${port}`, options.credentials ?? credentials.createInsecure(), {
        'grpc.use_local_subchannel_pool': 1,
      });
    };
    this.#client = made('fencegate', 'LockService');
    this.#health = made('grpc', 'Health');
    this.#metadata = options.bearer === undefined ? {} : { authorization: `Bearer ${options.bearer}` };
  }

  acquire(request: Sent<RecordLockRequest>, options: CallOptions = {}): Promise<RecordLockResponse> {
    return this.unary('AcquireLock', request, options);
  }
  renew(request: Sent<RenewLockRequest>, options: CallOptions = {}): Promise<RecordLockResponse> {
    return this.unary('RenewLock', request, options);
  }
  release(request: Sent<ReleaseLockRequest>, options: CallOptions = {}): Promise<ReleaseLockResponse> {
    return this.unary('ReleaseLock', request, options);
  }
  lock(path: string, options: CallOptions = {}): Promise<LockInfo> {
    return this.unary('GetLock', { resource_path: path } satisfies GetLockRequest, options);
  }
  watch(request: Sent<WatchLockRequest>, options: CallOptions = {}): ClientReadableStream<WireEvent> {
    return this.#client.WatchLock(request, this.#meta(options));
  }
  keepAlive(options: CallOptions = {}): ClientDuplexStream<KeepAliveRequest, KeepAliveResponse> {
    return this.#client.KeepAlive(this.#meta(options));
  }
  health(service: string): Promise<{ readonly status: string }> {
    return this.unary('Check', { service }, {}, this.#health);
  }
  watchHealth(service: string): ClientReadableStream<{ readonly status: string }> {
    const { Watch } = this.#health as unknown as { Watch(request: object): ClientReadableStream<{ readonly status: string }> };
    return Watch.call(this.#health, { service });
  }

  unary<Answer>(method: string, request: object, { deadlineMs, signal, ...options }: CallOptions, client = this.#client): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const limits = deadlineMs === undefined ? {} : { deadline: Date.now() + deadlineMs };
      const call = client[method]?.call(client, request, this.#meta(options), limits, (error, answer) => {
        if (error === null) resolve(answer as Answer);
        else reject(error);
      });
      if (call === undefined) throw new Error(`no ${method} in the shipped file`);
      signal?.addEventListener('abort', () => call.cancel());
    });
  }

  close(): void {
    this.#client.close();
    this.#health.close();
  }

  #meta({ metadata = {} }: CallOptions): Metadata {
    const sent = new Metadata();
    for (const [name, values] of Object.entries({ ...this.#metadata, ...metadata }))
      for (const value of [values].flat()) sent.add(name, value as string);
    return sent;
  }
}

/** A refusal in one word: `NOT_FOUND lease_not_found`. */
export function refusalOf(error: unknown): string {
  const { code } = error as ServiceError;
  const info = detailsOf(error).find(({ type }) => type === 'google.rpc.ErrorInfo');
  return `${status[code]} ${(info?.message['reason'] as string | undefined) ?? '-'}`;
}

/** What the trailer of a refusal has: the details of `google.rpc.Status`, each read by the shipped files. */
export function detailsOf(error: unknown): readonly { readonly type: string; readonly message: Record<string, unknown> }[] {
  const [bytes] = (error as ServiceError).metadata.get('grpc-status-details-bin');
  if (!Buffer.isBuffer(bytes)) return [];
  const { details } = messageType('google.rpc.Status').deserialize(bytes) as { details: { type_url: string; value: Buffer }[] };
  return details.map(({ type_url: url, value }) => {
    const type = url.slice(url.lastIndexOf('/') + 1);
    return { type, message: messageType(type).deserialize(value) };
  });
}

/** What `promise` is refused with; fails when it is not. */
export async function refusal(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    (answer) => `answered ${JSON.stringify(answer)}`,
    (thrown: unknown) => refusalOf(thrown),
  );
}
