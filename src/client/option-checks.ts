import type { FixOptions, OrderOptions } from './administration.ts';
import {
  abortSignal,
  type Checks,
  callable,
  checkOptions,
  durationMs,
  flag,
  gatewayUrl,
  headerText,
  jsonObject,
  leaseMode,
  notMeant,
  object,
  pageLimit,
  priority,
  sha256Text,
  someText,
  someTexts,
  text,
  wholeNumber,
  wrongKind,
} from './call-checks.ts';
import type { BreakOptions, Cancellable, FencegateClientOptions, WatchOptions, WatchTarget } from './client-options.ts';
import type { GetOptions } from './file-reads.ts';
import type { InheritedFacts } from './inherited-lease.ts';
import type { LeaseOptions } from './lease-options.ts';
import type { ConvertOptions } from './lease-standing.ts';
import type { UploadFile } from './multipart-body.ts';
import type { ClientTls } from './own-fetch.ts';
import type { AuditFilter, LockFilter, OperationKey } from './queries.ts';
import { tlsProblem } from './tls-material.ts';
import type { RenewOptions, UnattendedLeaseOptions } from './unattended-leases.ts';
import type { AppendOptions, BodyOptions, PutOptions, TransferOptions, UploadOptions, WriteOptions } from './write-options.ts';

/** Which options each call has, and what each of them may be. */

export const CANCELLABLE: Checks<Cancellable> = { signal: abortSignal };

const INHERITED: Checks<InheritedFacts> = { resource: someText, leaseId: someText, fencingToken: headerText };

const TLS: Checks<ClientTls> = { ca: someText, cert: someText, key: someText };

export const CLIENT_OPTIONS: Checks<FencegateClientOptions> = {
  url: gatewayUrl,
  authToken: headerText,
  tls: (value, name) => {
    checkOptions(value as ClientTls, TLS, name);
    const { cert, key } = value as ClientTls;
    if ((cert === undefined) !== (key === undefined)) throw wrongKind(name, 'cert and key together', value);
    const problem = tlsProblem(value as ClientTls, { ca: `${name}.ca`, cert: `${name}.cert`, key: `${name}.key` });
    if (problem !== null) throw notMeant(problem);
  },
  clientId: headerText,
  sessionTtlMs: wholeNumber,
  onEvent: callable,
  fetch: callable,
  clock: object,
  random: callable,
  requestId: callable,
  inheritedLease: (value, name) => checkOptions(value as InheritedFacts, INHERITED, name),
};

export const LEASE_OPTIONS: Checks<LeaseOptions> = {
  mode: leaseMode,
  waitMs: durationMs,
  ttlMs: wholeNumber,
  maxHoldMs: wholeNumber,
  priority,
  lockDelayMs: wholeNumber,
  metadata: jsonObject,
  marginMs: durationMs,
  signal: abortSignal,
};

export const CONVERT_OPTIONS: Checks<ConvertOptions> = { waitMs: durationMs, signal: abortSignal };

export const UNATTENDED_OPTIONS: Checks<UnattendedLeaseOptions> = {
  mode: leaseMode,
  ttlMs: wholeNumber,
  waitMs: durationMs,
  metadata: jsonObject,
  signal: abortSignal,
};

export const RENEW_OPTIONS: Checks<RenewOptions> = { ttlMs: wholeNumber, signal: abortSignal };

export const WRITE_OPTIONS: Checks<WriteOptions> = {
  ifMatch: headerText,
  ifNoneMatch: headerText,
  lockWaitMs: wholeNumber,
  idempotencyKey: headerText,
  signal: abortSignal,
};

export const BODY_OPTIONS: Checks<BodyOptions> = { ...WRITE_OPTIONS, sha256: sha256Text, sizeBytes: wholeNumber, onProgress: callable };

export const UPLOAD_OPTIONS: Checks<UploadOptions> = { ...WRITE_OPTIONS, onProgress: callable };

export const PUT_OPTIONS: Checks<PutOptions> = { ...BODY_OPTIONS, contentType: headerText };

export const APPEND_OPTIONS: Checks<AppendOptions> = { ...BODY_OPTIONS, offset: wholeNumber };

export const TRANSFER_OPTIONS: Checks<TransferOptions> = {
  lockWaitMs: wholeNumber,
  idempotencyKey: headerText,
  signal: abortSignal,
  overwrite: flag,
};

export const UPLOAD_FILE: Checks<UploadFile> = { name: someText, body: () => undefined, sizeBytes: wholeNumber };

export function checkFiles(files: unknown): void {
  if (!Array.isArray(files)) throw wrongKind('files', 'a list of { name, body }', files);
  for (const file of files) {
    checkOptions(file as UploadFile, UPLOAD_FILE, 'a file');
    // A name that is left away is no name; the body is looked at where it is read.
    someText((file as UploadFile).name, 'the name of a file');
  }
}

const RANGE: Checks<NonNullable<GetOptions['range']>> = { start: wholeNumber, end: wholeNumber };

export const GET_OPTIONS: Checks<GetOptions> = {
  range: (value, name) => {
    checkOptions(value as NonNullable<GetOptions['range']>, RANGE, name);
    wholeNumber((value as NonNullable<GetOptions['range']>).start, `${name}.start`);
  },
  ifMatch: headerText,
  ifNoneMatch: headerText,
  signal: abortSignal,
  onProgress: callable,
};

export const WATCH_OPTIONS: Checks<WatchOptions> = { afterSeq: wholeNumber, signal: abortSignal };

/** Of all three kinds: a target is one of them. */
const TARGET: Checks<{ resource: string; volume: string; pathPrefix: string; session: boolean }> = {
  resource: text,
  volume: text,
  pathPrefix: text,
  session: (value, name) => {
    if (value !== true) throw wrongKind(name, 'true', value);
  },
};

export function checkTarget(target: WatchTarget): void {
  checkOptions<object>(target, TARGET, 'target');
}

const OPERATION_KEY: Checks<{ operationId: string; idempotencyKey: string; requestId: string }> = {
  operationId: someText,
  idempotencyKey: someText,
  requestId: someText,
};

export function checkOperationKey(key: OperationKey): void {
  checkOptions<object>(key, OPERATION_KEY, 'key');
  if (Object.values(key).filter((value) => value !== undefined).length !== 1) {
    throw wrongKind('key', 'one of operationId, idempotencyKey and requestId', key);
  }
}

export const BREAK_OPTIONS: Checks<BreakOptions> = { reason: someText, graceMs: wholeNumber, leaseRefs: someTexts, signal: abortSignal };

export const ORDER_OPTIONS: Checks<OrderOptions> = { reason: someText, signal: abortSignal };

export const FIX_OPTIONS: Checks<FixOptions> = { dryRun: flag, force: flag, reason: someText, signal: abortSignal };

export const LOCK_FILTER: Checks<LockFilter> = {
  volume: text,
  state: text,
  olderThanMs: wholeNumber,
  limit: pageLimit,
  signal: abortSignal,
};

export const AUDIT_FILTER: Checks<AuditFilter> = {
  volume: text,
  path: text,
  pathPrefix: text,
  principal: text,
  clientId: text,
  leaseRef: text,
  token: text,
  action: text,
  outcome: text,
  code: text,
  requestId: text,
  operationId: text,
  since: text,
  until: text,
  order: text,
  limit: pageLimit,
  signal: abortSignal,
};
