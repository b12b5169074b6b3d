import { type Static, Type } from '@sinclair/typebox';
import { LIMITS } from '../../domain/limits.ts';
import {
  answerOneOf,
  CommittedWriteBody,
  Cursor,
  Limit,
  nullableInteger,
  nullableString,
  nullableToken,
  Reason,
  ResourceName,
  time,
  token,
} from './common.ts';
import { Lock } from './leases.ts';

const FENCE_LEVELS = ['token', 'incarnation', 'fleet'] as const;
const VOLUME_STATES = ['open', 'read_only', 'closed', 'unavailable', 'lock_only'] as const;

export const BreakBody = Type.Object(
  {
    resource: ResourceName,
    reason: Reason,
    grace_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: LIMITS.breakGraceMsMax, description: 'Default 0: at once' })),
    lease_refs: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: LIMITS.leaseIdBytesMax }), {
        minItems: 1,
        maxItems: LIMITS.breakLeasesMax,
        uniqueItems: true,
        description:
          'Who is meant, as GET /v1/locks shows its holders: nobody else is broken. Sent again, also after it was done, the break is answered as the first one was, for an hour. Default: whoever holds the lock when the request arrives',
      }),
    ),
  },
  { additionalProperties: false, title: 'BreakLock' },
);
export const BreakAnswer = Type.Object({
  resource: Type.String(),
  state: answerOneOf(['broken', 'breaking'] as const),
  high_water_mark: nullableToken(),
  deadline: nullableString('RFC 3339 UTC; null once broken'),
  leases: Type.Array(
    Type.Object({
      lease_ref: Type.String(),
      client_id: nullableString(),
      mode: answerOneOf(['exclusive', 'shared'] as const),
      fencing_token: nullableToken('null: it was not granted yet, and held only some of its names'),
      operation_id: nullableString(
        'Of the break: finds its records, and what came of it at /v1/operations; null when the lease was being ended already',
      ),
      committed: Type.Array(CommittedWriteBody, { description: 'What it had written, oldest first' }),
      committed_truncated: Type.Boolean({ description: 'True: it had written more; GET /v1/audit?lease_ref= lists all of it' }),
    }),
  ),
});
export type BreakAnswerBody = Static<typeof BreakAnswer>;

export const CoordinatorState = Type.Object({
  kind: answerOneOf(['embedded', 'zookeeper'] as const),
  state: answerOneOf(['connected', 'suspended', 'reconnected', 'lost'] as const, 'lost: there is no session, or none yet'),
  session_ms: nullableInteger(),
  proof_age_ms: nullableInteger('How long ago the request was sent whose answer proved the session'),
  reason: nullableString('Why nothing is granted although there is contact'),
});
export const VolumeReady = Type.Object({
  name: Type.String(),
  state: answerOneOf(VOLUME_STATES, 'unavailable also while it is not known whether the volume is still of this gateway: reads go on then'),
  fence_level: answerOneOf(FENCE_LEVELS),
  reason: nullableString(),
  total_bytes: nullableInteger('Of the file system, as of the last look; null: lock-only, or it does not answer'),
  free_bytes: nullableInteger('For anybody but root'),
  total_inodes: nullableInteger('null also where they are not counted'),
  free_inodes: nullableInteger('None left is 507 like no space left'),
});
export const Ready = Type.Object(
  {
    ready: Type.Boolean(),
    journal: Type.Object({
      healthy: Type.Boolean(),
      head_seq: Type.Integer(),
      head_hash: Type.String(),
      reason: nullableString('Why it takes no writes, or why writes wait for a rebase'),
    }),
    coordinator: CoordinatorState,
    volumes: Type.Array(VolumeReady),
  },
  { title: 'Readiness' },
);
export type ReadyBody = Static<typeof Ready>;

export const AdminSession = Type.Object(
  {
    session_ref: Type.String(),
    principal: Type.String(),
    client_id: nullableString(),
    state: answerOneOf(
      ['live', 'ending'] as const,
      'ending: its end is decided, and the journal does not have it, or that of one of its leases, yet',
    ),
    ttl_ms: Type.Integer(),
    expires_in_ms: Type.Integer(),
    lease_count: Type.Integer({ description: 'Of one that is ending: leases whose end the journal does not have yet' }),
  },
  { title: 'AdminSession', description: 'Without the session id, which is a secret of its holder' },
);
export const AdminSessions = Type.Object({ sessions: Type.Array(AdminSession), next_cursor: nullableString() });
export const SessionsQuery = Type.Object(
  { limit: Limit(LIMITS.listPageMax, LIMITS.listPageDefault), cursor: Cursor },
  { additionalProperties: false },
);
export const SessionRefParams = Type.Object({ session_ref: Type.String({ minLength: 1, maxLength: LIMITS.leaseIdBytesMax }) });

export const Doctor = Type.Object(
  {
    at: time('When it was looked at'),
    healthy: Type.Boolean(),
    findings: Type.Array(
      Type.Object({
        id: Type.String(),
        code: Type.String(),
        severity: answerOneOf(['info', 'warning', 'error'] as const),
        resource: nullableString(),
        evidence: Type.Unsafe<Readonly<Record<string, unknown>>>({ type: 'object', additionalProperties: true }),
        fix: nullableString('What the fix would do'),
      }),
    ),
    sessions: Type.Array(AdminSession, { description: `The first ${LIMITS.doctorSessionsMax}; GET /v1/admin/sessions has all, page by page` }),
    locks: Type.Array(Lock, { description: `The first ${LIMITS.doctorLocksMax}; GET /v1/locks has all, page by page` }),
    wait_for: Type.Array(Type.Object({ waiter_lease_ref: Type.String(), holder_lease_ref: Type.String(), resource: Type.String() })),
    coordinator: CoordinatorState,
    volumes: Type.Array(VolumeReady),
  },
  { title: 'Doctor' },
);
export type DoctorBody = Static<typeof Doctor>;
export const FixBody = Type.Object(
  {
    finding_id: Type.String({ minLength: 1, maxLength: 256 }),
    dry_run: Type.Optional(Type.Boolean({ description: 'Default false' })),
    force: Type.Optional(
      Type.Boolean({ description: 'Also where evidence.needs_force says that the client may be alive; fenced first. Needs a reason. Default false' }),
    ),
    reason: Type.Optional(Reason),
  },
  { additionalProperties: false, title: 'FixFinding' },
);
export const FixAnswer = Type.Object({ dry_run: Type.Boolean(), steps: Type.Array(Type.String()) });

export const Fence = Type.Object(
  {
    resource: Type.String(),
    high_water_mark: nullableToken(),
    lease_ref: nullableString(),
    principal: nullableString(),
    ever_named: Type.Boolean({ description: 'It was ever leased by name (policy once_leased)' }),
    floor: nullableToken('Every token up to this one is void on the volume'),
  },
  { title: 'Fence' },
);
export const ReasonBody = Type.Object({ reason: Reason }, { additionalProperties: false });
export const RebaseAnswer = Type.Object({ base: token(), volumes: Type.Array(Type.String()) });
export const VolumeNameParams = Type.Object({ name: Type.String({ minLength: 1, maxLength: LIMITS.volumeNameMax }) });
export const MountAnswer = Type.Object(
  {
    file_system: Type.String({ description: 'Of the mount table: ext4, nfs4, ...' }),
    network: Type.Boolean({ description: 'Not known to be local: every call has a deadline, and an error proves nothing' }),
    source: Type.String({ description: 'What is mounted: a device, or server:/export' }),
    options: Type.Array(Type.String(), { description: 'As in effect' }),
    warnings: Type.Array(Type.Object({ option: Type.String(), weakens: Type.String(), remedy: Type.String() }), {
      description: 'Options that weaken what the volume promises',
    }),
    note: nullableString(),
  },
  { title: 'Mount' },
);

export const AdminVolumes = Type.Object({
  volumes: Type.Array(
    Type.Object(
      {
        name: Type.String(),
        state: answerOneOf(VOLUME_STATES),
        fence_level: answerOneOf(FENCE_LEVELS),
        reason: nullableString(),
        path: nullableString(),
        incarnation: nullableString(),
        read_only: Type.Boolean(),
        mount: Type.Union([MountAnswer, Type.Null()]),
      },
      { title: 'AdminVolume' },
    ),
  ),
});
