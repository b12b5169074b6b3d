/** Reads what every write carries in its headers (step 1): form only; what it means is judged by the write protocol. */
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { parseItem, Token } from 'structured-headers';
import { refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Caller } from '../domain/principal.ts';
import type { RangeTarget, WriteEnvelope } from '../domain/write.ts';
import { announcedDigests } from './digest-headers.ts';
import { declaredBytesOf } from './exchange.ts';
import { booleanValue, etagCondition, httpDateS, integerValue, presentedToken, singleValue } from './header-values.ts';

export interface EnvelopeContext {
  readonly request: IncomingMessage;
  readonly caller: Caller;
  readonly signal: AbortSignal;
  readonly startedMs: number;
  /** Method and canonical path: part of the scope of an `Idempotency-Key`. */
  readonly method: string;
  readonly path: string;
  /** What tells one JSON request from another: the hash of its body, lower-case hex; `null` for bodies that stream. */
  readonly bodyHash: string | null;
}

/** Throws `invalid_token` or `invalid_request`. */
export function readEnvelope(context: EnvelopeContext): WriteEnvelope {
  const { request } = context;
  const { headers } = request;
  return {
    caller: context.caller,
    presentedToken: presentedToken(request),
    leaseId: singleValue(request, 'x-lease-id', LIMITS.leaseIdBytesMax),
    waitMs: integerValue(request, 'x-lock-wait-ms', LIMITS.writeWaitMsMax) ?? LIMITS.writeWaitMsDefault,
    keepAlive: booleanValue(request, 'x-lease-keepalive'),
    ifMatch: etagCondition(headers['if-match'], 'If-Match'),
    ifNoneMatch: etagCondition(headers['if-none-match'], 'If-None-Match'),
    ifUnmodifiedSinceS: httpDateS(headers['if-unmodified-since']),
    digests: announcedDigests(request),
    idempotency: idempotencyOf(context),
    signal: context.signal,
    startedMs: context.startedMs,
  };
}

function idempotencyOf(context: EnvelopeContext): WriteEnvelope['idempotency'] {
  const key = idempotencyKey(context.request);
  return key === null ? null : { key, fingerprint: fingerprintOf(context), method: context.method, path: context.path };
}

const PRINTABLE = /^[\x21-\x7e]+$/;

function idempotencyKey(request: IncomingMessage): string | null {
  const value = singleValue(request, 'idempotency-key', LIMITS.idempotencyFieldBytesMax);
  return value === null ? null : idempotencyKeyOf(value);
}

/** The key of a field. A structured string, as the draft asks for; a bare word, as many clients send it, is the same key. Throws `invalid_request`. */
export function idempotencyKeyOf(value: string): string {
  const key = value.startsWith('"') ? quotedKey(value) : value;
  if (!PRINTABLE.test(key) || key.length > LIMITS.idempotencyKeyBytesMax) {
    throw refuse('invalid_request', `Idempotency-Key is a string of 1 to ${LIMITS.idempotencyKeyBytesMax} printable characters.`);
  }
  return key;
}

function quotedKey(value: string): string {
  try {
    const [item] = parseItem(value);
    if (typeof item === 'string') return item;
    if (item instanceof Token) return item.toString();
  } catch {
    // Falls through: a string that does not end is no key.
  }
  throw refuse('invalid_request', 'Idempotency-Key is not a structured string.');
}

/** What makes a repeated key the same request: length, digests, conditions, range and JSON body; not the token, which a retry may have renewed. */
function fingerprintOf({ request, bodyHash }: EnvelopeContext): string {
  const { headers } = request;
  const parts = [
    declaredBytesOf(request),
    headers['content-digest'] ?? null,
    headers['repr-digest'] ?? null,
    headers['if-match'] ?? null,
    headers['if-none-match'] ?? null,
    headers['if-unmodified-since'] ?? null,
    headers['x-update-range'] ?? null,
    headers['upload-offset'] ?? null,
    bodyHash,
  ];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

function text(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value;
}

const BYTE_RANGE = /^bytes=(0|[1-9][0-9]{0,14})-(0|[1-9][0-9]{0,14})?$/;

/** `X-Update-Range: bytes=a-b`, `bytes=a-` or `append`. */
export function updateRange(request: IncomingMessage): RangeTarget {
  const value = singleValue(request, 'x-update-range', 64);
  if (value === null) throw refuse('invalid_request', 'PATCH needs X-Update-Range: bytes=a-b, bytes=a- or append.');
  if (value.toLowerCase() === 'append') return { kind: 'append' };
  const match = BYTE_RANGE.exec(value);
  if (match === null) throw refuse('invalid_request', 'X-Update-Range is bytes=a-b, bytes=a- or append.');
  const start = Number(match[1]);
  const end = match[2] === undefined ? null : Number(match[2]);
  if (end !== null && end < start) throw refuse('invalid_request', 'X-Update-Range ends before it starts.');
  return { kind: 'bytes', start, end };
}

export function uploadOffset(request: IncomingMessage): number | null {
  return integerValue(request, 'upload-offset', Number.MAX_SAFE_INTEGER);
}

/** The media type without parameters, lower case; empty when absent. */
export function mediaTypeOf(contentType: string | undefined): string {
  return (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** What is stored are the bytes that are sent: 415 for a coding that a reader would have to undo. */
export function assertIdentityCoding(request: IncomingMessage): void {
  const coding = text(request.headers['content-encoding']) ?? '';
  if (coding.split(',').some((part) => !['', 'identity'].includes(part.trim().toLowerCase()))) {
    throw refuse('unsupported_media_type', 'Content-Encoding other than identity is not supported: send the bytes as they are to be stored.');
  }
}
