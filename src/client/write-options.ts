import type { WrittenFile, WrittenFiles } from './contract/answers.ts';
import type { Progress } from './upload-exchange.ts';

/** What every write may carry. */
export interface WriteOptions {
  /** Only if the file still has this ETag, quotes included; `*`: only if there is one. Else `precondition_failed`. */
  readonly ifMatch?: string;
  /** `*`: only if there is no file yet. Else `precondition_failed`. */
  readonly ifNoneMatch?: string;
  /** A write without a lease stands in line for so long, ms: 0 to 60 000, default 5 000. Then `resource_locked`. */
  readonly lockWaitMs?: number;
  /**
   * Makes a repeated call do nothing twice, over restarts of this process too, for 24 hours: the answer is then the first one, with
   * `idempotency_replayed`. Another request under it is `idempotency_key_reused`; another body is one, unless that is a stream, of which only
   * the length counts (and `sha256`). Default: a new one for each call.
   */
  readonly idempotencyKey?: string;
  /** Gives up. What became of the write is then not known, unless the error says so. */
  readonly signal?: AbortSignal;
}

export interface BodyOptions extends WriteOptions {
  /** SHA-256 of the bytes that are sent, lower-case hex: the gateway refuses others with `digest_mismatch`. */
  readonly sha256?: string;
  /** The length of a stream, when it is known. Without it the stream is sent in chunks. */
  readonly sizeBytes?: number;
  /** Called as the connection takes the bytes. */
  readonly onProgress?: (progress: Progress) => void;
}

export interface PutOptions extends BodyOptions {
  readonly contentType?: string;
}

/** Of several files: their bodies say what they are. */
export type UploadOptions = Omit<BodyOptions, 'sha256' | 'sizeBytes'>;

export interface AppendOptions extends BodyOptions {
  /** The size that the file is believed to have; else `offset_mismatch` with the member `expected_offset`. */
  readonly offset?: number;
}

export interface TransferOptions extends Omit<WriteOptions, 'ifMatch' | 'ifNoneMatch'> {
  /** Whether an existing target is replaced; default no, which is `already_exists`. */
  readonly overwrite?: boolean;
}

/** What the header of an answer says about it. */
export interface Replay {
  /** The stored answer of an earlier request with the same `Idempotency-Key`: this one wrote nothing. */
  readonly idempotency_replayed: boolean;
}

export type WriteResult = WrittenFile & Replay;
export type UploadResult = WrittenFiles & Replay;

/** Of a write that leaves no file to describe. */
export interface WriteReceipt extends Replay {
  /** The token under which it was written. */
  readonly fencing_token: string;
  readonly operation_id: string;
}
