import { fileURLToPath } from 'node:url';
import { loadSync, type MessageTypeDefinition, type PackageDefinition, type ServiceDefinition } from '@grpc/proto-loader';
import { protoPath as healthProto } from 'grpc-health-check';

/** The shipped `.proto` files, read once: what a client is made from is what the gateway serves. */

export const LOCK_SERVICE = 'fencegate.v1.LockService';

const FOLDER = fileURLToPath(new URL('../../proto', import.meta.url));
const FILES = ['fencegate/v1/lock_service.proto', 'google/rpc/status.proto', 'google/rpc/error_details.proto'];

interface RpcStatus {
  readonly code: number;
  readonly message: string;
  readonly details: readonly { readonly type_url: string; readonly value: Buffer }[];
}

interface ErrorInfo {
  readonly reason: string;
  readonly domain: string;
  readonly metadata: Readonly<Record<string, string>>;
}

interface RetryInfo {
  readonly retry_delay: { readonly seconds: string; readonly nanos: number };
}

export interface Contract {
  /** Everything that reflection tells: the lock service, health, and the details of errors. */
  readonly all: PackageDefinition;
  readonly service: ServiceDefinition;
  readonly status: (status: RpcStatus) => Buffer;
  readonly errorInfo: (info: ErrorInfo) => Buffer;
  readonly retryInfo: (info: RetryInfo) => Buffer;
}

/** Reads the files. 64-bit numbers become strings: a double would round a fencing token. */
export function loadContract(): Contract {
  const all = loadSync([...FILES, healthProto], {
    keepCase: true,
    longs: String,
    enums: String,
    defaults: true,
    oneofs: true,
    includeDirs: [FOLDER],
  });
  const service = all[LOCK_SERVICE];
  if (service === undefined || isMessage(service)) throw new Error(`the shipped files do not have ${LOCK_SERVICE}`);
  return {
    all,
    service: service as ServiceDefinition,
    status: serializer(all, 'google.rpc.Status'),
    errorInfo: serializer(all, 'google.rpc.ErrorInfo'),
    retryInfo: serializer(all, 'google.rpc.RetryInfo'),
  };
}

function isMessage(definition: PackageDefinition[string]): definition is MessageTypeDefinition<object, object> {
  return 'serialize' in definition && typeof definition.serialize === 'function';
}

function serializer(all: PackageDefinition, name: string): (message: object) => Buffer {
  const definition = all[name];
  if (definition === undefined || !isMessage(definition)) throw new Error(`the shipped files do not have ${name}`);
  return definition.serialize;
}
