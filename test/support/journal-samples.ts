import type { AuditDraft } from '../../src/domain/audit-record.ts';
import { type FencingToken, fencingToken } from '../../src/domain/fencing-token.ts';
import type { Intent } from '../../src/domain/intent.ts';
import type { JournalOp } from '../../src/domain/journal.ts';
import { type Resource, resourceOf } from '../../src/domain/resource.ts';

/** Operations for journals in tests: plausible values, each of which a test may replace. */

export function resource(name: string): Resource {
  const [volume = '', ...segments] = name.split('/');
  return resourceOf(volume, segments, false);
}

export function token(value: number | bigint): FencingToken {
  return fencingToken(BigInt(value));
}

export function auditDraft(changes: Partial<AuditDraft> = {}): AuditDraft {
  return {
    at: '2026-01-01T00:00:00.000Z',
    action: 'put',
    volume: 'demo',
    path: 'a.txt',
    outcome: 'committed',
    code: null,
    status: 200,
    principal: 'anna',
    clientId: null,
    remoteAddress: '127.0.0.1',
    requestId: 'req-1',
    operationId: null,
    leaseRef: null,
    fencingToken: null,
    highWaterMark: null,
    sizeBytes: 5,
    digest: null,
    etagBefore: null,
    etagAfter: null,
    durationMs: 1.5,
    fenceLevel: 'incarnation',
    count: 1,
    ...changes,
  };
}

export function rejection(changes: Partial<AuditDraft> = {}): AuditDraft {
  return auditDraft({ outcome: 'rejected', code: 'stale_token', status: 412, fencingToken: token(3), highWaterMark: token(4), ...changes });
}

export function intent(operationId: string, name = 'demo/a.txt', changes: Partial<Intent> = {}): Intent {
  const target = resource(name);
  return {
    operationId,
    resource: target,
    before: { ino: 2n ** 60n + 1n, sizeBytes: 3, mtimeNs: 1_700_000_000_123_456_789n },
    staged: { ino: 77n, sizeBytes: 5, mtimeNs: 1_700_000_001_123_456_789n, name: `${operationId}.staged`, sha256: 'ab'.repeat(32) },
    plan: { kind: 'replace' },
    incarnation: 'inc-1',
    audit: auditDraft({ volume: target.volume, path: target.path, operationId, etagAfter: '"1-2-3"' }),
    ...changes,
  };
}

export function intentOp(operationId: string, name?: string, changes?: Partial<Intent>): JournalOp {
  return { op: 'intent', intent: intent(operationId, name, changes) };
}

export function raise(name: string, value: number | bigint, changes: Partial<Extract<JournalOp, { op: 'raise_mark' }>> = {}): JournalOp {
  return { op: 'raise_mark', resource: resource(name), token: token(value), leaseRef: `lease-${value}`, principal: 'anna', named: true, ...changes };
}

export function auditOp(changes: Partial<AuditDraft> = {}): JournalOp {
  return { op: 'audit', record: auditDraft(changes) };
}

export function outcomeOp(
  operationId: string,
  outcome: 'aborted' | 'unknown' | 'committed',
  changes: Partial<AuditDraft> = {},
  answer: Extract<JournalOp, { op: 'outcome' }>['answer'] = null,
): JournalOp {
  return { op: 'outcome', operationId, outcome, record: auditDraft({ operationId, outcome, ...changes }), answer };
}
