import type { AuditDraft } from '../domain/audit-record.ts';
import type { IdempotencyRow, IdempotencyScope, OperationKey, OperationView } from '../domain/journal.ts';
import type { Unit } from './group-commit.ts';
import { operationView } from './operation-view.ts';

/** As the gateway stores it for an operation whose outcome is not known. */
const UNKNOWN_ANSWER = { status: 503, headers: {}, body: null } as const;

/**
 * The units of a commit that failed in a way that only the next start can judge. Whoever asks about one of them is told that it is not
 * known, never that there is no such thing. In memory, and no more than one group: after it the journal takes nothing.
 */
export class UnitsInDoubt {
  #units: Unit[] = [];

  add(units: readonly Unit[]): void {
    this.#units.push(...units);
  }

  /** Whatever the next start finds of this operation, it finishes nothing. */
  settled(operationId: string): void {
    if (this.#units.length === 0) return;
    this.#units = this.#units.filter((unit) => !recordsOf(unit).some((record) => record.operationId === operationId));
  }

  operation(key: OperationKey): OperationView | null {
    for (const unit of this.#units) {
      if (!answers(unit, key)) continue;
      const unknown = { outcome: 'unknown', code: 'outcome_unknown', seq: 0, previousHash: '', hash: '' } as const;
      return operationView(recordsOf(unit).map((record) => ({ ...record, ...unknown })));
    }
    return null;
  }

  /** Whether a grant, a change or an end of this lease is in doubt. */
  hasLease(leaseRef: string): boolean {
    return this.#units.some((unit) =>
      unit.some((op) => (op.op === 'lease_put' && op.lease.leaseRef === leaseRef) || (op.op === 'lease_end' && op.leaseRef === leaseRef)),
    );
  }

  idempotent(scope: IdempotencyScope): IdempotencyRow | null {
    for (const unit of this.#units) {
      for (const op of unit) if (op.op === 'idempotency_put' && isSame(op.scope, scope)) return { ...op.row, answer: UNKNOWN_ANSWER };
    }
    return null;
  }
}

/** The records of what is an operation: a write, or the break that is announced. */
function recordsOf(unit: Unit): AuditDraft[] {
  return unit.flatMap((op) => {
    if (op.op === 'intent') return [{ ...op.intent.audit, operationId: op.intent.operationId }];
    return op.op === 'break_put' ? op.records : [];
  });
}

function answers(unit: Unit, key: OperationKey): boolean {
  switch (key.by) {
    case 'operation_id':
      return recordsOf(unit).some(({ operationId }) => operationId === key.operationId);
    case 'request_id':
      return recordsOf(unit).some(({ requestId }) => requestId === key.requestId);
    case 'idempotency_key':
      return unit.some((op) => op.op === 'idempotency_put' && op.scope.principal === key.principal && op.scope.key === key.key);
  }
}

function isSame(a: IdempotencyScope, b: IdempotencyScope): boolean {
  return a.principal === b.principal && a.method === b.method && a.path === b.path && a.key === b.key;
}
