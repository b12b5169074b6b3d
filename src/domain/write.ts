import type { StoredAnswer } from './journal.ts';
import type { Caller } from './principal.ts';
import type { Resource } from './resource.ts';

/** The commands and answers of the write gateway: the face that HTTP and gRPC use. Framework-free. */

/** An entity-tag list, or any (`*`). Tags are header values, quotes and `W/` included. */
export type EtagCondition = '*' | readonly string[];

/** Judged by the writer for PUT and PATCH, whose bytes become the file; for all else where the request arrives. */
export interface ExpectedDigests {
  /** Lower-case hex, of the bytes of this message. */
  readonly content: { readonly sha256?: string; readonly sha512?: string };
  /** Lower-case hex, of the whole file after the write. */
  readonly representation: { readonly sha256?: string; readonly sha512?: string };
}

/** What every write carries, read from its headers and checked for form only. */
export interface WriteEnvelope {
  readonly caller: Caller;
  /** The token as sent; `null` when the header is absent. Judged by admission. */
  readonly presentedToken: string | null;
  readonly leaseId: string | null;
  readonly waitMs: number;
  readonly keepAlive: boolean;
  readonly ifMatch: EtagCondition | null;
  readonly ifNoneMatch: EtagCondition | null;
  /** Whole seconds since 1970; counts only without `ifMatch` (RFC 9110, 13.2.2). */
  readonly ifUnmodifiedSinceS: number | null;
  readonly digests: ExpectedDigests;
  readonly idempotency: { readonly key: string; readonly fingerprint: string; readonly method: string; readonly path: string } | null;
  /** Joins the client's disconnect and the shutdown deadline; its reason is a `GatewayError`. */
  readonly signal: AbortSignal;
  readonly startedMs: number;
}

/**
 * The body of a request. Nothing is read (and no `100 Continue` sent) before `open`. The iteration ends normally only when
 * the whole declared body arrived; otherwise it throws `incomplete_body`, `upload_timeout` or `body_too_large`.
 */
export interface Body {
  readonly declaredBytes: number | null;
  open(): AsyncIterable<Uint8Array>;
}

export interface UploadPart {
  /** The part's file name as sent. */
  readonly filename: string | undefined;
  readonly body: AsyncIterable<Uint8Array>;
}
/** As `Body`; the iteration also throws `digest_mismatch` at its end, for the form as a whole. */
export interface UploadBody {
  readonly declaredBytes: number | null;
  open(): AsyncIterable<UploadPart>;
}

export type RangeTarget =
  | { readonly kind: 'append' }
  /** `end` is inclusive, as in the header; `null` when open. */
  | { readonly kind: 'bytes'; readonly start: number; readonly end: number | null };

/** The answer object of `http-api.md`; `status` tells created from replaced. */
export interface FileAnswer {
  readonly resource: string;
  readonly volume: string;
  readonly path: string;
  readonly size_bytes: number;
  readonly etag: string;
  readonly digest: { readonly 'sha-256': string } | null;
  readonly fencing_token: string;
  readonly lease_ref: string;
  readonly operation_id: string;
  readonly durability: 'synced' | 'journaled';
  readonly fence_level: string;
}

/** A finished write, ready to be sent: `body` is `null` for 204. `replayed`: stored answer of an `Idempotency-Key`. */
export interface WriteAnswer extends StoredAnswer {
  readonly replayed: boolean;
}

export interface Writer {
  putFile(envelope: WriteEnvelope, resource: Resource, body: Body): Promise<WriteAnswer>;
  patchFile(envelope: WriteEnvelope, resource: Resource, target: RangeTarget, uploadOffset: number | null, body: Body): Promise<WriteAnswer>;
  /** `directory` is `null` for the volume's root. */
  uploadFiles(envelope: WriteEnvelope, volume: string, directory: Resource | null, body: UploadBody): Promise<WriteAnswer>;
  deleteFile(envelope: WriteEnvelope, resource: Resource): Promise<WriteAnswer>;
  makeDirectory(envelope: WriteEnvelope, resource: Resource): Promise<WriteAnswer>;
  removeDirectory(envelope: WriteEnvelope, resource: Resource): Promise<WriteAnswer>;
  moveFile(envelope: WriteEnvelope, request: TransferRequest): Promise<WriteAnswer>;
  copyFile(envelope: WriteEnvelope, request: TransferRequest): Promise<WriteAnswer>;
}

export interface TransferRequest {
  readonly from: Resource;
  readonly to: Resource;
  readonly overwrite: boolean;
  readonly fromToken: string | null;
  readonly toToken: string | null;
}
