import { createHash } from 'node:crypto';
import { PassThrough } from 'node:stream';
import pino from 'pino';
import type { AuditDraft, AuditRecord } from '../../src/domain/audit-record.ts';
import { GatewayError, refuse } from '../../src/domain/errors.ts';
import { fencingToken } from '../../src/domain/fencing-token.ts';
import { etagOf, type TargetFacts } from '../../src/domain/file-facts.ts';
import type { LeaseView, LockService, SessionView } from '../../src/domain/lock-api.ts';
import type { LockEvent, LockReset } from '../../src/domain/lock-events.ts';
import type { Principal, Role } from '../../src/domain/principal.ts';
import { type Resource, resourceOf } from '../../src/domain/resource.ts';
import type { OpenedFile, Volume, VolumePolicy, Volumes } from '../../src/domain/volume.ts';
import type { Body, UploadBody, WriteAnswer, WriteEnvelope, Writer } from '../../src/domain/write.ts';
import type { HttpDeps, HttpSettings } from '../../src/http/http-deps.ts';
import { FakeClock, seededRandom } from './fake-clock.ts';

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
    readOnly: false,
    lease: { ttlMsMin: 1_000, ttlMsMax: 3_600_000, maxHoldMs: null, lockDelayMs: 0, infinite: false },
    limits: { bodyBytes: null, stagedBytes: null, inFlight: 8, queueLength: 1_000 },
    ...changes,
  };
}

export interface WriterCall {
  readonly verb: keyof Writer;
  readonly envelope: WriteEnvelope;
  readonly resource: Resource | null;
  readonly bytes: Buffer;
  readonly files: readonly { readonly filename: string | undefined; readonly bytes: Buffer }[];
  readonly extra: unknown;
}

/** A writer that stores nothing but what it was told. `refusal` is thrown before the body is opened, as admission does. */
export class FakeWriter implements Writer {
  readonly calls: WriterCall[] = [];
  refusal: GatewayError | null = null;
  answer: WriteAnswer | null = null;
  /** Resolves when the body is about to be opened. */
  onAdmitted: () => Promise<void> = async () => undefined;
  onFailure: (error: unknown) => void = () => undefined;
  onChunk: (chunk: Uint8Array) => void = () => undefined;

  async putFile(envelope: WriteEnvelope, resource: Resource, body: Body) {
    return this.#stream('putFile', envelope, resource, body, null);
  }
  async patchFile(envelope: WriteEnvelope, resource: Resource, target: unknown, offset: number | null, body: Body) {
    return this.#stream('patchFile', envelope, resource, body, { target, offset });
  }
  async deleteFile(envelope: WriteEnvelope, resource: Resource) {
    return this.#plain('deleteFile', envelope, resource, 204);
  }
  async makeDirectory(envelope: WriteEnvelope, resource: Resource) {
    return this.#plain('makeDirectory', envelope, resource, 201);
  }
  async removeDirectory(envelope: WriteEnvelope, resource: Resource) {
    return this.#plain('removeDirectory', envelope, resource, 204);
  }
  async moveFile(envelope: WriteEnvelope, request: { readonly to: Resource }) {
    return this.#plain('moveFile', envelope, request.to, 201, request);
  }
  async copyFile(envelope: WriteEnvelope, request: { readonly to: Resource }) {
    return this.#plain('copyFile', envelope, request.to, 201, request);
  }

  async uploadFiles(envelope: WriteEnvelope, volume: string, directory: Resource | null, body: UploadBody): Promise<WriteAnswer> {
    await this.#admit();
    const files: { filename: string | undefined; bytes: Buffer }[] = [];
    try {
      for await (const part of body.open()) files.push({ filename: part.filename, bytes: await this.#collect(part.body) });
    } catch (error) {
      this.onFailure(error);
      throw error;
    }
    this.calls.push({ verb: 'uploadFiles', envelope, resource: directory, bytes: Buffer.alloc(0), files, extra: { volume } });
    return this.answer ?? { status: 201, headers: headersOf(null), body: { operation_id: 'op_1', files: [] }, replayed: false };
  }

  async #stream(verb: keyof Writer, envelope: WriteEnvelope, resource: Resource, body: Body, extra: unknown): Promise<WriteAnswer> {
    await this.#admit();
    let bytes: Buffer;
    try {
      bytes = await this.#collect(body.open());
    } catch (error) {
      this.onFailure(error);
      throw error;
    }
    this.calls.push({ verb, envelope, resource, bytes, files: [], extra });
    const digest = createHash('sha256').update(bytes).digest('hex');
    return this.answer ?? { status: 201, headers: headersOf('"1-2-3"'), body: written(resource, bytes.byteLength, digest), replayed: false };
  }

  async #plain(verb: keyof Writer, envelope: WriteEnvelope, resource: Resource, status: number, extra: unknown = null): Promise<WriteAnswer> {
    await this.#admit();
    this.calls.push({ verb, envelope, resource, bytes: Buffer.alloc(0), files: [], extra });
    return (
      this.answer ?? {
        status,
        headers: headersOf(null),
        body: verb === 'moveFile' || verb === 'copyFile' ? written(resource, 1, 'ab'.repeat(32)) : null,
        replayed: false,
      }
    );
  }

  async #admit(): Promise<void> {
    if (this.refusal !== null) throw this.refusal;
    await this.onAdmitted();
  }

  async #collect(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
    const all: Uint8Array[] = [];
    for await (const chunk of chunks) {
      this.onChunk(chunk);
      all.push(Buffer.from(chunk));
    }
    return Buffer.concat(all);
  }
}

function headersOf(etag: string | null): Record<string, string> {
  return { 'X-Fencing-Token': '4103', 'X-Operation-Id': 'op_1', ...(etag === null ? {} : { ETag: etag }) };
}

function written(resource: Resource, size: number, sha256: string): object {
  return {
    resource: resource.name,
    volume: resource.volume,
    path: resource.path,
    size_bytes: size,
    etag: '"1-2-3"',
    digest: { 'sha-256': sha256 },
    fencing_token: '4103',
    lease_ref: 'lr_1',
    operation_id: 'op_1',
    durability: 'synced',
    fence_level: 'incarnation',
  };
}

export interface FakeFile {
  readonly bytes: Buffer;
  readonly mtimeNs: bigint;
  readonly etag?: string;
}

/** Volumes over a map from `volume/path` to bytes. Counts open descriptors. */
export class FakeVolumes implements Volumes {
  readonly files = new Map<string, FakeFile>();
  readonly policies: Map<string, VolumePolicy>;
  openDescriptors = 0;
  openedEver = 0;
  openError: GatewayError | null = null;
  listed: unknown = null;

  constructor(...policies: VolumePolicy[]) {
    this.policies = new Map(policies.map((policy) => [policy.name, policy]));
  }

  policy(name: string): VolumePolicy {
    const policy = this.policies.get(name);
    if (policy === undefined) throw refuse('volume_not_found', 'There is no volume of this name.');
    return policy;
  }

  get(name: string): Volume {
    const volume: Pick<Volume, 'name' | 'policy' | 'folds' | 'open' | 'list'> = {
      name,
      policy: this.policy(name),
      folds: false,
      open: async (resource) => this.#open(resource),
      list: async (directory, page) => {
        this.listed = { directory: directory?.name ?? null, page };
        return {
          entries: [
            { name: 'q3.csv', nameBase64: null, type: 'file', sizeBytes: 3, modifiedAt: '2026-01-01T00:00:00.000Z' },
            { name: '.fencegate', nameBase64: null, type: 'directory', sizeBytes: null, modifiedAt: null },
            { name: null, nameBase64: '/w==', type: 'file', sizeBytes: 1, modifiedAt: null },
          ],
          nextCursor: null,
        };
      },
    };
    return volume as Volume;
  }

  all(): readonly Volume[] {
    return [...this.policies.keys()].map((name) => this.get(name));
  }

  #open(resource: Resource): OpenedFile {
    if (this.openError !== null) throw this.openError;
    const file = this.files.get(resource.name);
    if (file === undefined) throw refuse('not_found', 'There is nothing of this name.');
    const facts: TargetFacts = {
      ino: 7n,
      sizeBytes: file.bytes.byteLength,
      mtimeNs: file.mtimeNs,
      kind: 'file',
      links: 1,
      mode: 0o644,
      uid: 0,
      gid: 0,
    };
    this.openDescriptors += 1;
    this.openedEver += 1;
    let open = true;
    return {
      facts,
      etag: file.etag ?? etagOf(facts),
      async *read(start, end) {
        for (let at = start; at < end; at += 65_536) yield file.bytes.subarray(at, Math.min(end, at + 65_536));
      },
      close: async () => {
        if (!open) throw new Error('closed twice');
        open = false;
        this.openDescriptors -= 1;
      },
    };
  }
}

export function leaseView(changes: Partial<LeaseView> = {}): LeaseView {
  return {
    leaseId: 'secret-lease',
    leaseRef: 'lr_1',
    resources: [resourceOf('demo', ['a.txt'], false)],
    mode: 'exclusive',
    state: 'held',
    fencingToken: fencingToken(4103n),
    signedToken: null,
    clientId: null,
    sessionId: 'secret-session',
    priority: 5,
    holdCount: 1,
    holdId: null,
    ttlMs: 30_000,
    expiresInMs: 29_999.6,
    leaseExpiresAt: '2026-01-01T00:00:30.000Z',
    grantedAt: '2026-01-01T00:00:00.000Z',
    queuePosition: null,
    acquiredZnodePath: null,
    reason: null,
    metadata: null,
    ...changes,
  };
}

export const sessionView: SessionView = {
  sessionId: 'secret-session',
  sessionRef: 'sr_1',
  principal: 'anonymous',
  clientId: null,
  ttlMs: 30_000,
  expiresInMs: 30_000,
  leaseCount: 0,
};

/** A lock service whose answers and refusals are set; it records what it was asked. */
export class FakeLocks implements LockService {
  readonly calls: { readonly name: string; readonly args: readonly unknown[] }[] = [];
  view: LeaseView = leaseView();
  created = true;
  refusal: GatewayError | null = null;
  acquireWait: ((signal: AbortSignal) => Promise<void>) | null = null;

  async acquire(...args: Parameters<LockService['acquire']>) {
    this.#called('acquire', args);
    await this.acquireWait?.(args[2]);
    return { lease: this.view, created: this.created };
  }
  async lease(...args: Parameters<LockService['lease']>) {
    return this.#called('lease', args);
  }
  async renew(...args: Parameters<LockService['renew']>) {
    return this.#called('renew', args);
  }
  async convert(...args: Parameters<LockService['convert']>) {
    return this.#called('convert', args);
  }
  async release(...args: Parameters<LockService['release']>) {
    this.#called('release', args);
  }
  async createSession(...args: Parameters<LockService['createSession']>) {
    this.#called('createSession', args);
    return sessionView;
  }
  async heartbeat(...args: Parameters<LockService['heartbeat']>) {
    this.#called('heartbeat', args);
    if (args[1] === 'gone') throw refuse('session_not_found', 'There is no such session.');
    return { expiresInMs: 30_000, lost: [] };
  }
  async endSession(...args: Parameters<LockService['endSession']>) {
    this.#called('endSession', args);
  }
  async endSessionByRef(...args: Parameters<LockService['endSessionByRef']>) {
    this.#called('endSessionByRef', args);
  }
  sessions() {
    return [sessionView];
  }
  async lock(resource: Resource) {
    this.#called('lock', [resource]);
    return {
      resource,
      mode: null,
      highWaterMark: null,
      holders: [],
      waiters: [],
      queueLength: 0,
      waitEstimateMs: null,
      znodePath: `/locks/${resource.volume}/x`,
    };
  }
  async locks(filter: Parameters<LockService['locks']>[0]) {
    this.#called('locks', [filter]);
    return { locks: [await this.lock(resourceOf('demo', ['a.txt'], false)), await this.lock(resourceOf('other', ['b'], false))], nextCursor: null };
  }

  #called(name: string, args: readonly unknown[]): LeaseView {
    this.calls.push({ name, args });
    if (this.refusal !== null) throw this.refusal;
    return this.view;
  }
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
      verify: async () => ({ valid: true, records: 2, firstSeq: 1, lastSeq: 2, headHash: '01', firstBadSeq: null }),
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
        coordinator: { kind: 'embedded', state: 'connected', sessionMs: null },
        volumes: [{ name: 'demo', state: 'open', fenceLevel: 'incarnation', reason: null }],
      }),
    },
    administration: {
      breakLock: async (_caller, { resource, graceMs }) => ({
        resource,
        state: graceMs === 0 ? 'broken' : 'breaking',
        highWaterMark: fencingToken(9n),
        deadline: null,
        leases: [{ leaseRef: 'lr_1', clientId: null, mode: 'exclusive', fencingToken: fencingToken(8n), committed: [] }],
      }),
      doctor: async () => ({
        at: '2026-01-01T00:00:00.000Z',
        healthy: true,
        findings: [],
        sessions: [sessionView],
        locks: [],
        waitFor: [],
        coordinator: { kind: 'embedded', state: 'connected', sessionMs: null },
        volumes: [],
      }),
      fix: async (_caller, { findingId, dryRun }) => {
        if (findingId === 'gone') throw refuse('not_found', 'There is no such finding.');
        return { dryRun, steps: ['raise the mark'] };
      },
      fence: async (resource) => ({ resource, highWaterMark: fencingToken(9n), leaseRef: null, principal: null, everNamed: false, floor: null }),
      rebase: async () => ({ base: fencingToken(10n), volumes: ['demo'] }),
      adopt: async (_caller, name) => ({ name, state: 'open', fenceLevel: 'incarnation', reason: null }),
      volumes: () => [
        { name: 'demo', state: 'open', fenceLevel: 'incarnation', reason: null, path: '/srv/demo', incarnation: 'inc1', readOnly: false },
      ],
    },
  };
  return deps;
}

export function principal(name: string, roles: readonly Role[], scopes: readonly string[] = []): Principal {
  return { name, roles: new Set(roles), scopes, authenticated: true };
}
