import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { LIMITS } from '../domain/limits.ts';

/**
 * Every environment variable of the gateway, with its form, its default and one sentence of explanation. The start, the
 * table in `docs/configuration.md` and `.env.example` are all held to this one object. No default: unset.
 */

const milliseconds = (minimum: number, maximum: number, byDefault: number, description: string) =>
  Type.Integer({ minimum, maximum, default: byDefault, description });
const file = (description: string) => Type.String({ minLength: 1, description });

/** A shorter wait would take a volume from an owner that is only slow: its heartbeat is written every second (B35). */
const TAKEOVER_MS_MIN = 5 * LIMITS.ownerHeartbeatMs;
/** Five ticks of a ZooKeeper server with the usual tick of two seconds; a shorter session flaps (trap N8, B35). */
const ZOOKEEPER_SESSION_MS_MIN = 10_000;
const DAY_MS = 86_400_000;

export const ENVIRONMENT_SCHEMA = Type.Object(
  {
    FENCEGATE_HOST: Type.String({
      minLength: 1,
      default: '127.0.0.1',
      description: 'Address to listen on. Any other than loopback needs FENCEGATE_AUTH_FILE.',
    }),
    FENCEGATE_PORT: Type.Integer({ minimum: 0, maximum: 65_535, default: 8080, description: 'Port to listen on; 0 takes a free one.' }),
    FENCEGATE_DATA_DIR: Type.String({
      minLength: 1,
      default: './data',
      description: 'Journal and identity of this gateway. Must be on a local disk.',
    }),
    FENCEGATE_VOLUMES: Type.String({
      minLength: 1,
      description: 'name=path,name=path; "name=" without a path is lock-only. Unset: one volume "demo" with sample files under the data directory.',
    }),
    FENCEGATE_COORDINATOR: Type.Union([Type.Literal('embedded'), Type.Literal('zookeeper')], {
      default: 'embedded',
      description: 'Where fencing tokens come from: this gateway itself, or a ZooKeeper ensemble.',
    }),
    FENCEGATE_ZOOKEEPER_CONNECT: Type.String({
      minLength: 1,
      description: 'host:port,host:port of the ensemble, with a path (chroot) at the end if you like.',
    }),
    FENCEGATE_ZOOKEEPER_ROOT: Type.String({
      pattern: '^(/[^/]+)+$',
      errorMessage: 'an absolute path such as /locks',
      default: '/locks',
      description: 'Node under which the locks live.',
    }),
    FENCEGATE_ZOOKEEPER_SESSION_MS: milliseconds(ZOOKEEPER_SESSION_MS_MIN, 600_000, 15_000, 'Session time with the ensemble.'),
    FENCEGATE_ZOOKEEPER_AUTH_FILE: file('File with user:password for digest authentication.'),
    FENCEGATE_TLS_CERT: file('Certificate chain, PEM. Goes together with FENCEGATE_TLS_KEY.'),
    FENCEGATE_TLS_KEY: file('Private key, PEM.'),
    FENCEGATE_TLS_CLIENT_CA: file('Certificate authority of clients, PEM: mutual TLS. The common name of a client certificate must be a principal.'),
    FENCEGATE_ALLOWED_ORIGINS: Type.String({ minLength: 1, description: 'Further origins, comma separated, from which a browser may write.' }),
    FENCEGATE_ALLOWED_HOSTS: Type.String({ minLength: 1, description: 'Further Host names, comma separated, accepted without authentication.' }),
    FENCEGATE_GRPC_PORT: Type.Integer({
      minimum: 0,
      maximum: 65_535,
      default: 0,
      description: 'Port of the gRPC lock service, on the same address; 0 = off.',
    }),
    FENCEGATE_LOG_LEVEL: Type.Union(
      (['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const).map((level) => Type.Literal(level)),
      { default: 'info', description: 'Least severe level that is logged.' },
    ),
    FENCEGATE_BODY_MAX_BYTES: Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Largest body of one write. Unset: no limit.',
    }),
    FENCEGATE_RATE_LIMIT_PER_SECOND: Type.Integer({
      minimum: 0,
      maximum: 1_000_000,
      default: 0,
      description: 'Requests per second and principal; 0 = off.',
    }),
    FENCEGATE_UPLOADS_MAX: Type.Integer({ minimum: 1, maximum: 100_000, default: 64, description: 'Uploads in flight per principal.' }),
    FENCEGATE_UPLOAD_IDLE_MS: milliseconds(1_000, 3_600_000, 30_000, 'An upload that sends nothing for so long is ended.'),
    FENCEGATE_UPLOAD_MIN_BYTES_PER_SECOND: Type.Integer({
      minimum: 0,
      maximum: 1_000_000_000,
      default: 1024,
      description: 'An upload slower than this is ended; 0 = no minimum.',
    }),
    FENCEGATE_DRAIN_MS: milliseconds(0, 3_600_000, 30_000, 'How long a stopping gateway lets running requests finish.'),
    FENCEGATE_TAKEOVER_AFTER_MS: milliseconds(
      TAKEOVER_MS_MIN,
      DAY_MS,
      15_000,
      'A predecessor over the same data directory whose heartbeat is older than this is superseded.',
    ),
    FENCEGATE_AUTH_FILE: file('YAML file with the principals. Unset: no authentication, loopback only.'),
    FENCEGATE_INSECURE: Type.Boolean({ default: false, description: 'true: listen on other addresses than loopback without authentication.' }),
    FENCEGATE_CONFIG: file('YAML file with the settings of volumes, the signing keys and the audit log.'),
  },
  { additionalProperties: false },
);

export type EnvironmentValues = Static<typeof ENVIRONMENT_SCHEMA>;
export type EnvironmentName = keyof EnvironmentValues;

/** The variables in the order of the schema. */
export const ENVIRONMENT_VARIABLES = Object.entries(ENVIRONMENT_SCHEMA.properties) as readonly (readonly [EnvironmentName, TSchema])[];

/** Names that clients read. The gateway knows them, so that one shell can serve both, and ignores them. */
export const CLIENT_VARIABLES: readonly string[] = [
  'FENCEGATE_URL',
  'FENCEGATE_AUTH_TOKEN',
  'FENCEGATE_CA_FILE',
  'FENCEGATE_CERT_FILE',
  'FENCEGATE_KEY_FILE',
  'FENCEGATE_RESOURCE',
  'FENCEGATE_LEASE_ID',
  'FENCEGATE_FENCING_TOKEN',
];
