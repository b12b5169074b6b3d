import { PassThrough } from 'node:stream';
import pino from 'pino';
import type { AuditDraft, AuditRecord } from '../../src/domain/audit-record.ts';
import { GatewayError, refuse } from '../../src/domain/errors.ts';
import { fencingToken } from '../../src/domain/fencing-token.ts';
import type { LockEvent, LockReset } from '../../src/domain/lock-events.ts';
import type { Principal, Role } from '../../src/domain/principal.ts';
import type { VolumePolicy } from '../../src/domain/volume.ts';
import type { HttpDeps, HttpSettings } from '../../src/http/http-deps.ts';
import { FakeClock, seededRandom } from './fake-clock.ts';
import { FakeLocks, sessionView } from './fake-locks.ts';
import { FakeVolumes } from './fake-volumes.ts';
import { FakeWriter } from './fake-writer.ts';

/** Doubles of the ports of the HTTP room: small, honest (they read bodies, judge conditions as the real ones do, close what they open), and recording. */

export const anybody: Principal = { name: 'anonymous', roles: new Set<Role>(), scopes: [], authenticated: false };

export function policyOf(name: string, changes: Partial<VolumePolicy> = {}): VolumePolicy {
  return {
    name,
    path: `/srv/${name}`,
    tokens: 'issued',
    requireToken: 'false',
    rangeWrites: 'copy-on-write',
    onCoordinatorLoss: 'refuse',
    hardLinks: 'refuse',
    names: 'portable',
    attributes: 'keep',
    readOnly: false,
    lease: { ttlMsMin: 1_000, ttlMsMax: 3_600_000, maxHoldMs: null, lockDelayMs: 0, infinite: false },
    limits: { bodyBytes: null, stagedBytes: null, inFlight: 8, queueLength: 1_000 },
    ...changes,
  };
}

export class FakeRefusals {
  readonly durable: AuditDraft[] = [];
  readonly early: AuditDraft[] = [];
  flushes = 0;
  failure: GatewayError | null = null;

  async refused(record: AuditDraft): Promise<void> {
    if (this.failure !== null) throw this.failure;
    this.durable.push(record);
  }
  refusedEarly(record: AuditDraft): void {
    this.early.push(record);
  }
  async flush(): Promise<void> {
    this.flushes += 1;
  }
}

export const record = (seq: number, changes: Partial<AuditRecord> = {}): AuditRecord => ({
  seq,
  at: '2026-01-01T00:00:00.000Z',
  action: 'put',
  volume: 'demo',
  path: 'a.txt',
  outcome: 'committed',
  code: null,
  status: 201,
  principal: 'anonymous',
  clientId: null,
  remoteAddress: '127.0.0.1',
  requestId: 'req_1',
  operationId: 'op_1',
  leaseRef: 'lr_1',
  fencingToken: fencingToken(4103n),
  highWaterMark: null,
  sizeBytes: 3,
  digest: null,
  etagBefore: null,
  etagAfter: '"1-2-3"',
  durationMs: 4,
  fenceLevel: 'incarnation',
  count: 1,
  previousHash: '00',
  hash: '01',
  ...changes,
});

export interface FakeDeps extends HttpDeps {
  readonly writer: FakeWriter;
  readonly volumes: FakeVolumes;
  readonly locks: FakeLocks;
  readonly refusals: FakeRefusals;
  readonly logLines: string[];
  readonly clock: FakeClock;
  readonly deadlineController: AbortController;
  events: HttpDeps['events'];
  draining: boolean;
  principal: Principal | GatewayError;
  records: AuditRecord[];
  auditQueries: unknown[];
  digest: string | null;
  feed: (LockEvent | LockReset)[];
}

export const SETTINGS: HttpSettings = {
  tls: null,
  authenticated: false,
  allowedHosts: [],
  allowedOrigins: [],
  bodyBytesMax: null,
  rateLimitPerSecond: 0,
  uploadsPerPrincipalMax: 64,
  uploadIdleMs: 30_000,
  uploadMinBytesPerSecond: 1_024,
  eventLoopDelayMsMax: 0,
};

export function fakeDeps(settings: Partial<HttpSettings> = {}): FakeDeps {
  const logLines: string[] = [];
  const sink = new PassThrough();
  sink.on('data', (line: Buffer) => logLines.push(line.toString()));
  const deadlineController = new AbortController();
  const deps: FakeDeps = {
    writer: new FakeWriter(),
    volumes: new FakeVolumes(policyOf('demo'), policyOf('other'), policyOf('jobs', { path: null })),
    locks: new FakeLocks(),
    refusals: new FakeRefusals(),
    clock: new FakeClock(),
    random: seededRandom(1),
    log: pino({ level: 'debug' }, sink),
    logLines,
    deadlineController,
    deadline: deadlineController.signal,
    draining: false,
    principal: anybody,
    records: [record(2), record(1)],
    auditQueries: [],
    digest: null,
    feed: [],
    settings: { ...SETTINGS, ...settings },
    authenticate: () => {
      if (deps.principal instanceof GatewayError) throw deps.principal;
      return deps.principal;
    },
    metricsText: async () => 'up 1\n',
    isDraining: () => deps.draining,
    digests: { digestOf: async () => deps.digest },
    events: {
      watch: async (_caller, scope, _afterSeq, _signal) => {
        if (scope.of === 'session' && scope.sessionId === 'gone') throw refuse('session_not_found', 'There is no such session.');
        return (async function* () {
          yield* deps.feed;
        })();
      },
    },
    journal: {
      audit: async (filter, page) => {
        deps.auditQueries.push({ filter, page });
        return { records: deps.records, nextCursor: null };
      },
      async *auditStream(filter, order) {
        deps.auditQueries.push({ filter, order });
        yield* deps.records;
      },
      verify: async () => ({ valid: true, records: 2, firstSeq: 1, lastSeq: 2, headHash: '01', firstBadSeq: null, keyedFromSeq: 1 }),
      operation: async (key) =>
        key.by === 'operation_id' && key.operationId === 'op_1'
          ? {
              operationId: 'op_1',
              action: 'put',
              resource: 'demo/a.txt',
              outcome: 'committed',
              code: null,
              at: '2026-01-01T00:00:00.000Z',
              etag: '"1-2-3"',
              fencingToken: fencingToken(4103n),
            }
          : null,
    },
    health: {
      readiness: () => ({
        ready: true,
        journal: { healthy: true, headSeq: 2, headHash: '01', reason: null },
        coordinator: { kind: 'embedded', state: 'connected', sessionMs: null, proofAgeMs: null, reason: null },
        volumes: [{ name: 'demo', state: 'open', fenceLevel: 'incarnation', reason: null, space: null }],
      }),
    },
    administration: {
      breakLock: async (_caller, { resource, graceMs }) => ({
        resource,
        state: graceMs === 0 ? 'broken' : 'breaking',
        highWaterMark: fencingToken(9n),
        deadline: null,
        leases: [
          {
            leaseRef: 'lr_1',
            clientId: null,
            mode: 'exclusive',
            fencingToken: fencingToken(8n),
            operationId: 'op_2',
            committed: { writes: [], truncated: false },
          },
        ],
      }),
      doctor: async () => ({
        at: '2026-01-01T00:00:00.000Z',
        healthy: true,
        findings: [],
        sessions: [sessionView],
        locks: [],
        waitFor: [],
        coordinator: { kind: 'embedded', state: 'connected', sessionMs: null, proofAgeMs: null, reason: null },
        volumes: [],
      }),
      fix: async (_caller, { findingId, dryRun, force, reason }) => {
        if (force && reason === null) throw refuse('invalid_request', 'Why?');
        if (findingId === 'gone') throw refuse('not_found', 'There is no such finding.');
        return { dryRun, steps: ['raise the mark'] };
      },
      fence: async (resource) => ({ resource, highWaterMark: fencingToken(9n), leaseRef: null, principal: null, everNamed: false, floor: null }),
      rebase: async () => ({ base: fencingToken(10n), volumes: ['demo'] }),
      adopt: async (_caller, name) => ({ name, state: 'open', fenceLevel: 'incarnation', reason: null, space: null }),
      volumes: () => [
        {
          name: 'demo',
          state: 'open',
          fenceLevel: 'incarnation',
          reason: null,
          space: null,
          path: '/srv/demo',
          incarnation: 'inc1',
          readOnly: false,
          mount: null,
        },
      ],
    },
  };
  return deps;
}

export function principal(name: string, roles: readonly Role[], scopes: readonly string[] = []): Principal {
  return { name, roles: new Set(roles), scopes, authenticated: true };
}
