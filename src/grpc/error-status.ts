import { Metadata, status } from '@grpc/grpc-js';
import type { GatewayError } from '../domain/errors.ts';
import type { Contract } from './contract.ts';
import { GRPC_STATUS } from './status.ts';

export const ERROR_DOMAIN = 'fencegate';

/** A refusal as it is sent. */
export interface ErrorStatus {
  readonly code: status;
  readonly details: string;
  readonly metadata: Metadata;
}

const MS_PER_SECOND = 1_000;
const NANOS_PER_MS = 1_000_000;
const typeUrl = (name: string): string => `type.googleapis.com/google.rpc.${name}`;

/** The status of a refusal, with `google.rpc.Status` in its trailer: `ErrorInfo.reason` is the code that HTTP has, its metadata what the problem document has. */
export function errorStatus(
  contract: Contract,
  error: GatewayError,
  { requestId, retryAfterMs }: { readonly requestId: string; readonly retryAfterMs: number | undefined },
): ErrorStatus {
  const code = GRPC_STATUS[error.code];
  const info = { reason: error.code, domain: ERROR_DOMAIN, metadata: { ...texts(error.members), request_id: requestId } };
  const details = [{ type_url: typeUrl('ErrorInfo'), value: contract.errorInfo(info) }];
  if (retryAfterMs !== undefined) {
    const wholeMs = Math.ceil(retryAfterMs);
    const retryDelay = { seconds: String(Math.floor(wholeMs / MS_PER_SECOND)), nanos: (wholeMs % MS_PER_SECOND) * NANOS_PER_MS };
    details.push({ type_url: typeUrl('RetryInfo'), value: contract.retryInfo({ retry_delay: retryDelay }) });
  }
  const metadata = new Metadata();
  metadata.set('x-request-id', requestId);
  metadata.set('grpc-status-details-bin', contract.status({ code, message: error.message, details }));
  return { code, details: error.message, metadata };
}

/** `ErrorInfo` has texts only: what is no text is its JSON. */
function texts(members: GatewayError['members']): Record<string, string> {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]));
}

export function statusName(code: status): string {
  return status[code];
}
