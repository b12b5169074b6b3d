import { type AuditAction, type AuditDraft, recordWith } from '../domain/audit-record.ts';
import { randomName, rfc3339 } from '../domain/clock.ts';
import { asGatewayError, type ErrorCode, type GatewayError } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import type { Resource } from '../domain/resource.ts';
import type { Step } from '../domain/steps.ts';
import type { WriteAnswer, WriteEnvelope } from '../domain/write.ts';
import type { WriteDeps } from './deps.ts';
import { replay, scopeOf } from './idempotency.ts';

const OPERATION_ID_BYTES = 16;

/** What happened to the body ended the write, not a rule: such a refusal is recorded as `aborted`. */
const CUT_SHORT: ReadonlySet<ErrorCode> = new Set(['incomplete_body', 'upload_timeout']);

/** One write from its first check to its answer: what the audit records of it say. */
export class Operation {
  readonly id: string;
  readonly action: AuditAction;
  readonly envelope: WriteEnvelope;
  readonly #deps: WriteDeps;
  /** The token that a refusal's record names, and the mark it met. */
  presented: FencingToken | null = null;
  mark: FencingToken | null = null;
  /** The lease behind the write, by the name of the resource: a MOVE may have two. */
  readonly #leaseRefs = new Map<string, string | null>();
  /** Whether any fencing token came with the request. */
  hasToken: boolean;
  /** True once the intent is, or may be, durable: from then on the commit section writes the records. */
  intended = false;

  constructor(deps: WriteDeps, envelope: WriteEnvelope, action: AuditAction) {
    this.#deps = deps;
    this.envelope = envelope;
    this.action = action;
    this.hasToken = envelope.presentedToken !== null;
    this.id = `op_${randomName(deps.random, OPERATION_ID_BYTES)}`;
  }

  writesUnder(resource: Subject, leaseRef: string | null): void {
    this.#leaseRefs.set(nameOf(resource), leaseRef);
  }

  leaseRefOf(resource: Subject): string | null {
    return this.#leaseRefs.get(nameOf(resource)) ?? null;
  }

  reached(step: Step): Promise<void> | undefined {
    return this.#deps.steps.reached(step, this.id);
  }

  /** An audit record about `resource`; `fields` has what this moment adds. */
  draft(resource: Pick<Resource, 'volume' | 'path'>, fields: Partial<AuditDraft> & Pick<AuditDraft, 'outcome'>): AuditDraft {
    const { caller, startedMs } = this.envelope;
    return recordWith({
      at: rfc3339(this.#deps.clock.wallMs()),
      action: this.action,
      volume: resource.volume,
      path: resource.path,
      principal: caller.principal.name,
      clientId: caller.clientId,
      remoteAddress: caller.remoteAddress,
      requestId: caller.requestId,
      operationId: this.id,
      leaseRef: this.leaseRefOf(resource),
      durationMs: Math.round(this.#deps.clock.monotonicMs() - startedMs),
      ...fields,
    });
  }
}

function nameOf({ volume, path }: Subject): string {
  return `${volume}/${path}`;
}

/** The part of a resource that a record names; an upload to the root of a volume has an empty path. */
export type Subject = Pick<Resource, 'volume' | 'path'>;

/**
 * Runs one write: answers an equal earlier request from its stored answer, otherwise runs it and, when it is refused, makes the
 * record durable before the answer (I4).
 */
export async function runOperation(
  deps: WriteDeps,
  envelope: WriteEnvelope,
  action: AuditAction,
  subject: Subject,
  run: (operation: Operation) => Promise<WriteAnswer>,
): Promise<WriteAnswer> {
  const operation = new Operation(deps, envelope, action);
  let endClaim: (() => void) | undefined;
  try {
    await operation.reached('1.limits');
    const scope = scopeOf(envelope);
    if (scope !== null && envelope.idempotency !== null) {
      endClaim = deps.runningKeys.claim(scope);
      const stored = await replay(deps.journal, scope, envelope.idempotency.fingerprint);
      if (stored !== null) return stored;
    }
    return await run(operation);
  } catch (thrown) {
    const error = asGatewayError(thrown);
    if (!operation.intended) await recordRefusal(deps, operation, subject, error);
    throw error;
  } finally {
    endClaim?.();
  }
}

/** When the journal cannot take the record, its own error is the answer: nothing was changed either way, unless that is just what is not known. */
async function recordRefusal(deps: WriteDeps, operation: Operation, subject: Subject, error: GatewayError): Promise<void> {
  if (error.code === 'journal_unavailable') return;
  const record = operation.draft(subject, {
    outcome: CUT_SHORT.has(error.code) ? 'aborted' : 'rejected',
    code: error.code,
    status: deps.statusOf(error.code),
    // A refusal has no operation that could be asked for, and equal refusals are counted as one.
    operationId: null,
    fencingToken: operation.presented,
    highWaterMark: operation.mark,
  });
  await deps.refusals.refused(record).catch((journal: unknown) => {
    if (error.code !== 'outcome_unknown') throw journal;
  });
}
