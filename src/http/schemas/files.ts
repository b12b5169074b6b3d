import { type Static, Type } from '@sinclair/typebox';
import type { ErrorCode } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { answerOneOf, Cursor, Limit, nullableInteger, nullableString, nullableToken, ResourceName, time, token } from './common.ts';

export const FileParams = Type.Object({
  volume: Type.String({ description: 'Name of a volume', examples: ['ledger'] }),
  path: Type.String({
    description:
      'Path inside the volume: segments of percent-encoded UTF-8, separated by slashes. Unless the volume has names: any, no file or directory is made whose name other systems cannot have (CON, a:b, a leading "-" ...)',
    examples: ['2026/q3.csv'],
  }),
});

export const FileAnswerBody = Type.Object(
  {
    resource: Type.String(),
    volume: Type.String(),
    path: Type.String(),
    size_bytes: Type.Integer(),
    etag: Type.String({ description: 'The value of the ETag header, quotes included' }),
    digest: Type.Unsafe<{ 'sha-256': string } | null>({
      type: ['object', 'null'],
      properties: { 'sha-256': { type: 'string', description: 'Lower-case hex' } },
      required: ['sha-256'],
    }),
    fencing_token: token(),
    lease_ref: Type.String(),
    operation_id: Type.String(),
    durability: answerOneOf(['synced', 'journaled'] as const),
    fence_level: answerOneOf(['token', 'incarnation', 'fleet'] as const),
  },
  { title: 'WrittenFile' },
);

export const UploadAnswerBody = Type.Object({ operation_id: Type.String(), files: Type.Array(FileAnswerBody) }, { title: 'WrittenFiles' });

export const ListQuery = Type.Object({ limit: Limit(LIMITS.listPageMax, LIMITS.listPageDefault), cursor: Cursor }, { additionalProperties: false });

export const Entry = Type.Object(
  {
    name: nullableString('null when the name is not UTF-8'),
    name_base64: nullableString('The bytes of a name that is not UTF-8; GET finds it by these bytes, percent-encoded'),
    type: answerOneOf(['file', 'directory', 'symbolic_link', 'special'] as const),
    size_bytes: nullableInteger(),
    modified_at: nullableString('RFC 3339 UTC'),
  },
  { title: 'Entry' },
);
export const Listing = Type.Object({ entries: Type.Array(Entry), next_cursor: nullableString() }, { title: 'Listing' });
export type ListingBody = Static<typeof Listing>;

/** Documented here; judged by `tokenMember`, as the header is: what is wrong with a token is `invalid_token`, whatever type it has. */
const TokenMember = Type.Unknown({
  type: ['string', 'null'],
  minLength: 1,
  maxLength: LIMITS.signedTokenBytesMax,
  description: 'Fencing token of this name, as it was given; null is the same as leaving it out',
});
export const TransferBody = Type.Object(
  {
    from: ResourceName,
    to: ResourceName,
    overwrite: Type.Optional(Type.Boolean({ default: false })),
    from_token: Type.Optional(TokenMember),
    to_token: Type.Optional(TokenMember),
  },
  { additionalProperties: false, title: 'Transfer' },
);

export const VolumeList = Type.Object({
  volumes: Type.Array(
    Type.Object(
      {
        name: Type.String(),
        files: Type.Boolean({ description: 'false: lock-only' }),
        require_token: answerOneOf(['false', 'once_leased', 'true'] as const),
        tokens: answerOneOf(['issued', 'signed'] as const),
        read_only: Type.Boolean(),
      },
      { title: 'Volume' },
    ),
  ),
});
export type VolumeListBody = Static<typeof VolumeList>;

export const OperationQuery = Type.Object(
  {
    idempotency_key: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: LIMITS.idempotencyFieldBytesMax,
        description: 'As the header was sent, with its quotes or without them',
      }),
    ),
    request_id: Type.Optional(Type.String({ minLength: 1, maxLength: LIMITS.requestIdBytesMax })),
  },
  { additionalProperties: false },
);
export const OperationParams = Type.Object({ operation_id: Type.String({ minLength: 1, maxLength: 128 }) });
const OUTCOME_NOTE =
  'unknown: the volume does not tell yet, or the journal failed in its commit; then the next start of the gateway makes it committed, or forgets it (404): it did not happen';
export const Operation = Type.Object(
  {
    operation_id: Type.String(),
    action: Type.String(),
    resource: Type.String(),
    outcome: answerOneOf(['committed', 'rejected', 'aborted', 'unknown', 'pending'] as const, OUTCOME_NOTE),
    code: nullableString(),
    at: time('When it was decided'),
    etag: nullableString(),
    fencing_token: nullableToken(),
  },
  { title: 'Operation' },
);
export type OperationBody = Static<typeof Operation>;

/** Headers of requests, for the document only: the framework would fold their names, and `envelope.ts` judges them with better words. */
export const WriteHeaders = Type.Object({
  'X-Fencing-Token': Type.Optional(
    Type.String({ description: 'Decimal fencing token of a held lease (or a signed token, where the volume asks for it)' }),
  ),
  'X-Lease-Id': Type.Optional(Type.String({ description: 'Must be the lease of the token when sent' })),
  'X-Client-Id': Type.Optional(Type.String({ description: 'A label for people' })),
  'X-Lock-Wait-Ms': Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: LIMITS.writeWaitMsMax,
      default: LIMITS.writeWaitMsDefault,
      description:
        'How long a write without a token stands in line. A 423 names who is in the way, as a 409 to POST /v1/leases does; while there is no contact with the coordinator nobody knows that, and the answer is 503 coordinator_suspended',
    }),
  ),
  'X-Lease-Keepalive': Type.Optional(Type.Boolean({ description: 'The upload renews its lease while bytes flow' })),
  'If-Match': Type.Optional(Type.String()),
  'If-None-Match': Type.Optional(Type.String()),
  'Content-Digest': Type.Optional(Type.String({ description: 'RFC 9530, of the content of this request as it is sent: all of its bytes' })),
  'Repr-Digest': Type.Optional(Type.String({ description: 'RFC 9530, of the whole file after the write' })),
  'Idempotency-Key': Type.Optional(Type.String({ description: 'Kept 24 hours per principal, method and path' })),
});
/** Of requests whose content does not become the file: a form, JSON, none. */
export const EnclosingHeaders = Type.Object({
  ...WriteHeaders.properties,
  'Repr-Digest': Type.Optional(
    Type.String({ description: 'RFC 9530, of what this request encloses: the same bytes as Content-Digest, and not of any file' }),
  ),
});
export const PatchHeaders = Type.Object({
  ...WriteHeaders.properties,
  'X-Update-Range': Type.String({ description: 'bytes=a-b, bytes=a- or append' }),
  'Upload-Offset': Type.Optional(Type.Integer({ minimum: 0, description: 'The size that the client believes in' })),
});
export const ReadHeaders = Type.Object({
  Range: Type.Optional(Type.String()),
  'If-Range': Type.Optional(Type.String()),
  'If-Match': Type.Optional(Type.String()),
  'If-None-Match': Type.Optional(Type.String()),
  'If-Modified-Since': Type.Optional(Type.String()),
  'If-Unmodified-Since': Type.Optional(Type.String()),
});

export const WRITE_ANSWER_HEADERS = {
  'X-Fencing-Token': 'The token under which it was written',
  'X-Operation-Id': 'Names the operation for GET /v1/operations',
  'Idempotency-Replayed': 'true when this is the stored answer of an earlier request',
} as const;
export const FILE_ANSWER_HEADERS = { ...WRITE_ANSWER_HEADERS, ETag: 'Of the file as it is now', 'Repr-Digest': 'RFC 9530' } as const;
export const READ_ANSWER_HEADERS = {
  ETag: 'Weak when somebody else changed the file less than 2 s ago',
  'Last-Modified': 'HTTP date',
  'Accept-Ranges': 'bytes',
  'Repr-Digest': 'RFC 9530, when known',
  'Content-Disposition': 'attachment, except for plain text and raster images',
} as const;

/** What a token, a lease and the machinery behind every write can refuse. */
export const WRITE_CODES: readonly ErrorCode[] = [
  'invalid_token',
  'invalid_path',
  'digest_mismatch',
  'incomplete_body',
  'token_not_issued',
  'not_lease_owner',
  'volume_read_only',
  'cross_origin',
  'not_found',
  'volume_not_found',
  'upload_timeout',
  'is_a_directory',
  'not_a_directory',
  'special_file',
  'symbolic_link',
  'name_alias',
  'cross_volume',
  'idempotency_in_progress',
  'idempotency_key_reused',
  'stale_token',
  'lease_ended',
  'lease_is_shared',
  'precondition_failed',
  'resource_locked',
  'token_required',
  'queue_full',
  'coordinator_suspended',
  'coordinator_unavailable',
  'volume_unavailable',
  'journal_unavailable',
  'draining',
  'outcome_unknown',
  'insufficient_storage',
];
export const BODY_CODES: readonly ErrorCode[] = ['length_required', 'body_too_large', 'unsupported_media_type', 'too_many_uploads'];
export const READ_CODES: readonly ErrorCode[] = [
  'invalid_path',
  'not_found',
  'volume_not_found',
  'symbolic_link',
  'special_file',
  'not_a_directory',
  'name_alias',
  'cross_volume',
  'volume_unavailable',
];
