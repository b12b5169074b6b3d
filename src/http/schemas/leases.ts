import { type Static, Type } from '@sinclair/typebox';
import type { ErrorCode } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import {
  answerOneOf,
  Cursor,
  CycleMemberBody,
  Limit,
  nullableInteger,
  nullableObject,
  nullableOneOf,
  nullableString,
  nullableToken,
  oneOf,
  ResourceName,
  time,
} from './common.ts';

const MODES = ['exclusive', 'shared'] as const;
const STATES = ['waiting', 'held', 'ending', 'released', 'expired', 'broken', 'lost', 'cancelled'] as const;
const ms = (maximum: number, description: string, minimum = 0) => Type.Integer({ minimum, maximum, description });
/** In requests, `null` is the same as leaving a member out. */
const optional = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

/** Its bounds belong to the volume, and are refused as ttl_out_of_range. */
const leaseTtl = (otherwise: string) =>
  Type.Integer({
    description: `${otherwise}. From ${LIMITS.leaseTtlMsMin} to ${LIMITS.leaseTtlMsMax}, or as the volume says; outside of that ttl_out_of_range, with the bounds`,
  });

export const LeaseId = Type.String({ minLength: 1, maxLength: LIMITS.leaseIdBytesMax, description: 'Secret of the holder' });
export const SessionId = Type.String({ minLength: 1, maxLength: LIMITS.leaseIdBytesMax, description: 'Secret of the client' });
export const LeaseParams = Type.Object({ lease_id: LeaseId });
export const SessionParams = Type.Object({ session_id: SessionId });

export const AcquireBody = Type.Object(
  {
    resource: Type.Optional(ResourceName),
    resources: Type.Optional(
      Type.Array(ResourceName, { minItems: 2, maxItems: LIMITS.leaseResourcesMax, description: 'Taken all or nothing, in place of "resource"' }),
    ),
    mode: Type.Optional(oneOf(MODES, 'Default exclusive')),
    ttl_ms: optional(leaseTtl(`Default ${LIMITS.leaseTtlMsDefault}`)),
    wait_ms: optional(ms(LIMITS.leaseWaitMsMax, 'How long this request waits; default 0')),
    max_wait_ms: optional(
      ms(Number.MAX_SAFE_INTEGER, 'Ends the whole wait. Of requests of one session that wait together those of the first count', 1),
    ),
    max_hold_ms: optional(ms(Number.MAX_SAFE_INTEGER, 'Ends the lease, however it is renewed; at most what its volume allows', LIMITS.leaseTtlMsMin)),
    priority: optional(Type.Integer({ minimum: 0, maximum: 9, description: 'Default 5' })),
    client_id: optional(Type.String({ maxLength: LIMITS.clientIdBytesMax })),
    session_id: optional(SessionId),
    hold_id: optional(Type.String({ minLength: 1, maxLength: LIMITS.leaseIdBytesMax, description: 'Makes a retried request count once' })),
    lock_delay_ms: optional(ms(LIMITS.lockDelayMsMax, 'Hold-back after an unclean end; default 0')),
    metadata: optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: `Up to ${LIMITS.leaseMetadataBytesMax} bytes of JSON, for the holder. Its reason, when that is a text, is shown to whoever may look at the lock`,
      }),
    ),
  },
  { additionalProperties: false, title: 'AcquireLease' },
);

const UNKNOWN =
  'Empty, and mode, session_id, priority and ttl_ms null, of a wait that a restart ended and the journal does not know: its id alone says that it was one';
export const Lease = Type.Object(
  {
    lease_id: Type.String(),
    lease_ref: Type.String({ description: 'Names the lease to everybody else' }),
    resource: nullableString('null for a lease over several'),
    resources: Type.Array(Type.String(), { description: UNKNOWN }),
    mode: nullableOneOf(MODES),
    state: answerOneOf(STATES),
    fencing_token: nullableToken(),
    signed_token: nullableString(),
    client_id: nullableString(),
    session_id: nullableString(
      'One that was made for a lease may be named like any other, and ends with the last of its leases and waits; then it is session_not_found',
    ),
    priority: nullableInteger(),
    hold_count: Type.Integer(),
    hold_id: nullableString(),
    ttl_ms: nullableInteger(),
    expires_in_ms: Type.Integer(),
    hold_expires_in_ms: nullableInteger("Of a held one with a longest hold, its own or the volume's: what is left of that, however it is renewed"),
    lease_expires_at: nullableString('RFC 3339 UTC'),
    granted_at: nullableString('RFC 3339 UTC'),
    queue_position: nullableInteger('1 = next'),
    acquired_znode_path: nullableString(),
    reason: nullableString(
      'Why it ended. Of a held one: `breaking` while an administrator ends it after a grace, expires_in_ms goes no further; why its upgrade failed, ' +
        '`upgrade_lost` when that waited at a restart of the gateway. The next conversion takes the latter away',
    ),
    cycle: Type.Union([Type.Array(CycleMemberBody), Type.Null()], {
      description: 'The waits that went round when it, or its upgrade, gave way to a deadlock (reason `deadlock`)',
    }),
    metadata: nullableObject(),
  },
  { title: 'Lease' },
);
export type LeaseBody = Static<typeof Lease>;

export const WaitQuery = Type.Object(
  { wait_ms: Type.Optional(ms(LIMITS.leaseWaitMsMax, 'How long to wait for a change of state')) },
  { additionalProperties: false },
);
export const ReleaseQuery = Type.Object(
  { hold_id: Type.Optional(Type.String({ minLength: 1, maxLength: LIMITS.leaseIdBytesMax })), all: Type.Optional(Type.Boolean()) },
  { additionalProperties: false },
);
export const RenewBody = Type.Object(
  { ttl_ms: optional(leaseTtl('Time to live from now on; as it was when absent')) },
  { additionalProperties: false, title: 'RenewLease' },
);
export const ConvertBody = Type.Object(
  { mode: oneOf(MODES, 'Which one is never guessed: an upgrade waits, a downgrade gives up the right to write') },
  { additionalProperties: false, title: 'ConvertLease' },
);

export const CreateSessionBody = Type.Object(
  {
    ttl_ms: optional(
      Type.Integer({
        description: `Default ${LIMITS.leaseTtlMsDefault}. From ${LIMITS.leaseTtlMsMin} to ${LIMITS.leaseTtlMsMax}; outside of that ttl_out_of_range, with the bounds`,
      }),
    ),
    client_id: optional(Type.String({ maxLength: LIMITS.clientIdBytesMax })),
  },
  { additionalProperties: false, title: 'CreateSession' },
);
export const Session = Type.Object(
  { session_id: Type.String(), session_ref: Type.String(), ttl_ms: Type.Integer(), expires_in_ms: Type.Integer(), lease_count: Type.Integer() },
  { title: 'Session' },
);
export const Heartbeat = Type.Object(
  {
    expires_in_ms: Type.Integer({
      description: 'How long what the session holds lives from now on; over ZooKeeper at most as long as the coordinator’s proof goes',
    }),
    lost: Type.Array(
      Type.String({
        description: 'Leases and waits of the session that ended within the hour without the doing of its client, again with every heartbeat',
      }),
    ),
  },
  { title: 'Heartbeat' },
);
/** A heartbeat says nothing but that it comes. */
export const HeartbeatBody = Type.Object({}, { additionalProperties: false, title: 'EmptyBody' });
export const HeartbeatsBody = Type.Object(
  { session_ids: Type.Array(SessionId, { minItems: 1, maxItems: LIMITS.heartbeatBatchMax }) },
  { additionalProperties: false },
);
export const Heartbeats = Type.Object({
  sessions: Type.Array(
    Type.Object({
      session_id: Type.String(),
      expires_in_ms: nullableInteger('null when there is no such session'),
      lost: Type.Array(Type.String()),
      code: nullableString('Why there is no heartbeat'),
    }),
  ),
});

export const Party = Type.Object(
  {
    lease_ref: Type.String(),
    client_id: nullableString(),
    since: time('Granted, or in line since'),
    expires_in_ms: Type.Integer(),
    ttl_ms: Type.Integer({ description: 'Time to live at each renewal' }),
    lock_delay_ms: Type.Integer({ description: 'For how long nobody is granted after an unclean end' }),
    priority: Type.Integer(),
    znode: nullableString(),
    reason: nullableString(
      `What its holder says it is for: reason of its metadata when that is a text, the first ${LIMITS.leaseReasonShownMax} characters of it`,
    ),
  },
  { title: 'Party' },
);
export const Lock = Type.Object(
  {
    resource: Type.String(),
    mode: nullableOneOf(MODES),
    high_water_mark: nullableToken('Highest token granted here'),
    holders: Type.Array(Party),
    waiters: Type.Array(Party, { description: 'In the order in which they will be served; first a holder that asks to become exclusive' }),
    queue_length: Type.Integer(),
    wait_estimate_ms: nullableInteger(
      'For who would come now and ask for it alone: the average hold of this gateway for each turn before it, for the present holder at least as long ' +
        'again as it has held; no longer than max_hold_ms and a grace allow. An estimate, no promise. null: nothing has been held yet, or another recipe holds',
    ),
    held_back_ms: Type.Integer({ description: 'What is left of a lock-delay; 0: not held back' }),
    znode_path: Type.String(),
    foreign_contenders: Type.Array(Type.String(), { description: 'Nodes of other lock recipes at the coordinator; they hold without a token' }),
    fence_level: nullableOneOf(
      ['token', 'incarnation', 'fleet'] as const,
      'What protects writes now; token while another recipe holds; null for a lock-only volume',
    ),
  },
  { title: 'Lock' },
);
export type LockBody = Static<typeof Lock>;
export const LockList = Type.Object({ locks: Type.Array(Lock), next_cursor: nullableString() });
export const LocksQuery = Type.Object(
  {
    volume: Type.Optional(Type.String({ minLength: 1, maxLength: LIMITS.volumeNameMax })),
    state: Type.Optional(oneOf(['held', 'waiting'] as const)),
    older_than_ms: Type.Optional(ms(Number.MAX_SAFE_INTEGER, 'Only what is held or waits for longer')),
    limit: Limit(LIMITS.lockPageMax, LIMITS.lockPageMax),
    cursor: Cursor,
  },
  { additionalProperties: false },
);

export const WatchQuery = Type.Object(
  {
    volume: Type.Optional(Type.String({ minLength: 1, maxLength: LIMITS.volumeNameMax })),
    path_prefix: Type.Optional(Type.String({ maxLength: LIMITS.pathBytesMax })),
  },
  { additionalProperties: false },
);
/** For the document: the stream itself is text. */
export const EventStream = Type.String({
  description:
    'Server-sent events: waiting, granted, converted, released, expired, breaking, broken, lost, cancelled, deadlock, suspended, reconnected; reset when it cannot be resumed. ' +
    'waiting with the reason upgrade is a holder that asks to become exclusive; it ends with converted (mode shared and a reason: it was given up, or lost), deadlock, or the end of the lease. ' +
    'data: {"seq","at","resource","lease_ref","client_id","mode","fencing_token","reason","cycle"}; cycle is null but of a deadlock',
});
export const WatchHeaders = Type.Object({ 'Last-Event-ID': Type.Optional(Type.String({ description: 'seq of the last event seen' })) });

/** Of whatever ends a lease or a session. */
export const END_IN_DOUBT =
  'A 503 outcome_unknown names what was to end (lease_id, session_ref, lease_ref, or resource and operation_id): the end is in effect, and nothing is written under it any more, but the journal does not have it yet. The gateway tries again by itself, and the same request answers when it is done; a start of the gateway before that could bring the lease back.';

/** Of whatever names a session. */
export const SESSION_ENDING =
  'Of a session whose end is decided and may not be told yet: 503 volume_unavailable while a write under one of its leases is being finished, journal_unavailable while the journal does not have the end. Nobody waits for that for longer than a moment.';

export const LEASE_CODES: readonly ErrorCode[] = [
  'cross_origin',
  'lease_not_found',
  'not_lease_owner',
  'coordinator_suspended',
  'coordinator_unavailable',
  'journal_unavailable',
  'outcome_unknown',
  'digest_mismatch',
  'incomplete_body',
  'upload_timeout',
  'body_too_large',
  'unsupported_media_type',
];
export const SESSION_CODES: readonly ErrorCode[] = [
  'cross_origin',
  'session_not_found',
  'session_ended',
  'coordinator_suspended',
  'coordinator_unavailable',
  'journal_unavailable',
  'volume_unavailable',
  'outcome_unknown',
  'digest_mismatch',
  'incomplete_body',
  'upload_timeout',
  'body_too_large',
  'unsupported_media_type',
];
