import { type AuditAction, type AuditDraft, recordWith, type StoredOutcome } from '../domain/audit-record.ts';
import { type Clock, rfc3339 } from '../domain/clock.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { FenceLevel } from '../domain/fence-level.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import type { Caller } from '../domain/principal.ts';
import type { Resource } from '../domain/resource.ts';

export interface LockDecision {
  readonly action: AuditAction;
  readonly resource: Resource | null;
  readonly outcome: StoredOutcome;
  readonly code?: ErrorCode | null;
  /** What a refusal was answered with. */
  readonly status?: number | null;
  /** Who asked; `null` when time did. Then the owner of the lease stands in the record. */
  readonly caller: Caller | null;
  readonly owner?: { readonly principal: string; readonly clientId: string | null; readonly leaseRef: string | null };
  readonly token?: FencingToken | null;
  readonly mark?: FencingToken | null;
  /** A grant: how long it waited; an end: how long it was held. */
  readonly durationMs?: number | null;
  /** JSON text (`auditDetail`). */
  readonly detail?: string | undefined;
  /** Of a break. */
  readonly operationId?: string | null | undefined;
}

/** The audit record of a decision about a lock. Refs only: no id that opens anything. */
export class LockAudit {
  readonly #clock: Clock;
  readonly #fenceLevel: (volume: string) => FenceLevel | null;

  constructor(clock: Clock, fenceLevel: (volume: string) => FenceLevel | null) {
    this.#clock = clock;
    this.#fenceLevel = fenceLevel;
  }

  draft(decision: LockDecision): AuditDraft {
    const { resource, caller, owner } = decision;
    return recordWith({
      at: rfc3339(this.#clock.wallMs()),
      action: decision.action,
      volume: resource?.volume ?? null,
      path: resource?.path ?? null,
      outcome: decision.outcome,
      code: decision.code ?? null,
      status: decision.status ?? null,
      principal: caller?.principal.name ?? owner?.principal ?? null,
      clientId: caller?.clientId ?? owner?.clientId ?? null,
      remoteAddress: caller?.remoteAddress ?? null,
      requestId: caller?.requestId ?? null,
      operationId: decision.operationId ?? null,
      leaseRef: owner?.leaseRef ?? null,
      fencingToken: decision.token ?? null,
      highWaterMark: decision.mark ?? null,
      durationMs: decision.durationMs ?? null,
      fenceLevel: resource === null ? null : this.#fenceLevel(resource.volume),
      ...(decision.detail === undefined ? {} : { detail: decision.detail }),
    });
  }
}
