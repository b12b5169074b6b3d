import { type Static, Type } from '@sinclair/typebox';
import { AUDIT_ACTIONS } from '../../domain/audit-record.ts';
import { ERROR_CODES } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import {
  answerOneOf,
  CommittedWriteBody,
  Cursor,
  CycleMemberBody,
  Limit,
  nullableInteger,
  nullableOneOf,
  nullableString,
  nullableToken,
  oneOf,
  time,
} from './common.ts';

const OUTCOMES = ['committed', 'rejected', 'aborted', 'unknown', 'pending'] as const;
const word = () => Type.Optional(Type.String({ minLength: 1, maxLength: LIMITS.pathBytesMax }));

export const AuditQuery = Type.Object(
  {
    volume: word(),
    path: word(),
    path_prefix: word(),
    principal: word(),
    client_id: word(),
    lease_ref: word(),
    token: Type.Optional(Type.String({ pattern: '^[1-9][0-9]{0,18}$' })),
    action: Type.Optional(oneOf(AUDIT_ACTIONS)),
    outcome: Type.Optional(oneOf(OUTCOMES)),
    code: Type.Optional(oneOf(ERROR_CODES)),
    request_id: word(),
    operation_id: word(),
    since: Type.Optional(Type.String({ maxLength: 64, description: 'RFC 3339, included' })),
    until: Type.Optional(Type.String({ maxLength: 64, description: 'RFC 3339, not included' })),
    order: Type.Optional(oneOf(['asc', 'desc'] as const, 'Default desc: newest first')),
    limit: Limit(LIMITS.auditPageMax, LIMITS.auditPageDefault),
    cursor: Cursor,
  },
  { additionalProperties: false },
);
export type AuditQueryValues = Static<typeof AuditQuery>;

const Detail = Type.Object(
  {
    reason: nullableString(
      'As it was given; deadlock of a deadlock; why an upgrade was not granted; max_hold, session_ended or max_wait of an end. null: of a fix that needs none, and of a hold',
    ),
    finding_id: Type.Optional(Type.String({ description: 'Of a fix, carried out or refused: the finding that it was asked for' })),
    committed: Type.Optional(
      Type.Array(CommittedWriteBody, {
        description: `What a broken lease had written when its end took effect (of a break that is pending: when it was announced), oldest first, at most ${LIMITS.recordedWritesMax}; its lease_ref finds all of it`,
      }),
    ),
    committed_truncated: Type.Optional(Type.Boolean({ description: 'Beside committed. True: it had written more' })),
    hold_count: Type.Optional(
      Type.Integer({ minimum: 1, description: 'Of a hold that was taken off: how many are left. The lease goes on with them' }),
    ),
    cycle: Type.Optional(Type.Array(CycleMemberBody, { description: 'Of a deadlock: the waits that went round' })),
  },
  { title: 'AuditDetail' },
);

export const Record = Type.Object(
  {
    seq: Type.Integer(),
    at: time('When it was decided'),
    action: answerOneOf(AUDIT_ACTIONS),
    resource: nullableString(),
    volume: nullableString(),
    path: nullableString(),
    outcome: answerOneOf(OUTCOMES),
    code: nullableString(),
    status: nullableInteger(),
    principal: nullableString(),
    client_id: nullableString(),
    remote_address: nullableString(),
    request_id: nullableString(),
    operation_id: nullableString(),
    lease_ref: nullableString(),
    fencing_token: nullableToken('In a refusal the token that was presented'),
    high_water_mark: nullableToken('In a refusal the mark that it met'),
    size_bytes: nullableInteger(),
    digest: nullableString('SHA-256, lower-case hex'),
    etag_before: nullableString(),
    etag_after: nullableString(),
    duration_ms: nullableInteger(),
    fence_level: nullableOneOf(['token', 'incarnation', 'fleet'] as const),
    count: Type.Integer({ description: 'How many equal refusals this record stands for' }),
    previous_hash: Type.String(),
    hash: Type.String(),
    detail: Type.Union([Detail, Type.Null()], {
      description:
        "Of an administrator's decision, a deadlock, a hold that was taken off, an upgrade that waited and was not granted, or an end by the longest hold, the longest wait or the end of the session; null in all other records",
    }),
  },
  { title: 'AuditRecord' },
);
export type RecordBody = Static<typeof Record>;
export const RECORD_COLUMNS = Object.keys(Record.properties);

export const RecordPage = Type.Object({ records: Type.Array(Record), next_cursor: nullableString() });
export const VerifyQuery = Type.Object(
  { from_seq: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })) },
  { additionalProperties: false },
);
export const Chain = Type.Object(
  {
    valid: Type.Boolean(),
    records: Type.Integer(),
    first_seq: nullableInteger(),
    last_seq: nullableInteger(),
    head_hash: Type.String(),
    first_bad_seq: nullableInteger(),
    keyed_from_seq: nullableInteger(
      'From this record on a plain hash does not count. It never changes: one that did is a history made anew. null: there is no key, or nothing that a configured key has sealed says where',
    ),
  },
  { title: 'Chain' },
);
