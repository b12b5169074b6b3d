import type { AuditRecord } from '../domain/audit-record.ts';
import type { EndedLease, EndedSession, IdempotencyRow, IdempotencyScope, Mark, OperationKey } from '../domain/journal.ts';
import type { SearchFound, SearchStep } from './audit-search.ts';
import type { VerifyFound, VerifyStep } from './chain-verifier.ts';

export interface ReaderData {
  readonly file: string;
  readonly auditKeys: readonly Uint8Array[];
}

export type ReaderCalls = {
  /** Called once the writer has the journal: before that its schema may be an old one. */
  readonly open: { readonly input: null; readonly output: null };
  readonly mark: { readonly input: { readonly resourceKey: string }; readonly output: Mark | null };
  readonly endedLease: { readonly input: { readonly leaseRef: string }; readonly output: EndedLease | null };
  readonly endedSession: { readonly input: { readonly sessionRef: string }; readonly output: EndedSession | null };
  readonly idempotent: { readonly input: { readonly scope: IdempotencyScope; readonly nowMs: number }; readonly output: IdempotencyRow | null };
  readonly operation: { readonly input: { readonly key: OperationKey; readonly nowMs: number }; readonly output: readonly AuditRecord[] };
  readonly search: { readonly input: SearchStep; readonly output: SearchFound };
  readonly verify: { readonly input: VerifyStep; readonly output: VerifyFound };
  readonly close: { readonly input: null; readonly output: null };
};
