/** `fencegate/client`: everything that a program may use. Needs Node 20.19 or newer and nothing of the gateway. */
export type { Administration } from './administration.ts';
export type { ByteStream, FileBody, LocalFile } from './body-source.ts';
export type { ClientEvent, ClientEventListener } from './client-events.ts';
export type { Cancellable, FencegateClientOptions, WatchOptions, WatchTarget } from './client-options.ts';
export type { ClientClock, ClientTimer } from './clock.ts';
export type * from './contract/answers.ts';
export type { ErrorCode } from './contract/codes.ts';
export type { FileDownload } from './download.ts';
export { type ClientErrorCode, FencegateError, type FencegateErrorCode, isFencegateError } from './errors.ts';
export { FencegateClient } from './fencegate-client.ts';
export type { FileCalls } from './file-calls.ts';
export type { GetOptions } from './file-reads.ts';
export { type ClientEnvironment, clientFromEnvironment } from './from-environment.ts';
export type { HeldLeaseState } from './held-lease.ts';
export type { InheritedFacts } from './inherited-lease.ts';
export type { LeaseHandle, LeaseTransferOptions } from './lease-handle.ts';
export type { LeaseOptions } from './lease-options.ts';
export type { ConvertOptions } from './lease-standing.ts';
export type { UploadFile } from './multipart-body.ts';
export type { ClientTls } from './own-fetch.ts';
export type { AuditFilter, LockFilter, OperationKey } from './queries.ts';
export { RETRY_RULES, type RetryRule } from './retry-rules.ts';
export type { UnattendedLeaseOptions, UnattendedLeases } from './unattended-leases.ts';
export type { Progress } from './upload-exchange.ts';
export type { LockEvent, LockReset, WatchEvent } from './watching.ts';
export type {
  AppendOptions,
  BodyOptions,
  PutOptions,
  Replay,
  TransferOptions,
  UploadOptions,
  UploadResult,
  WriteOptions,
  WriteReceipt,
  WriteResult,
} from './write-options.ts';
