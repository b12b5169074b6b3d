import type { ChainReport } from '../../src/domain/audit-record.ts';
import { ChainKeys } from '../../src/journal/audit-chain.ts';
import { AuditReader } from '../../src/journal/audit-reader.ts';
import { ChainVerifier } from '../../src/journal/chain-verifier.ts';
import { OperationsInFlight } from '../../src/journal/operations-in-flight.ts';
import type { TestDatabase } from './journal-database.ts';

/** Recomputes the chain with these keys, in small pages. */
export function verify({ db, group }: TestDatabase, keys: readonly Uint8Array[] = [], fromSeq: number | null = null): Promise<ChainReport> {
  const verifier = new ChainVerifier(db, new ChainKeys(keys));
  const reader = new AuditReader({
    search: () => Promise.reject(new Error('not used')),
    verify: (step) => Promise.resolve(verifier.step({ ...step, limit: 7 })),
    head: () => group.head(),
    inFlight: new OperationsInFlight(),
    beforeQuery: () => Promise.resolve(),
  });
  return reader.verify(fromSeq, AbortSignal.timeout(5_000));
}
