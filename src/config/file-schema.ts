import { type Static, Type } from '@sinclair/typebox';
import { LIMITS } from '../domain/limits.ts';

/** The YAML file of `FENCEGATE_CONFIG`: what is too long for environment variables. Unknown keys are refused. */

const closed = { additionalProperties: false } as const;
const choice = <const T extends readonly string[]>(...values: T) => Type.Union(values.map((value) => Type.Literal(value as T[number])));
const bytes = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });

const LOCK_DELAY_MS_MAX = 3_600_000;
const IN_FLIGHT_MAX = 128;
const KEEP_DAYS_MAX = 36_500;
/** A bound below this would throw away records faster than an auditor could read them. */
const KEEP_BYTES_MIN = 1_048_576;

const VolumeSettings = Type.Object(
  {
    path: Type.Optional(Type.Union([Type.String({ minLength: 1 }), Type.Null()])),
    tokens: Type.Optional(choice('issued', 'signed')),
    require_token: Type.Optional(Type.Union([Type.Boolean(), Type.Literal('once_leased')])),
    range_writes: Type.Optional(choice('copy-on-write', 'in-place')),
    small_bodies: Type.Optional(Type.Literal('file')),
    on_coordinator_loss: Type.Optional(choice('refuse', 'finish_held')),
    hard_links: Type.Optional(choice('refuse', 'split')),
    names: Type.Optional(choice('portable', 'any')),
    attributes: Type.Optional(choice('keep', 'drop')),
    read_only: Type.Optional(Type.Boolean()),
    lease: Type.Optional(
      Type.Object(
        {
          // The lower bound is not a matter of taste: a lease shorter than a second ends while its first write is under way (B35, R15).
          ttl_ms_min: Type.Optional(Type.Integer({ minimum: LIMITS.leaseTtlMsMin, maximum: LIMITS.leaseTtlMsMax })),
          ttl_ms_max: Type.Optional(Type.Integer({ minimum: LIMITS.leaseTtlMsMin, maximum: LIMITS.leaseTtlMsMax })),
          max_hold_ms: Type.Optional(Type.Integer({ minimum: LIMITS.leaseTtlMsMin, maximum: Number.MAX_SAFE_INTEGER })),
          lock_delay_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: LOCK_DELAY_MS_MAX })),
          infinite: Type.Optional(Type.Boolean()),
        },
        closed,
      ),
    ),
    limits: Type.Optional(
      Type.Object(
        {
          body_bytes: Type.Optional(bytes),
          staged_bytes: Type.Optional(bytes),
          in_flight: Type.Optional(Type.Integer({ minimum: 1, maximum: IN_FLIGHT_MAX })),
          queue_length: Type.Optional(Type.Integer({ minimum: 0, maximum: 100_000 })),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type VolumeSettings = Static<typeof VolumeSettings>;

export const FILE_SCHEMA = Type.Object(
  {
    volumes: Type.Optional(Type.Record(Type.String(), VolumeSettings)),
    signing_keys: Type.Optional(
      Type.Array(Type.Object({ id: Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$' }), file: Type.String({ minLength: 1 }) }, closed), {
        maxItems: 100,
      }),
    ),
    audit: Type.Optional(
      Type.Object(
        {
          keep_days: Type.Optional(Type.Integer({ minimum: LIMITS.auditKeepDaysMin, maximum: KEEP_DAYS_MAX })),
          keep_bytes: Type.Optional(Type.Integer({ minimum: KEEP_BYTES_MIN, maximum: Number.MAX_SAFE_INTEGER })),
          key_file: Type.Optional(Type.String({ minLength: 1 })),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type FileSettings = Static<typeof FILE_SCHEMA>;
